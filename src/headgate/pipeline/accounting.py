"""What accounts, validation and maintenance ask of a dataset: manifest, tables, what its generator sent and refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from headgate.config.settings import Settings
from headgate.core.lake.table_use import DEAD_LETTERS_ROLE, TableUse
from headgate.core.sql.fragments import DEAD_LETTERS, job_name, table_name
from headgate.declarations.project import find_dataset
from headgate.errors import HeadgateError, UnavailableError
from headgate.pipeline.loader import load_dataset
from headgate.pipeline.spec import Dataset

if TYPE_CHECKING:
    from headgate.core.kafka.topics import TopicState
    from headgate.core.ledger.model import Run
    from headgate.core.ledger.ops_store import OpsStore

OUR_HEADER = "headgate.job"


def declared_dataset(settings: Settings, name: str) -> Dataset:
    """The dataset as its manifest declares it, with the topics of these settings."""
    return load_dataset(find_dataset(settings.root, name), settings.topics_of(name)).value


def table_uses(store: OpsStore, run: Run) -> tuple[TableUse, ...]:
    """The tables of the dataset whose revision the run names, for its maintenance."""
    from headgate.pipeline.revision import fetch

    revision = fetch(store, run.revision)
    kinds = ("bronze", "silver", "backfill")
    bronze, silver, backfill = (frozenset({job_name(kind, revision.name)}) for kind in kinds)
    return (
        TableUse(
            "bronze",
            table_name(revision.bronze_table),
            resuming=bronze,
            readers=dict.fromkeys(silver, "silver"),
        ),
        TableUse("silver", table_name(revision.silver_table), resuming=silver, writing=backfill),
        TableUse(DEAD_LETTERS_ROLE, DEAD_LETTERS, writing=bronze),
    )


@dataclass(frozen=True)
class GeneratorMetrics:
    """What the generator wrote of its last run."""

    events: int
    invalid: int
    topic: str


_METRICS = TypeAdapter(GeneratorMetrics)


def generator_counts(
    settings: Settings, topic: str, dlq_topic: str
) -> tuple[GeneratorMetrics | None, int]:
    """The generator's metrics if its last run was to this topic, and how many dead letters it sent."""
    found = generator_metrics(settings)
    metrics = found if found and found.topic == topic else None
    return metrics, generator_refusals(settings, dlq_topic, metrics)


def generator_metrics(settings: Settings) -> GeneratorMetrics | None:
    """What the generator wrote of its last run; None when it has not run here."""
    try:
        return _METRICS.validate_json((settings.metrics_dir / "generator.json").read_bytes())
    except (OSError, ValidationError):
        return None


def generator_refusals(settings: Settings, topic: str, metrics: GeneratorMetrics | None) -> int:
    """Dead letters that the generator sent: those on the topic that bear no header of ours."""
    known = metrics.invalid if metrics else 0
    if not settings.bootstrap_servers:
        return known
    from headgate.core.kafka.topics import Topics

    try:
        state = Topics(settings.bootstrap_servers, settings.http_timeout).describe(topic)
    except HeadgateError:
        return known
    if state is None or state.span == 0:
        return 0
    return _count_foreign(settings, state)


def _count_foreign(settings: Settings, topic: TopicState) -> int:
    from headgate.core.kafka.reader import Stretch, committed_records

    bootstrap, seconds = settings.need("bootstrap_servers"), settings.dlq_read_timeout
    try:
        found = committed_records(bootstrap, Stretch.whole(topic), seconds)
        return sum(OUR_HEADER not in record.headers for record in found)
    except UnavailableError as error:
        raise UnavailableError(
            "the dead letters could not be counted",
            why=error.why or error.what,
            fix="raise DLQ_READ_TIMEOUT, or look at the topic: headgate topics show",
        ) from error
