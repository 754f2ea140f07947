"""`python -m bench`: the command line of the benchmarks."""

from __future__ import annotations

from bench.cli import cli
from headgate.cli.main import run

if __name__ == "__main__":
    run(cli)
