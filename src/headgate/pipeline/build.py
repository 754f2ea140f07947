"""Render a dataset's SQL and Spark's configuration with the settings into `build/`.

`plan_build` renders and writes nothing; `write_build` replaces each file whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from headgate.config.env_files import write_atomically
from headgate.config.reference import MASK, without_secrets
from headgate.config.settings import Settings
from headgate.core.engine import spark_options
from headgate.core.runtime.bundles import locked_bundle, place
from headgate.core.runtime.java import cache_dir
from headgate.core.runtime.java_build import functions_jar_place
from headgate.core.sql.fragments import view_stem
from headgate.core.sql.script import Template, render_values
from headgate.pipeline.compile.templates import Chosen
from headgate.pipeline.revision import TEMPLATES, chosen, written_templates
from headgate.pipeline.scaffold import Bases, write_source
from headgate.pipeline.spec import Dataset

CONF = "spark-defaults.conf"
CATALOG_FILES = {"rest": "00_catalog_rest.sql"}
OTHER_CATALOG = "00_catalog.sql"
STATIC = "spark.sql.extensions"


@dataclass(frozen=True)
class BuiltFile:
    """One rendered file; `shown` is the same without secrets."""

    path: Path
    text: str
    shown: str


@dataclass(frozen=True)
class Build:
    """Everything that belongs under `build/`, and what a reader should know about it."""

    dataset: str
    files: tuple[BuiltFile, ...]
    stale: tuple[Path, ...]
    edited: tuple[str, ...]
    behind: tuple[str, ...]
    assumed_broker: str | None
    missing_jars: int


def plan_build(settings: Settings, name: str) -> Build:
    """Render everything and write nothing; raises when anything cannot be rendered."""
    fresh, picked = chosen(settings.root, name)
    broker = _broker(settings)
    values = {**_values(settings, name), "BOOTSTRAP_SERVERS": broker}
    files = (
        *_dataset_files(settings, name, picked, values),
        *_reference_files(settings, {**values, **_of_manifest(fresh.dataset, values)}),
        _conf_file(settings, values),
    )
    kept = {file.path for file in files}
    catalogs = (settings.build_dir / "sql" / file for file in _catalog_files())
    return Build(
        dataset=name,
        files=files,
        stale=tuple(path for path in catalogs if path not in kept and path.exists()),
        edited=picked.edited,
        behind=picked.behind,
        assumed_broker=broker if settings.bootstrap_servers is None else None,
        missing_jars=sum(not jar.is_file() for jar in _jars()),
    )


def write_build(build: Build) -> tuple[Path, ...]:
    """Each file is replaced whole; what belongs to other settings is removed."""
    for file in build.files:
        write_atomically(file.path, file.text.encode())
    for path in build.stale:
        path.unlink(missing_ok=True)
    return tuple(file.path for file in build.files)


def refresh_templates(settings: Settings, name: str) -> tuple[Path, ...]:
    """Write the compiled templates that are not there or behind; edited ones stay as they are."""
    _, picked = chosen(settings.root, name)
    written = written_templates(settings.root, name)
    folder = settings.root / TEMPLATES / name
    changed = [t for t in picked.templates if written.get(t.file) != t.text]
    bases = Bases(settings.root, name)
    for template in changed:
        write_source(folder / f"{template.file}.tmpl", template.text)
        bases.keep(f"{TEMPLATES}/{name}/{template.file}.tmpl", template.text)
    return tuple(folder / f"{template.file}.tmpl" for template in changed)


def _broker(settings: Settings) -> str | None:
    """An embedded broker that is not up yet is expected where it will first try to listen."""
    if settings.bootstrap_servers is None and settings.broker == "embedded":
        return f"127.0.0.1:{settings.kafka_port}"
    return settings.bootstrap_servers


def _values(settings: Settings, name: str) -> dict[str, str | None]:
    axes = ("broker", "catalog", "storage", "spark_master")
    more = {axis.upper(): str(getattr(settings, axis)) for axis in axes}
    return {**render_values(settings, name), **more}


def _of_manifest(dataset: Dataset, values: Mapping[str, str | None]) -> dict[str, str]:
    """The reference files show the topic that the manifest names, and the view of its SQL."""
    topic = Template(f"datasets/{dataset.name}/dataset.yml: topic", dataset.topic).render(values)
    return {"TOPIC": topic, "VIEW": f"{view_stem(dataset.name)}_source"}


def _dataset_files(
    settings: Settings, name: str, picked: Chosen, values: Mapping[str, str | None]
) -> Iterator[BuiltFile]:
    for template in picked.templates:
        source = Template(f"{TEMPLATES}/{name}/{template.file}.tmpl", template.text)
        yield _plain(settings.build_dir / "sql" / name / template.file, source.render(values))


def _reference_files(settings: Settings, values: Mapping[str, str | None]) -> Iterator[BuiltFile]:
    wanted = CATALOG_FILES.get(settings.catalog, OTHER_CATALOG)
    made = {"CATALOG_STATEMENTS": catalog_statements(settings)}
    for path in sorted((settings.root / TEMPLATES).glob("*.sql.tmpl")):
        file = path.name.removesuffix(".tmpl")
        if file == wanted or file not in _catalog_files():
            text = Template(f"{TEMPLATES}/{path.name}", path.read_text()).render(values, made)
            yield _plain(settings.build_dir / "sql" / file, text)


def _catalog_files() -> tuple[str, ...]:
    return (OTHER_CATALOG, *CATALOG_FILES.values())


def _plain(path: Path, text: str) -> BuiltFile:
    return BuiltFile(path, text, without_secrets(text))


def catalog_statements(settings: Settings) -> str:
    """The catalog's options as SET statements; a static one can only be given at the start."""
    options = spark_options.catalog_options(settings)
    lines = [
        Template(OTHER_CATALOG, f"SET `{key}`=`${{VALUE}}`;").render({"VALUE": value})
        for key, value in options.items()
        if key != STATIC
    ]
    return "\n".join(lines)


