"""Our Kafka Connect plugins, compiled from `java/connect-plugins/` once per user and content of the sources."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headgate.engine.bundles import bundle, locked_bundle
from headgate.engine.java import cache_dir
from headgate.errors import UnavailableError
from headgate.feeds.connect.compiler import Compiler, find_compiler
from headgate.feeds.connect.jar import write_jar

SOURCES = Path("java/connect-plugins")
SERVICES = "META-INF/services"
KEPT = 4
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
    place = cache_dir(environ) / "connect" / content_key(sources, chosen.name)
    fresh = False
    if not place.is_dir():
        place.parent.mkdir(parents=True, exist_ok=True)
        with _only_one(place.parent):
            # Another process may have built them while this one waited.
            if not place.is_dir():
                _build(sources, chosen, place, environ)
                fresh = True
    return Built(place / "plugins", chosen.name, fresh)


def content_key(sources: Path, compiler: str) -> str:
    """What a build depends on, as one short word."""
    content = hashlib.sha256(f"{compiler}\n{PLUGINS}\n".encode())
    for file in (*java_files(sources), *service_files(sources)):
        content.update(f"{file.relative_to(sources)}\n".encode())
        content.update(file.read_bytes())
    for name in COMPILE_BUNDLES:
        for artifact in locked_bundle(name).artifacts:
            content.update(artifact.sha256.encode())
    return content.hexdigest()[:16]


def java_files(sources: Path) -> tuple[Path, ...]:
    """The plugins' Java sources."""
    found = tuple(sorted((sources / "src/main/java").rglob("*.java")))
    if not found:
        raise UnavailableError(
            "the sources of the Connect plugins are not there",
            why=f"{sources.resolve()} has no src/main/java",
            fix="run the command in the project's folder",
        )
    return found


def service_files(sources: Path) -> tuple[Path, ...]:
    folder = sources / "src/main/resources" / SERVICES
    return tuple(folder / plugin.service for plugin in PLUGINS)


def compile_path(environ: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """The jars that the sources are compiled against."""
    return tuple(jar for name in COMPILE_BUNDLES for jar in bundle(name, environ))


def _build(
    sources: Path, compiler: Compiler, place: Path, environ: Mapping[str, str] | None
) -> None:
    """Build beside the final folder and rename, so that a kill leaves nothing half-built."""
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".build-") as draft:
        classes, made = Path(draft, "classes"), Path(draft, "made")
        compiler.compile(java_files(sources), compile_path(environ), classes)
        for plugin in PLUGINS:
            _assemble(plugin, sources, classes, made / "plugins" / plugin.folder, environ)
        made.replace(place)
    _prune(place)


def _assemble(
    plugin: Plugin,
    sources: Path,
    classes: Path,
    folder: Path,
    environ: Mapping[str, str] | None,
) -> None:
    folder.mkdir(parents=True)
    # Connect finds a plugin by this file when it does not scan every class.
    service = f"{SERVICES}/{plugin.service}"
    content = {service: (sources / "src/main/resources" / service).read_bytes()}
    for file in sorted(classes.rglob("*.class")):
        name = file.relative_to(classes).as_posix()
        if name.startswith(plugin.parts):
            content[name] = file.read_bytes()
    write_jar(folder / plugin.jar, content)
    for jar in bundle(plugin.brings, environ) if plugin.brings else ():
        _link(jar, folder / jar.name)


def _link(jar: Path, target: Path) -> None:
    try:
        os.link(jar, target)
    except OSError:
        shutil.copyfile(jar, target)


def _prune(newest: Path) -> None:
    """Builds of sources that have long changed are not kept for ever."""
    builds = [path for path in newest.parent.iterdir() if not path.name.startswith(".")]
    builds.sort(key=lambda path: path.stat().st_mtime)
    for old in builds[:-KEPT]:
        if old != newest:
            shutil.rmtree(old, ignore_errors=True)


@contextmanager
def _only_one(folder: Path) -> Generator[None]:
    with (folder / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for stale in folder.glob(".build-*"):
            shutil.rmtree(stale, ignore_errors=True)
        yield
