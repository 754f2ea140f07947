"""P11: how long `headgate demo` takes and how much memory it needs.

    python bench/demo.py [--rows N]

Twice: first with a cache that holds the jars and nothing else, as after the downloads of a fresh
clone; then again. Memory is the greatest sum of resident bytes of the demo and all its children,
looked at four times a second. What is downloaded and installed before is not counted.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import orjson

from headgate.engine.java import cache_dir

FIRST, SECOND, MEMORY = 300.0, 90.0, 3.5
COMMAND = Path(sys.executable).with_name("headgate")
ROOT = Path(__file__).resolve().parents[1]


def demo(cache: Path, rows: int) -> dict[str, float]:
    done = subprocess.run(
        [COMMAND, "-o", "json", "demo", "--rows", str(rows)],
        cwd=ROOT,
        env={**os.environ, "HEADGATE_CACHE": str(cache)},
        check=True,
        stdout=subprocess.PIPE,
    )
    return orjson.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=50_000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "jars").symlink_to(cache_dir() / "jars")
        runs = [demo(Path(folder), chosen.rows) for _ in range(2)]
    peak = max(run["peak_memory_mib"] or 0 for run in runs) / 1024
    lines = [
        ("first run", runs[0]["seconds"], "s", FIRST),
        ("second run", runs[1]["seconds"], "s", SECOND),
        ("peak memory, all processes", round(peak, 2), "GiB", MEMORY),
    ]
    named = [dict(zip(("what", "figure", "unit", "limit"), line, strict=True)) for line in lines]
    report = {"goal": "P11", "lines": named, "runs": runs}
    sys.stdout.write(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode() + "\n")


if __name__ == "__main__":
    main()
