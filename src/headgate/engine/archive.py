"""Class archives: a JVM that has one starts with a third less work. Each is tied to JVM and jars."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from headgate.engine.bundles import bundle, ivy_jar
from headgate.engine.java import Java, cache_dir, find_java

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
    """The archive of the driver's JVM: our bundle in front of PySpark's jars."""
    jars = ivy_jar().parent
    return archive_of("spark", find_java(), [*map(str, bundle("spark")), str(jars)])


def archive_options(archive: Path | None) -> tuple[str, ...]:
    """The JVM's options: use the archive when it is there."""
    if archive is None or not archive.is_file():
        return ()
    return (f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off")


def prepare_spark_archive() -> bool:
    """Make the driver's archive by a training run; False when it is there or cannot be had."""
    archive = spark_archive()
    if archive is None or archive.is_file():
        return False
    archive.parent.mkdir(parents=True, exist_ok=True)
    with archive.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return not archive.is_file() and _trained(archive)


def _trained(archive: Path) -> bool:
    draft = archive.with_suffix(f".{os.getpid()}")
    with tempfile.TemporaryDirectory(prefix="headgate-training-") as home:
        command = [sys.executable, "-m", "headgate.engine.training", home, str(draft)]
        try:
            subprocess.run(command, capture_output=True, timeout=TRAINING_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return False
    if not draft.is_file():
        return False
    draft.replace(archive)
    _prune(archive)
    return True


def _prune(newest: Path) -> None:
    """Archives of jars and virtual environments that are no longer used are not kept for ever."""
    others = sorted(newest.parent.glob("spark-*.jsa"), key=lambda file: file.stat().st_mtime)
    for old in others[:-KEPT]:
        old.unlink(missing_ok=True)
