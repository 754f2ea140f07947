"""Class-data archives: a JVM that starts with one does a third less work; each fits one Java and its jars.

The driver's archive is made by a training run (`headgate.core.engine.training`), once.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from headgate.core.runtime.bundles import ivy_jar
from headgate.core.runtime.java import Java, cache_dir, find_java
from headgate.core.runtime.java_build import session_jars
from headgate.errors import OperationError

TRAINING_SECONDS = 300
KEPT = 4


def archive_of(name: str, java: Java, parts: Sequence[str]) -> Path | None:
    """Where the archive of this JVM and class path belongs; None when it can have none."""
    base = java.executable.resolve().parent.parent / "lib" / "server" / "classes.jsa"
    if java.modules_limited or not base.is_file():
        return None
    key = hashlib.sha256("\0".join([java.build, str(java.home), *parts]).encode())
    return cache_dir() / "archives" / f"{name}-{key.hexdigest()[:16]}.jsa"


def spark_archive() -> Path | None:
    """The archive of the driver's JVM: our jars in front of PySpark's. A changed jar has another path."""
    jars = ivy_jar().parent
    return archive_of("spark", find_java(), [*map(str, session_jars()), str(jars)])


def archive_options(archive: Path | None) -> tuple[str, ...]:
    """The JVM's options: use the archive when it is there."""
    if archive is None or not archive.is_file():
        return ()
    return (f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off")


class Preparation(StrEnum):
    """What came of preparing the archive."""

    MADE = "made"
    PRESENT = "present"
    UNSUPPORTED = "unsupported"


def prepare_spark_archive() -> Preparation:
    """Make the driver's archive by a training run of Spark, unless it is there.

    Raises OperationError when the training run fails: the engine would not start either.
    """
    archive = spark_archive()
    if archive is None:
        return Preparation.UNSUPPORTED
    if archive.is_file():
        return Preparation.PRESENT
    archive.parent.mkdir(parents=True, exist_ok=True)
    with archive.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if archive.is_file():  # another process made it while this one waited
            return Preparation.PRESENT
        _train(archive)
        return Preparation.MADE


def _train(archive: Path) -> None:
    draft = archive.with_suffix(f".{os.getpid()}")
    log = archive.with_suffix(".log")
    with tempfile.TemporaryDirectory(prefix="headgate-training-") as home, log.open("wb") as output:
        command = [sys.executable, "-m", "headgate.core.engine.training", home, str(draft)]
        try:
            subprocess.run(
                command, stdout=output, stderr=output, timeout=TRAINING_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise _not_trained(f"it took more than {TRAINING_SECONDS} s", log) from None
    if not draft.is_file():
        lines = log.read_text(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        raise _not_trained(last[:300] or "it wrote no archive", log)
    draft.replace(archive)
    log.unlink()
    _prune(archive)


def _not_trained(why: str, log: Path) -> OperationError:
    return OperationError(
        "a first run of Spark failed, so the engine is not prepared", why=why, fix=f"read {log}"
    )


def _prune(newest: Path) -> None:
    """Archives of jars and virtual environments that are no longer used are not kept for ever."""
    others = sorted(newest.parent.glob("spark-*.jsa"), key=lambda file: file.stat().st_mtime)
    for old in others[:-KEPT]:
        old.unlink(missing_ok=True)
