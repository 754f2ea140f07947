"""Ours beside DQX, sparkdq, cuallee, Soda and Great Expectations: same rows, same rules, one run.

    python bench/peers.py [--rows N] [--rules N] [--only dqx,ours] [--seconds LIMIT]

Each has an environment of its own under .headgate/peers, made from requirements/peers. It gets 20
columns and rules of four kinds that all of them have (not null, range, list, pattern), about 1 % of
the rows bad. It writes its verdict on every row as Parquet and counts from that what broke each rule;
a peer without verdicts on rows gives the counts alone, which is less work. The counts must be those
that were planted. A peer that fails or takes longer than the limit is shown so.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from headgate.engine.java import find_java

ROOT = Path(__file__).resolve().parents[1]
COLUMNS, KINDS = 20, ("not_null", "range", "in", "regex")
BAD_SHARE = 0.01 / COLUMNS
COLOURS = ("red", "green", "blue")
SEED = 5
# Some report their use to their makers; from here nothing goes out.
SILENT = {
    "GX_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "https_proxy"), "http://127.0.0.1:9"),
}


@dataclass(frozen=True)
class Peer:
    """A tool, the script that calls it, and the file that pins what it needs."""

    name: str
    script: str
    pins: str | None


PEERS = (
    Peer("ours", "ours.py", None),
    Peer("DQX", "dqx.py", "dqx"),
    Peer("sparkdq", "spark_dq.py", "sparkdq"),
    Peer("cuallee", "cuallee_.py", "cuallee"),
    Peer("Soda", "soda_.py", "soda"),
    Peer("Great Expectations", "great_expectations_.py", "great_expectations"),
)


def rows(file: Path, count: int) -> Counter[str]:
    """Write the rows; the number of bad values in each column."""
    draws = np.random.default_rng(SEED)
    columns: dict[str, pa.Array] = {}
    planted: Counter[str] = Counter()
    for at in range(COLUMNS):
        bad = draws.random(count) < BAD_SHARE
        columns[column(at)] = _values(KINDS[at % 4], draws, bad)
        planted[column(at)] = int(bad.sum())
    pq.write_table(pa.table(columns), file)
    return planted


def column(at: int) -> str:
    return f"c{at % COLUMNS:02d}"


def _values(kind: str, draws: np.random.Generator, bad: np.ndarray) -> pa.Array:
    count = len(bad)
    if kind == "not_null":
        return pa.array(draws.integers(0, 1000, count), mask=bad)
    if kind == "range":
        return pa.array(np.where(bad, -5.0, draws.uniform(0, 100, count)))
    if kind == "in":
        return pa.array(np.where(bad, "mauve", np.array(COLOURS)[draws.integers(0, 3, count)]))
    numbers = np.char.zfill(draws.integers(0, 999_999, count).astype(str), 6)
    return pa.array(np.where(bad, "bad-1", np.char.add("AB", numbers)))


def rule(at: int) -> dict[str, Any]:
    """No two rules are equal: some tools take equal ones for one."""
    again = at // COLUMNS
    told: dict[str, Any] = {"name": f"r{at:03d}", "column": column(at), "kind": KINDS[at % 4]}
    if told["kind"] == "not_null" and again:
        told |= {"kind": "range", "low": 0.0, "high": 1000.0 + again}
    elif told["kind"] == "range":
        told |= {"low": 0.0, "high": 100.0 + again}
    elif told["kind"] == "in":
        told["values"] = [*COLOURS, f"shade {again}"]
    elif told["kind"] == "regex":
        told["pattern"] = f"^[A-Z]{{2}}[0-9]{{6,{6 + again}}}$"
    return told


def broken(rules: Sequence[dict[str, Any]], bad: Counter[str]) -> dict[str, int]:
    """How many rows break each rule; a range says nothing of the NULLs in a column of numbers."""
    found = {
        told["name"]: bad[told["column"]]
        for at, told in enumerate(rules)
        if told["kind"] == KINDS[at % 4]
    }
    return {name: n for name, n in found.items() if n}


def environment(peer: Peer) -> Path:
    """The Python that has this peer; made on first use."""
    if peer.pins is None:
        return Path(sys.executable)
    home = ROOT / ".headgate" / "peers" / peer.pins
    pins = ROOT / "requirements" / "peers" / f"{peer.pins}.txt"
    python, made = home / "bin" / "python", home / pins.name
    if not made.is_file() or made.read_bytes() != pins.read_bytes():
        say(f"{peer.name}: making its environment")
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        uv = shutil.which("uv")
        install = (
            [uv, "pip", "install", "--python"] if uv else [str(python), "-m", "pip", "install"]
        )
        given = [str(python)] if uv else []
        wanted = ["--quiet", "--no-deps", "--require-hashes", "-r", str(pins)]
        subprocess.run([*install, *given, *wanted], check=True, stdout=sys.stderr)
        shutil.copy(pins, made)
    return python


def measured(peer: Peer, folder: Path, seconds: float) -> dict[str, Any]:
    """What the peer took, or why there is no figure."""
    log = folder / f"{peer.script}.log"
    command = [str(environment(peer)), str(ROOT / "bench" / "peers" / peer.script), str(folder)]
    keep = {"JAVA_HOME": str(find_java().home), "PATH": os.environ["PATH"], "HOME": str(folder)}
    keep |= SILENT
    try:
        with log.open("w") as said:
            done = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=said, env=keep, timeout=seconds, check=False
            )
    except subprocess.TimeoutExpired:
        return {"failure": f"no answer within {seconds:g} s"}
    if done.returncode:
        last = log.read_text(errors="replace").strip().splitlines()[-1:] or [""]
        return {"failure": f"exit {done.returncode}: {last[0][:200]}"}
    return orjson.loads(done.stdout.strip().splitlines()[-1])


def judged(peer: Peer, found: dict[str, Any], planted: dict[str, int]) -> dict[str, Any]:
    """The peer's line of the table; counts that are not those planted are said."""
    if "failure" in found:
        return {"peer": peer.name, "verdict": found["failure"]}
    right = {name: n for name, n in found.pop("counts").items() if n} == planted
    return {
        "peer": peer.name,
        **found,
        "verdict": "counts as planted" if right else "COUNTS DIFFER",
    }


def say(words: str) -> None:
    sys.stderr.write(words + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rules", type=int, default=100)
    parser.add_argument("--only", default="", help="Names, separated by commas.")
    parser.add_argument("--seconds", type=float, default=600.0, help="The most for one peer.")
    chosen = parser.parse_args()
    only = {name.strip().lower() for name in chosen.only.split(",") if name.strip()}
    wanted = [peer for peer in PEERS if not only or peer.name.lower() in only]
    rules = [rule(at) for at in range(chosen.rules)]
    with tempfile.TemporaryDirectory(prefix="headgate-peers-") as name:
        folder = Path(name)
        (folder / "warm").mkdir()
        bad = rows(folder / "rows.parquet", chosen.rows)
        (folder / "rules.json").write_bytes(orjson.dumps(rules))
        planted = broken(rules, bad)
        lines: list[dict[str, Any]] = []
        for peer in wanted:
            say(f"{peer.name}: {chosen.rows:,} rows, {chosen.rules} rules")
            lines.append(judged(peer, measured(peer, folder, chosen.seconds), planted))
            say(f"  {lines[-1]}")
    report = {"rows": chosen.rows, "rules": chosen.rules, "peers": [asdict(p) for p in wanted]}
    sys.stdout.write(orjson.dumps({**report, "lines": lines}, option=orjson.OPT_INDENT_2).decode())


if __name__ == "__main__":
    main()
