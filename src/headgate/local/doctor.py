"""Examines this machine: Java, memory, disk, ports, jars and versions, each with a verdict and what to do about it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from headgate.config.settings import Settings
from headgate.core.accounting.evidence import Verdict
from headgate.core.runtime.bundles import faulty, read_lock
from headgate.core.runtime.java import cache_dir, find_java
from headgate.errors import HeadgateError
from headgate.local.process import port_answers

GB = 1024**3
OLDEST_PYTHON = (3, 11)
DISK_NEEDED, DISK_ADVISED = 2 * GB, 10 * GB
# Beside the engine's heap: the broker, DuckDB, and what a JVM needs outside its heap.
MEMORY_BESIDE_HEAP = int(1.5 * GB)
UNITS = {"k": 1024, "m": 1024**2, "g": GB, "t": 1024 * GB}
CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
PIN = re.compile(r"^([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?==([^\s;]+)")


@dataclass(frozen=True)
class Diagnosis:
    """One thing looked at."""

    name: str
    verdict: Verdict
    value: str
    fix: str = ""


@dataclass(frozen=True)
class Examination:
    """Everything the doctor looked at."""

    diagnoses: tuple[Diagnosis, ...]

    @property
    def healthy(self) -> bool:
        return all(found.verdict is not Verdict.FAIL for found in self.diagnoses)


def examine(settings: Settings, environ: Mapping[str, str]) -> Examination:
    """Look at everything; nothing is fetched, started or written."""
    return Examination(
        (
            judge_python(sys.version_info[:3]),
            look_for_java(environ),
            judge_cores(len(os.sched_getaffinity(0))),
            judge_memory(memory(), heap(settings.spark_driver_memory)),
            judge_disk(free_disk(settings.home), settings.home),
            *(
                judge_port(name, port, taken=port_answers(port), ours=_ours(settings, port))
                for name, port in _ports(settings).items()
            ),
            *look_for_bundles(cache_dir(environ) / "jars"),
            judge_pins(pins(requires("headgate") or ()), installed),
            look_for_tool("uv", ("uv", "--version"), "pip is used instead", settings),
            look_for_tool(
                "docker compose",
                ("docker", "compose", "version"),
                "only the overlays in infra/ use it",
                settings,
            ),
        )
    )


def diagnosis(name: str, verdict: Verdict, value: str, fix: str) -> Diagnosis:
    return Diagnosis(name, verdict, value, "" if verdict is Verdict.PASS else fix)


def judge_python(found: Sequence[int]) -> Diagnosis:
    words = ".".join(str(part) for part in found)
    verdict = Verdict.PASS if tuple(found[:2]) >= OLDEST_PYTHON else Verdict.FAIL
    return diagnosis("python", verdict, words, "install Python 3.11 or newer")


def look_for_java(environ: Mapping[str, str]) -> Diagnosis:
    try:
        java = find_java(environ)
    except HeadgateError as error:
        return Diagnosis("java", Verdict.FAIL, error.why or error.what, error.fix)
    return Diagnosis("java", Verdict.PASS, f"{java.version} at {java.home}")


def judge_cores(count: int) -> Diagnosis:
    verdict = Verdict.PASS if count >= 2 else Verdict.WARN
    return diagnosis(
        "cores", verdict, str(count), "broker and engine share one core: it will be slow"
    )


def judge_memory(total: int, heap_bytes: int) -> Diagnosis:
    needed = heap_bytes + MEMORY_BESIDE_HEAP
    words = f"{total / GB:.1f} GB, {needed / GB:.1f} GB needed"
    verdict = Verdict.PASS if total >= needed else Verdict.FAIL
    return diagnosis("memory", verdict, words, "lower SPARK_DRIVER_MEMORY, for example to 1g")


def judge_disk(free: int, home: Path) -> Diagnosis:
    verdict = Verdict.FAIL if free < DISK_NEEDED else Verdict.PASS
    if verdict is Verdict.PASS and free < DISK_ADVISED:
        verdict = Verdict.WARN
    words = f"{free / GB:.1f} GB free at {home}"
    return diagnosis("disk", verdict, words, "free some space, or set HEADGATE_HOME elsewhere")


def judge_port(name: str, port: int, *, taken: bool, ours: bool) -> Diagnosis:
    if not taken or ours:
        return Diagnosis(
            f"port {port}", Verdict.PASS, f"{name}, {'in use by it' if taken else 'free'}"
        )
    fix = f"the next free port will be taken; `headgate local status` shows it, {name} may be set"
    return Diagnosis(f"port {port}", Verdict.WARN, f"{name}, taken by another program", fix)


def look_for_bundles(store: Path) -> list[Diagnosis]:
    """The jars are there with the locked content, or will be fetched."""
    found: list[Diagnosis] = []
    for name, bundle in read_lock().items():
        missing = len(faulty(bundle.artifacts, store))
        words = f"{len(bundle.artifacts) - missing} of {len(bundle.artifacts)} jars"
        words += ", fetched when it is first used" if missing and bundle.optional else ""
        verdict = Verdict.WARN if missing and not bundle.optional else Verdict.PASS
        fix = "they are fetched on first use, which needs the network once"
        found.append(diagnosis(f"{name} bundle", verdict, words, fix))
    return found


def judge_pins(pinned: Mapping[str, str], find: Callable[[str], str | None]) -> Diagnosis:
    """The parts that must have exactly one version have it."""
    found = {name: find(name) for name in pinned}
    wrong = [
        f"{name} is {found[name] or 'not installed'}, {wanted} is needed"
        for name, wanted in pinned.items()
        if found[name] != wanted
    ]
    words = "; ".join(wrong) or ", ".join(f"{name} {v}" for name, v in pinned.items())
    verdict = Verdict.FAIL if wrong else Verdict.PASS
    return diagnosis(
        "pinned parts", verdict, words, "make setup-dev, or pip install -r requirements/run.txt"
    )


def pins(requirements: Sequence[str]) -> dict[str, str]:
    """What our own metadata pins; the PyPI Java is only for machines without one."""
    matches = (
        PIN.match(text) for text in requirements if "extra == 'java'" not in text.replace('"', "'")
    )
    return {match[1]: match[2] for match in matches if match}


def installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def look_for_tool(name: str, command: Sequence[str], without: str, settings: Settings) -> Diagnosis:
    """A tool that is used when it is there."""
    absent = Diagnosis(name, Verdict.PASS, f"not here: {without}")
    if shutil.which(command[0]) is None:
        return absent
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=settings.docker_timeout, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return absent
    return Diagnosis(name, Verdict.PASS, answer.stdout.strip().splitlines()[0])


def memory() -> int:
    """What this process may use: the machine's memory, or less where a container limits it."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for file in CGROUP_LIMITS:
        try:
            limits.append(int(Path(file).read_text()))
        except (OSError, ValueError):
            continue
    return min(limits)


