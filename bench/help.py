"""P12: how long `headgate --help` takes.

    python bench/help.py [--repeat N]

Wall time of the whole process, best and median of the repeats, after one that fills the caches.
The median is held against the goal. `spark_imported` says whether PySpark was among the modules.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

import orjson

GOAL = 0.3
COMMAND = Path(sys.executable).with_name("headgate")


def seconds() -> float:
    begun = time.perf_counter()
    subprocess.run([COMMAND, "--help"], check=True, capture_output=True)
    return time.perf_counter() - begun


def spark_imported() -> bool:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "headgate.cli.main", "--help"],
        check=True,
        capture_output=True,
        text=True,
    )
    return "pyspark" in done.stderr


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=10)
    chosen = parser.parse_args()
    seconds()
    taken = [seconds() for _ in range(chosen.repeat)]
    median = statistics.median(taken)
    report = {
        "goal": "P12",
        "lines": [
            {"what": "median of the runs", "figure": round(median, 3), "unit": "s", "limit": GOAL},
        ],
        "best_seconds": round(min(taken), 3),
        "spark_imported": spark_imported(),
    }
    sys.stdout.write(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode() + "\n")


if __name__ == "__main__":
    main()
