"""Load the settings in force and keep where each value came from.

`Settings(...)` is pure: it validates what it is given and reads nothing. `load_settings()` reads, from
weakest to strongest: defaults, profile, what running local services wrote, environment. Every fault
is reported at once, with its file and line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self, cast

from pydantic import (
    ModelWrapValidatorHandler,
    PrivateAttr,
    SerializationInfo,
    ValidationError,
    ValidationInfo,
    field_serializer,
    model_validator,
)
from pydantic_core import ErrorDetails

from headgate.config.env_files import (
    DEFAULT_PROFILE,
    RUNNING_SERVICES,
    Source,
    Sources,
    find_root,
    read_running,
    read_sources,
    values_of,
)
from headgate.config.reference import MASK, NOT_SET, InvalidSettingsError, without_secrets
from headgate.config.schema import NAMES, SECRETS, VARIABLES, Values, contradictions, value_findings
from headgate.errors import SettingsError, UsageError

RUNNING_FILE = "endpoints.env"
EMBEDDED_BROKER = "kafka"
# The streams of a dataset, which MODE names.
STREAMS = ("bronze", "silver")
# The embedded brokers whose addresses this process has read: their folders by address.
_embedded_brokers: dict[str, Path] = {}


class Settings(Values):
    """All settings, checked against each other; they never change once made."""

    _origins: dict[str, str] = PrivateAttr(default_factory=dict[str, str])

    @model_validator(mode="wrap")
    @classmethod
    def _refuse_with_all_faults(
        cls, given: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo
    ) -> Self:
        values = stripped(given)
        settings, errors = leniently(values, handler)
        bad = {str(error["loc"][0]) for error in errors}
        findings = [*value_findings(errors), *contradictions(settings, bad)]
        if findings:
            raise InvalidSettingsError([finding.located(info.context) for finding in findings])
        return settings

    @field_serializer("*", when_used="json")
    def _without_secrets(self, value: object, info: SerializationInfo) -> object:
        name = str(getattr(info, "field_name", ""))
        return self.shown(name) if isinstance(value, (str, Path)) else value

    def __repr_args__(self) -> Iterator[tuple[str, object]]:
        return ((name, self.shown(name)) for name in type(self).model_fields)

    @classmethod
    def from_sources(cls, sources: Sources) -> Self:
        """Settings as the sources give them; an empty value means the default."""
        found = {d.field: f for d in VARIABLES if (f := sources.find(d.name)) is not None}
        values = {field: f.entry.value for field, f in found.items() if f.entry.value}
        faults = [fault for source in sources.ranked for fault in source.faults]
        try:
            settings = cls.model_validate({"root": sources.root, **values}, context=sources)
        except InvalidSettingsError as error:
            raise InvalidSettingsError([*faults, *error.faults]) from None
        if faults:
            raise InvalidSettingsError(faults)
        settings._origins.update({field: f.source.label for field, f in found.items()})
        return settings

    def origin(self, field: str) -> str:
        """Where a value came from: default, a profile, running services, the environment."""
        given = "given" if field in self.model_fields_set else "default"
        return self._origins.get(field, given)

    def shown(self, field: str) -> str:
        """A value as a person may see it: secrets masked, also inside URLs."""
        value = getattr(self, field)
        if value is None:
            return NOT_SET
        return MASK if field in SECRETS else without_secrets(value)

    def need(self, field: str) -> str:
        """The value of a variable that this command cannot do without."""
        value = getattr(self, field)
        if value not in (None, ""):
            return str(value)
        name = NAMES[field]
        raise SettingsError(
            f"{name} is not set",
            why="neither the profile nor the environment gives it",
            fix=f"write {name}=… into .env, or: headgate config select {DEFAULT_PROFILE}",
        )

    def topics_of(self, dataset: str) -> dict[str, str]:
        """TOPIC and DLQ_TOPIC as that dataset's manifest may ask for them; those that are set."""
        given = {"TOPIC": self.topic, "DLQ_TOPIC": self.dlq_topic}
        found = given if self.is_for(dataset) else {n: values_of(dataset)[n] for n in given}
        return {name: value for name, value in found.items() if value}

    def is_for(self, dataset: str) -> bool:
        """Whether what is said here of a dataset's topic and file is said of this one."""
        return self.dataset in (None, dataset)

    @property
    def data_file(self) -> Path:
        """The Parquet file on this machine."""
        return self._data_file(self.need("data_path"))

    def data_file_of(self, dataset: str) -> Path:
        """The Parquet file of any dataset."""
        if self.is_for(dataset):
            return self.data_file
        return self._data_file(values_of(dataset)["DATA_PATH"])

    def _data_file(self, data_path: str) -> Path:
        inside = data_path.removeprefix("/data/")
        file = self.root / Path(self.host_data_dir).expanduser() / inside
        return Path(os.path.normpath(file))

    @property
    def schema_file(self) -> Path:
        """The JSON Schema on this machine."""
        return self._schema_file(self.need("schema_path"))

    def schema_file_of(self, dataset: str) -> Path:
        """The JSON Schema of any dataset."""
        if self.is_for(dataset):
            return self.schema_file
        return self._schema_file(values_of(dataset)["SCHEMA_PATH"])

    def _schema_file(self, schema_path: str) -> Path:
        return self.root / "schemas" / schema_path.removeprefix("/schemas/")

    @property
    def dataset_file(self) -> Path:
        """The manifest of the chosen dataset."""
        return self.root / "datasets" / self.need("dataset") / "dataset.yml"

    @property
    def warehouse_s3_path(self) -> str:
        """The warehouse as DuckDB and PyIceberg write it."""
        return re.sub(r"^s3a://", "s3://", self.warehouse)

    @property
    def effective_s3_key(self) -> str | None:
        return self.aws_access_key_id or self.minio_root_user

    @property
    def effective_s3_secret(self) -> str | None:
        return self.aws_secret_access_key or self.minio_root_password

    @property
    def effective_duckdb_endpoint(self) -> str:
        endpoint = self.s3_endpoint or "minio:9000"
        return self.duckdb_s3_endpoint or endpoint.split("://")[-1].rstrip("/")

    @property
    def checkpoints(self) -> str:
        """Streaming state stands beside the tables it belongs to."""
        if self.storage == "local":
            return str(self.home / "checkpoints")
        return f"{self.warehouse.rstrip('/')}/_checkpoints"

    @property
    def build_dir(self) -> Path:
        return self.root / "build"

    @property
    def metrics_dir(self) -> Path:
        return self.home / "metrics"

    @property
    def benchmark_dir(self) -> Path:
        return self.root / "benchmark_results"

    @property
    def running_file(self) -> Path:
        """Where running local services write their addresses."""
        return self.home / RUNNING_FILE