def heap(text: str) -> int:
    """`2g` in bytes."""
    return int(text[:-1]) * UNITS[text[-1].lower()]


def free_disk(folder: Path) -> int:
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    return shutil.disk_usage(there).free


def _ports(settings: Settings) -> dict[str, int]:
    ports = {"CONNECT_PORT": settings.connect_port, "SPARK_UI_PORT": settings.spark_ui_port}
    ports["METRICS_PORT"] = settings.metrics_port
    own = {"KAFKA_PORT": settings.kafka_port} if settings.broker == "embedded" else {}
    return {name: port for name, port in {**own, **ports}.items() if port}


def _ours(settings: Settings, port: int) -> bool:
    metrics = (settings.metrics_url or "").removesuffix("/metrics")
    urls = (settings.bootstrap_servers, settings.connect_url, settings.spark_ui_url, metrics)
    return any(url and url.rstrip("/").endswith(f":{port}") for url in urls)


def text(examination: Examination) -> str:
    """The examination for a person."""
    marks = {Verdict.PASS: "✓", Verdict.WARN: "!", Verdict.FAIL: "✗"}
    width = max(len(found.name) for found in examination.diagnoses)
    lines: list[str] = []
    for found in examination.diagnoses:
        lines.append(f"{marks[found.verdict]} {found.name:<{width}}  {found.value}")
        if found.fix:
            lines.append(f"  {'':<{width}}  → {found.fix}")
    return "\n".join(lines)
