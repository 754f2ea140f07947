"""`headgate topics`: create, show and delete the topics of a dataset or of a rule table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from headgate.errors import UnavailableError
from headgate.terminal.console import confirm, console
from headgate.terminal.project import active_dataset

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.core.kafka.topics import Topics, TopicSpec
    from headgate.quality.spec.rule_set import RuleTable

TOPIC_DAYS, DLQ_DAYS = 3, 7
PARTITIONS, CLOUD_PARTITIONS = 3, 6
dataset_option = click.option("--dataset", metavar="NAME", help="Default: DATASET.")


@click.group()
def group() -> None:
    """Create and show topics.

    \b
    Examples:
      headgate topics create
      headgate -o json topics show
    """


def topics_of(settings: Settings, dataset: str) -> tuple[str, str]:
    """The topic and the dead-letter topic that the manifest names."""
    from headgate.declarations.project import find_dataset
    from headgate.pipeline.loader import load_dataset

    manifest = find_dataset(settings.root, dataset)
    found = load_dataset(manifest, settings.topics_of(dataset)).value
    return found.topic, found.dlq_topic


def rule_specs(table: RuleTable, partitions: int | None, letters: int) -> list[TopicSpec]:
    """Every topic that a rule table needs: its sources', their dead letters', what it tells."""
    specs: list[TopicSpec] = []
    for side, source in table.sources.items():
        if source.topic:
            wide = side == "cloud" and table.is_pair
            share = partitions or (CLOUD_PARTITIONS if wide else PARTITIONS)
            specs += [
                _spec(source.topic, share, TOPIC_DAYS),
                _spec(source.dlq_topic or f"{source.topic}.dlq", letters, DLQ_DAYS),
            ]
    return [*specs, *_pair_specs(table)]


def _pair_specs(table: RuleTable) -> list[TopicSpec]:
    """What a reconciliation adds: where the cloud side's dead letters and verdicts are told."""
    from headgate.reconcile.cassandra.connector import DLQ_TOPIC

    told = table.reconcile
    if told is None:
        return []
    specs: list[TopicSpec] = []
    if told.rows.cloud is not None and told.rows.cloud.cassandra:
        specs.append(_spec(DLQ_TOPIC, PARTITIONS, DLQ_DAYS))
    if told.audit.topic:
        specs.append(_spec(told.audit.topic, PARTITIONS, DLQ_DAYS))
    if told.status_topic:
        specs.append(_spec(told.status_topic, 1, TOPIC_DAYS))
    if told.repair.to == "topic":
        specs.append(_spec(told.repair.topic or _repairs(table), PARTITIONS, DLQ_DAYS))
    return specs


def _repairs(table: RuleTable) -> str:
    return f"{table.sources['onprem'].topic}.repair"


def _spec(name: str, partitions: int, days: int) -> TopicSpec:
    from headgate.core.kafka.topics import TopicSpec

    return TopicSpec(name, partitions, days)


def _open(settings: Settings) -> Topics:
    from headgate.core.kafka.topics import Topics

    if not settings.bootstrap_servers and settings.broker == "embedded":
        raise UnavailableError(
            "the embedded broker is not running",
            why=f"no running broker has written its address to {settings.running_file}",
            fix="headgate local up",
        )
    topics = Topics(settings.need("bootstrap_servers"))
    topics.need()
    return topics


@group.command()
@click.option(
    "--partitions",
    type=click.IntRange(min=1),
    help="Partitions of the topic. Default: 3, of a pair's cloud side 6.",
)
@click.option(
    "--dlq-partitions", default=1, show_default=True, help="Partitions of the dead-letter topic."
)
@dataset_option
@click.option("--table", metavar="NAME", help="The topics of this rule table instead.")
def create(
    partitions: int | None, dlq_partitions: int, dataset: str | None, table: str | None
) -> None:
    """Create the dataset's topic, kept for 3 days, and its dead-letter topic, kept for 7.

    The manifest names them, or the rule set does; a pair that is reconciled also gets the topics of
    its audit and its status, and of the dead letters of Connect and the hasher where the rows of its
    cloud side are in Cassandra. Topics that exist stay as they are.

    \b
    Examples:
      headgate topics create
      headgate topics create --dataset orders --partitions 6
      headgate topics create --table business
    """
    from headgate.config.settings import load_settings
    from headgate.quality.compile.resolve import open_rules

    settings = load_settings()
    if table:
        specs = rule_specs(open_rules(settings, table).table, partitions, dlq_partitions)
    else:
        topic, letters = topics_of(settings, dataset or active_dataset(settings))
        specs = [
            _spec(topic, partitions or PARTITIONS, TOPIC_DAYS),
            _spec(letters, dlq_partitions, DLQ_DAYS),
        ]
    created = _open(settings).create(specs)
    rows: list[dict[str, object]] = []
    for spec in specs:
        new = spec.name in created
        console.say(f"{spec.name}: " + ("created" if new else "exists, left as it is"))
        rows.append({"topic": spec.name, "created": new})
    if console.format != "text":
        console.data(rows)


@group.command()
def show() -> None:
    """Show all topics with their ids, partitions and offsets."""
    from headgate.config.settings import load_settings

    topics = _open(load_settings())
    found = [state for name in topics.names() if (state := topics.describe(name))]
    console.data(
        [
            {
                "topic": state.name,
                "topic_id": state.topic_id,
                "partitions": state.partitions,
                "begin": sum(state.begin.values()),
                "end": sum(state.end.values()),
                "span": state.span,
            }
            for state in found
        ]
    )


@group.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@dataset_option
def delete(yes: bool, dataset: str | None) -> None:
    """Delete the dataset's topic and its dead-letter topic with all their records."""
    from headgate.config.settings import load_settings

    settings = load_settings()
    names = topics_of(settings, dataset or active_dataset(settings))
    question = f"Delete {', '.join(names)} and all their records?"
    confirm(question, yes=yes, otherwise="deleting topics needs --yes here")
    deleted = _open(settings).delete(names)
    for name in names:
        console.say(f"{name}: " + ("deleted" if name in deleted else "did not exist"))