def load_settings(
    root: Path | None = None, environ: Mapping[str, str] | None = None, *, anywhere: bool = False
) -> Settings:
    """The settings in force here: profile, running services and environment over the defaults.

    Without `root` the working folder must be inside a project, unless the command works `anywhere`.
    """
    settings = Settings.from_sources(gather(root, environ, anywhere=anywhere))
    if settings.bootstrap_servers and settings.origin("bootstrap_servers") == RUNNING_SERVICES:
        _embedded_brokers[settings.bootstrap_servers] = settings.home / EMBEDDED_BROKER
    return settings


def streams_of(mode: str) -> tuple[str, ...]:
    """The kinds of job that run as streams in this MODE; asked for in batch mode, bronze does."""
    return STREAMS if mode == "streaming_silver" else STREAMS[:1]


def embedded_broker(bootstrap: str) -> Path | None:
    """The folder of the embedded broker that these settings gave the address of; None if none did.

    Clients know a broker by its address alone, and compare what answers there with this folder.
    """
    return _embedded_brokers.get(bootstrap)


def gather(
    root: Path | None = None, environ: Mapping[str, str] | None = None, *, anywhere: bool = False
) -> Sources:
    """Every source of values, weakest first."""
    folder = root.absolute() if root else working_root(anywhere=anywhere)
    sources = read_sources(folder, os.environ if environ is None else environ)
    home = sources.find("HEADGATE_HOME")
    given = Path(home.entry.value).expanduser() if home and home.entry.value else ".headgate"
    return sources.with_running(relevant(read_running(folder / given / RUNNING_FILE), sources))


def working_root(*, anywhere: bool = False) -> Path:
    """The project that the working folder is in; that folder itself for what works `anywhere`."""
    try:
        return find_root(Path.cwd())
    except UsageError:
        if anywhere:
            return Path.cwd()
        raise


def relevant(running: Source, sources: Sources) -> Source:
    """An embedded broker left running must not take over from the broker the profile names."""
    broker = sources.find("BROKER")
    if broker is None or broker.entry.value in ("", "embedded"):
        return running
    entries = {k: v for k, v in running.entries.items() if k != "BOOTSTRAP_SERVERS"}
    return Source(running.label, running.file, entries)


def stripped(given: Any) -> Any:
    """Blanks around a value never mean anything: GNU make and editors leave them behind."""
    if not isinstance(given, Mapping):
        return given
    values = cast("Mapping[str, object]", given)
    return {k: v.strip() if isinstance(v, str) else v for k, v in values.items()}


def leniently(
    values: Any, handler: ModelWrapValidatorHandler[Settings]
) -> tuple[Any, list[ErrorDetails]]:
    """The settings with faulty fields left at their defaults, so that the rest is judged too."""
    try:
        return handler(values), []
    except ValidationError as error:
        errors = [e for e in error.errors() if e["type"] != "default_factory_not_called"]
        bad = {e["loc"][0] for e in errors}
        return handler({k: v for k, v in values.items() if k not in bad}), errors
