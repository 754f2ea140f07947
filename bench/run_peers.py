"""Ours beside other tools: same rows and rules, or the same two tables, in one run.

    python -m bench.run_peers rules|tables [--rows N] [--rules N] [--only dqx,ours] [--seconds LIMIT]

Each tool has an environment of its own under .headgate/peers, made from requirements/peers on first
use. Rules: 20 columns and rules of four kinds that all tools have (not null, range, list, pattern),
about 1 % of the rows bad. A tool writes its result for every row as Parquet and counts from that how
many rows failed each rule; a tool without row results gives the counts alone, which is less work.
Tables: two tables of 18 columns compared by key, 0.1 % of the rows differing in one column. The counts
must be those that were planted. A tool that fails or exceeds the limit is shown so.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from bench.compare_rows import count_planted, write_tables
from bench.sample import ROOT
from bench.timing import report_progress
from headgate.core.runtime.java import find_java

COLUMNS, KINDS = 20, ("not_null", "range", "in", "regex")
BAD_SHARE = 0.01 / COLUMNS
COLOURS = ("red", "green", "blue")
SEED = 5
# Some report their use to their makers; from here nothing goes out.
NO_TELEMETRY = {
    "GX_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "https_proxy"), "http://127.0.0.1:9"),
}


@dataclass(frozen=True)
class Peer:
    """A tool, the script that calls it, and the file that pins what it needs."""

    name: str
    script: str
    pins: str | None = None


PEERS = {
    "rules": (
        Peer("ours", "ours.py"),
        Peer("DQX", "dqx.py", "dqx"),
        Peer("sparkdq", "spark_dq.py", "sparkdq"),
        Peer("cuallee", "cuallee_.py", "cuallee"),
        Peer("Soda", "soda_.py", "soda"),
        Peer("Great Expectations", "great_expectations_.py", "great_expectations"),
    ),
    "tables": (
        Peer("ours", "compare_ours.py"),
        Peer("exceptAll", "compare_except_all.py"),
        Peer("datacompy", "compare_datacompy.py", "datacompy"),
        Peer("DQX", "compare_dqx.py", "dqx"),
    ),
}
# Whether a tool's report has the counts that were planted.
Check = Callable[[dict[str, Any]], bool]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("work", choices=PEERS)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rules", type=int, default=100)
    parser.add_argument("--only", default="", help="Names of tools, separated by commas.")
    parser.add_argument("--seconds", type=float, default=600.0, help="Time limit of one tool.")
    chosen = parser.parse_args()
    only = {name.strip().lower() for name in chosen.only.split(",") if name.strip()}
    peers = [peer for peer in PEERS[chosen.work] if not only or peer.name.lower() in only]
    with tempfile.TemporaryDirectory(prefix="headgate-peers-") as name:
        folder = Path(name)
        if chosen.work == "rules":
            check = prepare_rules(folder, chosen.rows, chosen.rules)
        else:
            check = prepare_tables(folder, chosen.rows)
        lines: list[dict[str, Any]] = []
        for peer in peers:
            report_progress(f"{peer.name}: {chosen.work}, {chosen.rows:,} rows")
            lines.append(describe_peer(peer, run_peer(peer, folder, chosen.seconds), check))
            report_progress(f"  {lines[-1]}")
    report = {"rows": chosen.rows, "rules": chosen.rules, "peers": [asdict(peer) for peer in peers]}
    sys.stdout.write(orjson.dumps({**report, "lines": lines}, option=orjson.OPT_INDENT_2).decode())


def prepare_rules(folder: Path, rows: int, count: int) -> Check:
    """Write the rows and the rules."""
    rules = [make_rule(at) for at in range(count)]
    bad = write_rows(folder / "rows.parquet", rows)
    (folder / "rules.json").write_bytes(orjson.dumps(rules))
    (folder / "warm").mkdir()
    planted = count_failures(rules, bad)

    def check(report: dict[str, Any]) -> bool:
        return {name: n for name, n in report["counts"].items() if n} == planted

    return check


def prepare_tables(folder: Path, rows: int) -> Check:
    """Write the two tables."""
    write_tables(folder, rows)
    planted = count_planted(rows)

    def check(report: dict[str, Any]) -> bool:
        columns = dict(report["counts"])
        differing = columns.pop("rows")
        is_right = not report["row_results"] or columns == planted.columns
        return is_right and differing == rows - planted.matches

    return check


def run_peer(peer: Peer, folder: Path, seconds: float) -> dict[str, Any]:
    """The tool's report of what it took, or why there is none."""
    log = folder / f"{peer.script}.log"
    command = [str(make_environment(peer)), str(ROOT / "bench/peers" / peer.script), str(folder)]
    environ = {
        "JAVA_HOME": str(find_java().home),
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": str(ROOT),  # bench.timing
        **NO_TELEMETRY,
    }
    try:
        with log.open("w") as stream:
            done = subprocess.run(
                command,
                stdout=subprocess.PIPE,
                stderr=stream,
                env=environ,
                timeout=seconds,
                check=False,
            )
    except subprocess.TimeoutExpired:
        return {"failure": f"no answer within {seconds:g} s"}
    if done.returncode:
        last = log.read_text(errors="replace").strip().splitlines()[-1:] or [""]
        return {"failure": f"exit {done.returncode}: {last[0][:200]}"}
    return orjson.loads(done.stdout.strip().splitlines()[-1])


