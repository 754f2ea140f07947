"""Compile our Java sources once per user and content: the Spark functions and the Kafka Connect plugins.

javac is used where a JDK is found, else the Eclipse compiler. A build is a folder in the cache, named by
the hash of all it depends on (sources, compiler, Spark's version, jars); it is filled aside and
renamed, so that a kill leaves nothing half-built.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Protocol

from headgate.core.runtime.bundles import bundle, class_path, ivy_jar, locked_bundle
from headgate.core.runtime.java import Java, cache_dir, find_java, major_version
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


EXTENSION = "headgate.spark.HeadgateExtensions"
JAR = "headgate-spark-functions.jar"
PROJECT = "java/spark-functions"


def session_jars() -> tuple[Path, ...]:
    """The jars that every session has beside Spark's own: the bundle `spark`, and our functions."""
    return (*bundle("spark"), functions_jar())


def functions_jar(
    environ: Mapping[str, str] | None = None, compiler: Compiler | None = None
) -> Path:
    """The jar; it is compiled when it is not there."""
    jar = functions_jar_place(environ)

    def build(classes: Path, result: Path) -> None:
        chosen = compiler or find_compiler(environ)
        chosen.compile(list_java_files(functions_sources()), spark_jars(), classes)
        write_jar(result / JAR, read_classes(classes))

    build_once(jar.parent, build)
    return jar


def functions_jar_place(environ: Mapping[str, str] | None = None) -> Path:
    """Where the jar is or will be, which depends on the sources and on the version of Spark."""
    sources = functions_sources()
    key = hash_files(sources, list_java_files(sources), _spark_version())
    return cache_dir(environ) / "spark-functions" / key / JAR


def functions_sources() -> Path:
    """The Java sources: below the package where it was installed from a wheel, else in the project's folder."""
    package = Path(__file__).parents[2]
    installed = package / PROJECT
    return installed if installed.is_dir() else package.parents[1] / PROJECT


def spark_jars() -> tuple[Path, ...]:
    """The jars of PySpark, which the sources are compiled against."""
    return tuple(sorted(ivy_jar().parent.glob("*.jar")))


def _spark_version() -> str:
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return "none"  # a configuration is rendered without Spark, too


SOURCES = Path("java/connect-plugins")
SERVICES = "META-INF/services"
# What the compiler sees, and what each plugin gets beside its own jar.
COMPILE_BUNDLES = ("connect", "cassandra-java-driver")


@dataclass(frozen=True)
class Plugin:
    """One plugin folder: its jar, the parts of our classes in it, and the jars it brings along."""

    folder: str
    jar: str
    parts: tuple[str, ...]
    service: str
    brings: str | None = None


BOTH = ("headgate/connect/hash/", "headgate/connect/letters/", "headgate/connect/plugin/")
PLUGINS = (
    Plugin(
        "hash-smt",
        "custom-hash-smt.jar",
        ("com/company/kafka/connect/smt/", *BOTH),
        "org.apache.kafka.connect.transforms.Transformation",
    ),
    Plugin(
        "cassandra-source",
        "headgate-cassandra-source.jar",
        ("headgate/connect/CassandraPoll", "headgate/connect/cassandra/", *BOTH),
        "org.apache.kafka.connect.source.SourceConnector",
        brings="cassandra-java-driver",
    ),
)


@dataclass(frozen=True)
class Built:
    """Where the plugins are; `folder` is what `plugin.path` must name."""

    folder: Path
    compiler: str
    fresh: bool


def build_plugins(
    sources: Path = SOURCES,
    environ: Mapping[str, str] | None = None,
    compiler: Compiler | None = None,
) -> Built:
    """Compile the plugins, unless the same sources were compiled before."""
    chosen = compiler or find_compiler(environ)
    java_files = list_java_files(sources)

    def build(classes: Path, result: Path) -> None:
        chosen.compile(java_files, compile_path(environ), classes)
        for plugin in PLUGINS:
            _assemble(plugin, sources, classes, result / "plugins" / plugin.folder, environ)

    locked = (a.sha256 for name in COMPILE_BUNDLES for a in locked_bundle(name).artifacts)
    files = (*java_files, *service_files(sources))
    key = hash_files(sources, files, chosen.name, str(PLUGINS), *locked)
    place = cache_dir(environ) / "connect" / key
    fresh = build_once(place, build)
    return Built(place / "plugins", chosen.name, fresh)


def service_files(sources: Path) -> tuple[Path, ...]:
    """The files by which Connect finds a plugin when it does not scan every class."""
    folder = sources / "src/main/resources" / SERVICES
    return tuple(folder / plugin.service for plugin in PLUGINS)


def compile_path(environ: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """The jars that the sources are compiled against."""
    return tuple(jar for name in COMPILE_BUNDLES for jar in bundle(name, environ))


def _assemble(
    plugin: Plugin,
    sources: Path,
    classes: Path,
    folder: Path,
    environ: Mapping[str, str] | None,
) -> None:
    folder.mkdir(parents=True)
    service = f"{SERVICES}/{plugin.service}"
    content = {service: (sources / "src/main/resources" / service).read_bytes()}
    write_jar(folder / plugin.jar, content | read_classes(classes, plugin.parts))
    for jar in bundle(plugin.brings, environ) if plugin.brings else ():
        _link(jar, folder / jar.name)


def _link(jar: Path, target: Path) -> None:
    try:
        os.link(jar, target)
    except OSError:
        shutil.copyfile(jar, target)
