"""What every embedded Java server shares: its Java, its jars, the class archive its first run makes."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.core.runtime.class_archive import archive_of, archive_options
from headgate.core.runtime.engine_bundles import bundle, class_path
from headgate.core.runtime.engine_java import SUPPORTED, Java, find_java
from headgate.local.process import Child, read_log

# One-tier compilation and one collector thread: a server of a laptop starts sooner and stays small.
JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
LOGGING = """status = warn
rootLogger.level = info
rootLogger.appenderRef.f.ref = f
appender.f.type = Console
appender.f.name = f
appender.f.layout.type = PatternLayout
appender.f.layout.pattern = %d{ISO8601} %p %c{1}: %m%n
"""
DISK_FULL = ("No space left on device", "the disk is full", "free some space, then start it again")
NO_MEMORY = (
    *("OutOfMemoryError", "it ran out of memory"),
    "stop something else on this machine",
)
NOT_WRITABLE = (
    *("Permission denied", "its data folder cannot be written"),
    "check the owner of the folder",
)
COMPLAINT = re.compile(r"^(\S+ )?(ERROR|FATAL)\b|^\S*(Exception|Error)\b|^Exception in thread")
# What a server's log says, what it means, what to do.
Cause = tuple[str, str, str]


@dataclass(frozen=True)
class Runtime:
    """The Java and the jars that a server runs on, and the archive that speeds its start."""

    java: Java
    jars: tuple[Path, ...]
    archive: Path | None

    @property
    def class_path(self) -> str:
        return class_path(self.jars)

    def jar(self, name: str) -> Path:
        """The jar of this artifact."""
        return next(jar for jar in self.jars if jar.name.startswith(f"{name}-"))


def runtime_of(
    name: str, options: Sequence[str] = JVM, versions: Sequence[int] = SUPPORTED
) -> Runtime:
    """Java and a bundle, fetched when missing."""
    java, jars = find_java(versions=versions), bundle(name)
    return Runtime(java, jars, archive_of(name, java, [*map(str, jars), *options]))


def archive_arguments(runtime: Runtime, folder: Path) -> tuple[str, ...]:
    """Use the class archive, or train one in this run when there is none."""
    found = archive_options(runtime.archive)
    if found or runtime.archive is None:
        return found
    return (f"-XX:ArchiveClassesAtExit={_draft(folder)}", "-Xlog:cds=off")


def _draft(folder: Path) -> Path:
    return folder / "classes.jsa"


def stop(runtime: Runtime, folder: Path, child: Child, limit: float) -> None:
    """Stop it cleanly, and keep the class archive if this was the run that made one."""
    clean = child.stop(limit)
    draft = _draft(folder)
    if runtime.archive is not None and clean and draft.is_file():
        runtime.archive.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(draft, arriving := runtime.archive.with_suffix(f".{os.getpid()}"))
        arriving.replace(runtime.archive)
    draft.unlink(missing_ok=True)


def why_it_ended(
    causes: Sequence[Cause], log: Path, exit_code: int | None, since: int = 0
) -> tuple[str, str]:
    """Why a server is gone, and what to do, from what it logged since it was started."""
    why, fix = cause(causes, read_log(log, since))
    if not why and exit_code is not None and exit_code < 0:
        why = f"it was killed by signal {-exit_code}"
    return why or f"exit code {exit_code}", fix or f"read {log}"


def cause(causes: Sequence[Cause], text: str) -> tuple[str, str]:
    """The known cause in a server's words, else its last complaint."""
    for mark, why, fix in causes:
        if mark in text:
            return why, fix
    complaints = [line for line in text.splitlines() if COMPLAINT.search(line)]
    return (complaints[-1].strip()[:200] if complaints else ""), ""
