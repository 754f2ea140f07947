"""Our Kafka Connect plugins, compiled from `java/connect-plugins/` once per user and content of the sources."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headgate.core.runtime.engine_bundles import bundle, locked_bundle
from headgate.core.runtime.engine_java import cache_dir
from headgate.core.runtime.engine_java_build import (
    Compiler,
    build_once,
    find_compiler,
    hash_files,
    list_java_files,
    read_classes,
    write_jar,
)

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
