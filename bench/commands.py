"""P11 and P12: how long `headgate demo` and `headgate --help` take, as processes."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import orjson

from bench.goals import Figure, Measurement
from bench.sample import ROOT
from bench.timing import report_progress
from headgate.core.runtime.java import cache_dir

COMMAND = Path(sys.executable).with_name("headgate")
# Seconds of the first and the second run of the demo.
DEMO_SECONDS = {"first run": 300.0, "second run": 90.0}


def measure_demo(rows: int = 50_000, runs: int = 2) -> Measurement:
    """P11: the first run has a cache that holds the jars and nothing else, as after the downloads.

    Memory is the largest sum of resident bytes of the demo and all its children. What is downloaded
    and installed before is not counted.
    """
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "jars").symlink_to(cache_dir() / "jars")
        reports = [run_demo(Path(folder), rows) for _ in range(runs)]
    figures = [
        Figure(what=name, value=report["seconds"], unit="s", target=target)
        for (name, target), report in zip(DEMO_SECONDS.items(), reports, strict=False)
    ]
    peak = max(report["peak_memory_mib"] or 0 for report in reports) / 1024
    memory = Figure(what="peak memory, all processes", value=round(peak, 2), unit="GiB", target=3.5)
    return Measurement(figures=(*figures, memory), details={"rows": rows})


def run_demo(cache: Path, rows: int) -> dict[str, float]:
    report_progress(f"headgate demo --rows {rows}")
    command = [COMMAND, "-o", "json", "demo", "--rows", str(rows)]
    environ = {**os.environ, "HEADGATE_CACHE": str(cache)}
    with subprocess.Popen(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE) as demo:
        try:
            report, _ = demo.communicate()
        except BaseException:
            demo.terminate()  # it stops its broker and its engine; the block waits for that
            raise
    if demo.returncode:
        raise SystemExit(f"the demo ended with exit code {demo.returncode}")
    return orjson.loads(report)


def measure_help(repeat: int = 10) -> Measurement:
    """P12: wall time of the whole process, after one run that fills the caches."""
    time_help()
    seconds = [time_help() for _ in range(repeat)]
    figure = Figure(
        what=f"headgate --help, median of {repeat}",
        value=round(statistics.median(seconds), 3),
        unit="s",
        target=0.3,
    )
    details = {"best_seconds": round(min(seconds), 3), "imports_spark": imports_spark()}
    return Measurement(figures=(figure,), details=details)


def time_help() -> float:
    begun = time.perf_counter()
    subprocess.run([COMMAND, "--help"], check=True, capture_output=True)
    return time.perf_counter() - begun


def imports_spark() -> bool:
    """Whether PySpark is among the modules that the help imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "headgate.cli.main", "--help"],
        check=True,
        capture_output=True,
        text=True,
    )
    return "pyspark" in done.stderr
