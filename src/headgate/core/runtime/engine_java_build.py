"""Compile Java sources of ours once per user and content, with javac or with the Eclipse compiler.

The Connect plugins and the Spark functions are both built by it. A build is a folder in the cache that is named
by the hash of everything it depends on; it is filled aside and renamed, so that a kill leaves nothing half-built.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from headgate.core.runtime.engine_bundles import bundle, class_path
from headgate.core.runtime.engine_java import Java, find_java, major_version
from headgate.errors import OperationError, UnavailableError

RELEASE = "17"
COMPILE_SECONDS = 180
# Builds of older sources that are kept, for checkouts beside this one.
KEPT = 4
MANIFEST = "META-INF/MANIFEST.MF"
MANIFEST_TEXT = b"Manifest-Version: 1.0\r\nCreated-By: headgate\r\n\r\n"
# The earliest time that a zip file can hold: the same content gives the same bytes.
EARLIEST = (1980, 1, 1, 0, 0, 0)


class Compiler(Protocol):
    """Turns Java sources into classes; a warning is an error."""

    @property
    def name(self) -> str: ...

    def compile(self, files: Sequence[Path], jars: Sequence[Path], out: Path) -> None: ...


@dataclass(frozen=True)
class Javac:
    """The compiler of a JDK."""

    executable: Path
    name: str = "javac"

    def compile(self, files: Sequence[Path], jars: Sequence[Path], out: Path) -> None:
        # Not the warnings about paths: jars of Spark name others in their manifests that do not exist.
        lint = "-Xlint:all,-path"
        options = ("--release", RELEASE, lint, "-Werror", "-proc:none", "-encoding", "UTF-8")
        _run_compiler([str(self.executable)], options, files, jars, out)


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
        _run_compiler(command, (*options, "-encoding", "UTF-8"), files, jars, out)


def find_compiler(environ: Mapping[str, str] | None = None) -> Compiler:
    """The javac of the Java that is used, else one on PATH, else the Eclipse compiler."""
    java = find_java(environ)
    if javac := _find_javac(java, environ):
        return Javac(javac)
    return Ecj(java, bundle("ecj", environ)[0])


def _find_javac(java: Java, environ: Mapping[str, str] | None) -> Path | None:
    beside = java.home / "bin" / "javac"
    if beside.is_file():
        return beside
    on_path = shutil.which("javac", path=None if environ is None else environ.get("PATH", ""))
    return Path(on_path) if on_path and _is_new_enough(Path(on_path)) else None


def _is_new_enough(javac: Path) -> bool:
    release = javac.resolve().parent.parent / "release"
    return release.is_file() and major_version(release.read_text(errors="replace")) >= int(RELEASE)


def _run_compiler(
    command: Sequence[str],
    options: Sequence[str],
    files: Sequence[Path],
    jars: Sequence[Path],
    out: Path,
) -> None:
    out.mkdir(parents=True, exist_ok=True)
    # In a file: a class path of a hundred jars is too long for some command lines.
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        arguments = (*options, "-cp", class_path(jars), "-d", str(out), *map(str, files))
        file.write("\n".join(f'"{argument}"' for argument in arguments))
        file.flush()
        try:
            done = subprocess.run(
                [*command, f"@{file.name}"],
                capture_output=True,
                text=True,
                timeout=COMPILE_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise _compile_error(f"the compiler took more than {COMPILE_SECONDS} s") from None
    if done.returncode != 0:
        raise _compile_error((done.stdout + done.stderr).strip()[:2000])


def _compile_error(why: str) -> OperationError:
    return OperationError(
        "the Java sources do not compile",
        why=why,
        fix="correct the Java sources below java/, then build again",
    )


def list_java_files(sources: Path) -> tuple[Path, ...]:
    """The Java files of a Maven project, without its tests."""
    files = tuple(sorted((sources / "src/main/java").rglob("*.java")))
    if not files:
        raise UnavailableError(
            f"the Java sources of {sources.name} are not there",
            why=f"{sources.resolve()} has no src/main/java",
            fix="run the command in the project's folder",
        )
    return files


def hash_files(folder: Path, files: Iterable[Path], *others: str) -> str:
    """A short hash of these files with their names, and of whatever else a build depends on."""
    content = hashlib.sha256("\n".join(others).encode())
    for file in files:
        content.update(f"\n{file.relative_to(folder)}\n".encode())
        content.update(file.read_bytes())
    return content.hexdigest()[:16]


def build_once(place: Path, build: Callable[[Path, Path], None]) -> bool:
    """Make the folder `place` unless it is there; whether it was made now.

    `build` compiles into its first folder, which is thrown away, and fills its second, which becomes `place`.
    """
    if place.is_dir():
        return False
    place.parent.mkdir(parents=True, exist_ok=True)
    with _lock_builds(place.parent):
        if place.is_dir():  # another process built it while this one waited
            return False
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=".build-") as draft:
            classes, result = Path(draft, "classes"), Path(draft, "result")
            result.mkdir()
            build(classes, result)
            result.replace(place)
        _prune_builds(place)
    return True


@contextmanager
def _lock_builds(folder: Path) -> Generator[None]:
    with (folder / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for stale in folder.glob(".build-*"):
            shutil.rmtree(stale, ignore_errors=True)
        yield


def _prune_builds(newest: Path) -> None:
    builds = [path for path in newest.parent.iterdir() if not path.name.startswith(".")]
    builds.sort(key=lambda path: path.stat().st_mtime)
    for old in builds[:-KEPT]:
        if old != newest:
            shutil.rmtree(old, ignore_errors=True)


def read_classes(classes: Path, parts: tuple[str, ...] = ("",)) -> dict[str, bytes]:
    """The compiled classes whose names begin with one of these parts, by their names in a jar."""
    files = {file.relative_to(classes).as_posix(): file for file in classes.rglob("*.class")}
    return {name: file.read_bytes() for name, file in files.items() if name.startswith(parts)}


def write_jar(target: Path, content: Mapping[str, bytes]) -> None:
    """Write these entries, the manifest first and the others by name; the same content gives the same bytes."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as jar:
        for name, data in ((MANIFEST, MANIFEST_TEXT), *sorted(content.items())):
            entry = zipfile.ZipInfo(name, EARLIEST)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            jar.writestr(entry, data)
