"""Measure one goal in this process: python -m bench P6 [--size tiny] [rows=20000 …]

`headgate bench run` starts this for every goal and gives it a broker. The report goes to the file
given, else to stdout.
"""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
from pathlib import Path

from headgate.checks.goals import Measurement, choose_goals


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure one goal.")
    parser.add_argument("goal")
    parser.add_argument("values", nargs="*", metavar="NAME=NUMBER", help="Instead of the size's.")
    parser.add_argument("--size", choices=("full", "tiny"), default="full")
    parser.add_argument("--bootstrap", default="localhost:9092", help="Where the broker is.")
    parser.add_argument("--report", type=Path, help="The file to write.")
    chosen = parser.parse_args()
    # Told to stop, it leaves its blocks: the demo is stopped and temporary folders are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    (goal,) = choose_goals([chosen.goal])
    arguments: dict[str, int | str] = dict(goal.tiny) if chosen.size == "tiny" else {}
    arguments |= {name: int(number) for name, number in (v.split("=") for v in chosen.values)}
    if goal.needs_broker:
        arguments["bootstrap"] = chosen.bootstrap
    measure = getattr(importlib.import_module(goal.module), goal.function)
    measurement: Measurement = measure(**arguments)
    report = measurement.model_dump_json(indent=2) + "\n"
    if chosen.report:
        chosen.report.write_text(report, encoding="utf-8")
    else:
        sys.stdout.write(report)


if __name__ == "__main__":
    main()