def describe_peer(peer: Peer, report: dict[str, Any], check: Check) -> dict[str, Any]:
    """The tool's line of the table."""
    if "failure" in report:
        return {"peer": peer.name, "verdict": report["failure"]}
    verdict = "counts as planted" if check(report) else "COUNTS DIFFER"
    del report["counts"]
    return {"peer": peer.name, **report, "verdict": verdict}


def make_environment(peer: Peer) -> Path:
    """The Python that has this tool; its environment is made on first use."""
    if peer.pins is None:
        return Path(sys.executable)
    home = ROOT / ".headgate" / "peers" / peer.pins
    pins = ROOT / "requirements" / "peers" / f"{peer.pins}.txt"
    python, installed = home / "bin" / "python", home / pins.name
    if not installed.is_file() or installed.read_bytes() != pins.read_bytes():
        report_progress(f"{peer.name}: making its environment")
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        uv = shutil.which("uv")
        install = (
            [uv, "pip", "install", "--python", str(python)]
            if uv
            else [str(python), "-m", "pip", "install"]
        )
        options = ["--quiet", "--no-deps", "--require-hashes", "-r", str(pins)]
        subprocess.run([*install, *options], check=True, stdout=sys.stderr)
        shutil.copy(pins, installed)
    return python


def write_rows(file: Path, count: int) -> Counter[str]:
    """Write the rows; the number of bad values in each column."""
    draws = np.random.default_rng(SEED)
    columns: dict[str, pa.Array] = {}
    bad_values: Counter[str] = Counter()
    for at in range(COLUMNS):
        bad = draws.random(count) < BAD_SHARE
        columns[column_name(at)] = _make_values(KINDS[at % 4], draws, bad)
        bad_values[column_name(at)] = int(bad.sum())
    pq.write_table(pa.table(columns), file)
    return bad_values


def column_name(at: int) -> str:
    return f"c{at % COLUMNS:02d}"


def _make_values(kind: str, draws: np.random.Generator, bad: np.ndarray) -> pa.Array:
    count = len(bad)
    if kind == "not_null":
        return pa.array(draws.integers(0, 1000, count), mask=bad)
    if kind == "range":
        return pa.array(np.where(bad, -5.0, draws.uniform(0, 100, count)))
    if kind == "in":
        return pa.array(np.where(bad, "mauve", np.array(COLOURS)[draws.integers(0, 3, count)]))
    numbers = np.char.zfill(draws.integers(0, 999_999, count).astype(str), 6)
    return pa.array(np.where(bad, "bad-1", np.char.add("AB", numbers)))


def make_rule(at: int) -> dict[str, Any]:
    """No two rules are equal: some tools take equal ones for one."""
    again = at // COLUMNS
    rule: dict[str, Any] = {"name": f"r{at:03d}", "column": column_name(at), "kind": KINDS[at % 4]}
    if rule["kind"] == "not_null" and again:
        rule |= {"kind": "range", "low": 0.0, "high": 1000.0 + again}
    elif rule["kind"] == "range":
        rule |= {"low": 0.0, "high": 100.0 + again}
    elif rule["kind"] == "in":
        rule["values"] = [*COLOURS, f"shade {again}"]
    elif rule["kind"] == "regex":
        rule["pattern"] = f"^[A-Z]{{2}}[0-9]{{6,{6 + again}}}$"
    return rule


def count_failures(rules: Sequence[dict[str, Any]], bad: Counter[str]) -> dict[str, int]:
    """How many rows fail each rule; a range leaves the NULLs of its column to the rule for NULLs."""
    failures = {
        rule["name"]: bad[rule["column"]]
        for at, rule in enumerate(rules)
        if rule["kind"] == KINDS[at % 4]
    }
    return {name: n for name, n in failures.items() if n}


if __name__ == "__main__":
    main()