def _conf_file(settings: Settings, values: Mapping[str, str | None]) -> BuiltFile:
    path = settings.root / "spark" / "conf" / f"{CONF}.tmpl"
    template = Template(f"spark/conf/{path.name}", path.read_text())
    target = settings.build_dir / "conf" / CONF
    masked = {key: MASK if _is_secret(key) else value for key, value in _storage(settings).items()}
    return BuiltFile(
        target,
        template.render(values, _option_blocks(settings, _storage(settings))),
        without_secrets(template.render(values, _option_blocks(settings, masked))),
    )


def _storage(settings: Settings) -> dict[str, str]:
    return spark_options.storage_options(settings)


def _is_secret(key: str) -> bool:
    return key.endswith((".secret.key", ".access.key"))


def _option_blocks(settings: Settings, storage: Mapping[str, str]) -> dict[str, str]:
    return {
        "DRIVER_OPTIONS": property_lines(spark_options.driver_options(settings)),
        "SQL_OPTIONS": property_lines(spark_options.sql_options(settings)),
        "CATALOG_OPTIONS": property_lines(spark_options.catalog_options(settings)),
        "STORAGE_OPTIONS": property_lines(storage),
        "JAR_OPTIONS": property_lines(spark_options.jar_options(settings, _jars())),
    }


def property_lines(options: Mapping[str, str]) -> str:
    """A Java properties file's lines, in which only the backslash is special to us."""
    if not options:
        return "# needs nothing"
    return "\n".join(f"{key} {value}".replace("\\", "\\\\") for key, value in options.items())


def _jars() -> tuple[Path, ...]:
    """Where the jars are or will be: a build needs no download and no compiler."""
    store = cache_dir() / "jars"
    bundled = (place(artifact, store) for artifact in locked_bundle("spark").artifacts)
    return (*bundled, functions_jar_place())
