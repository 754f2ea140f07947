"""Compile Java with the machine's javac, or without one with the Eclipse compiler from the lock."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from headgate.engine.bundles import bundle, class_path
from headgate.engine.java import Java, find_java, major_version
from headgate.errors import OperationError

RELEASE = "17"
COMPILE_SECONDS = 180


class Compiler(Protocol):
    """Something that turns Java sources into classes; a warning is an error to it."""

    @property
    def name(self) -> str: ...

    def compile(self, files: Sequence[Path], jars: Sequence[Path], out: Path) -> None: ...


@dataclass(frozen=True)
class Javac:
    """The compiler of a JDK."""

    executable: Path
    name: str = "javac"

    def compile(self, files: Sequence[Path], jars: Sequence[Path], out: Path) -> None:
        options = (
            "--release",
            RELEASE,
            "-Xlint:all",
            "-Werror",
            "-proc:none",
            "-encoding",
            "UTF-8",
        )
        _run([str(self.executable)], options, files, jars, out)


@dataclass(frozen=True)
class Ecj:
    """The Eclipse compiler: a jar that needs a Java to run on and no JDK."""

    java: Java
    jar: Path
    name: str = "ecj"

    def compile(self, files: Sequence[Path], jars: Sequence[Path], out: Path) -> None:
        # Not --release: a runtime without a JDK has no record of what other releases had.
        options = ("-source", RELEASE, "-target", RELEASE, "-failOnWarning", "-proc:none")
        command = [str(self.java.executable), "-Xshare:auto", "-jar", str(self.jar)]
        _run(command, (*options, "-encoding", "UTF-8"), files, jars, out)


def find_compiler(environ: Mapping[str, str] | None = None) -> Compiler:
    """The javac of the Java that is used, else one on PATH, else the Eclipse compiler."""
    java = find_java(environ)
    if found := _javac(java, environ):
        return Javac(found)
    return Ecj(java, bundle("ecj", environ)[0])


def _javac(java: Java, environ: Mapping[str, str] | None) -> Path | None:
    beside = java.home / "bin" / "javac"
    if beside.is_file():
        return beside
    on_path = shutil.which("javac", path=None if environ is None else environ.get("PATH", ""))
    return Path(on_path) if on_path and _is_new_enough(Path(on_path)) else None


def _is_new_enough(javac: Path) -> bool:
    release = javac.resolve().parent.parent / "release"
    return release.is_file() and major_version(release.read_text(errors="replace")) >= int(RELEASE)


def _run(
    command: Sequence[str],
    options: Sequence[str],
    files: Sequence[Path],
    jars: Sequence[Path],
    out: Path,
) -> None:
    out.mkdir(parents=True, exist_ok=True)
    # In a file: a class path of a hundred jars is too long for some command lines.
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as arguments:
        words = (*options, "-cp", class_path(jars), "-d", str(out), *map(str, files))
        arguments.write("\n".join(f'"{word}"' for word in words))
        arguments.flush()
        _checked([*command, f"@{arguments.name}"])


def _checked(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=COMPILE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise _failed(f"the compiler took more than {COMPILE_SECONDS} s") from None
    if done.returncode != 0:
        raise _failed((done.stdout + done.stderr).strip()[:2000])


def _failed(why: str) -> OperationError:
    return OperationError(
        "the Connect plugins do not compile",
        why=why,
        fix="correct the Java sources in java/connect-plugins/, then build again",
    )
