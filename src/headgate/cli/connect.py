"""`headgate connect`: build our plugins; render, deploy, list, watch, restart and delete connectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.cli.topics import DLQ_DAYS, PARTITIONS, TOPIC_DAYS
from headgate.errors import OperationError, SettingsError, UnavailableError, UsageError
from headgate.terminal.console import confirm, console

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.core.kafka.connect_rest import Connector, ConnectorState, ConnectRest
    from headgate.core.kafka.topics import TopicSpec


WAIT_SECONDS = 60.0
DOCUMENTS = "documents"
EVENTS = "events"
REFERRED = "${env:CASSANDRA_PASSWORD}"
EVENTS_REFERRED = "${env:POSTGRES_PASSWORD}"


def open_connect() -> ConnectRest:
    """The worker that the settings name."""
    from headgate.config.settings import load_settings
    from headgate.core.kafka.connect_rest import ConnectRest

    settings = load_settings()
    if not settings.kafka_connect_url:
        raise UnavailableError(
            "Kafka Connect is not running here",
            why="KAFKA_CONNECT_URL is not set",
            fix="headgate local up --with connect, or set KAFKA_CONNECT_URL",
        )
    return ConnectRest(settings.kafka_connect_url, max(settings.http_timeout, 10.0))


@click.command()
@click.argument("what")
def render(what: str) -> None:
    """Print a connector file: of a rule table, `events`, or `documents` for the DataStax connector.

    A password is written as ${env:CASSANDRA_PASSWORD}: the worker takes it from its environment, by
    Kafka's EnvVarConfigProvider, which the embedded worker has. One in a file of yours is masked.

    \b
    Examples:
      headgate connect render business
      headgate connect render events
      headgate connect render documents > cassandra-cloud-source.json
    """
    from headgate.config.settings import load_settings

    connector = _masked(_connector(load_settings(), what))
    _warn(connector)
    console.data({"name": connector.name, "config": dict(connector.config)}, text=connector.text)


def _masked(connector: Connector) -> Connector:
    """Without secrets; where one is only referred to, the reference stays."""
    from headgate.core.kafka.connect_rest import shown

    masked = shown(connector.config)
    config = {k: v if v.startswith("${") else masked[k] for k, v in connector.config.items()}
    return replace(connector, config=config)


@click.command()
@click.argument("what", metavar="FILE|TABLE|events")
@click.option("--dry-run", is_flag=True, help="Check it and say what would change; write nothing.")
@click.option("--timeout", default=WAIT_SECONDS, show_default=True, help="Seconds until it runs.")
def deploy(what: str, dry_run: bool, timeout: float) -> None:
    """Create a connector or change it, and wait until it and its tasks run.

    A file is taken as it is; for a rule table the connector is made from its declaration, its hash
    contract and the settings. Topics that it writes to are made when they are not there. The same
    configuration again changes nothing.

    `events` is Debezium on the events' tables in PostgreSQL, which are made as well.

    \b
    Examples:
      headgate connect deploy business --dry-run
      headgate connect deploy events
      headgate connect deploy my-connector.json
    """
    from headgate.config.settings import load_settings
    from headgate.core.kafka.connect_rest import require_valid, shown

    settings = load_settings()
    connector, connect = _connector(settings, what), open_connect()
    _warn(connector)
    wanted = {**connector.config, "name": connector.name}
    require_valid(connect.faults(wanted, what if Path(what).is_file() else connector.name))
    before = connect.config(connector.name)
    changes = _changes(shown(before) if before else {}, shown(wanted))
    action = "create" if before is None else "change" if wanted != before else "nothing"
    if not dry_run:
        _make_tables(settings, what)
        _make_topics(settings, connector)
    if not dry_run and action != "nothing":
        connect.put(connector.name, connector.config)
    if not dry_run:
        state = connect.wait_running(connector.name, timeout)
        console.done(f"{connector.name}: running, {len(state.tasks)} task(s)")
    result = {"connector": connector.name, "action": action, "changes": changes}
    console.data(result, text=_text(connector.name, action, changes, dry_run))


def _make_tables(settings: Settings, what: str) -> None:
    """Debezium waits for no table and no publication."""
    from headgate.filters.events.database import migrate, place_of

    for version in migrate(place_of(settings)) if what == EVENTS else ():
        console.say(f"the events' tables: migration {version} applied")


def _make_topics(settings: Settings, connector: Connector) -> None:
    """A task whose dead letter has no topic fails, and again at the same record."""
    from headgate.core.kafka.topics import Topics

    specs = specs_of(connector)
    if specs and settings.bootstrap_servers:
        for name in Topics(settings.bootstrap_servers).create(specs):
            console.say(f"{name}: created")


def specs_of(connector: Connector) -> list[TopicSpec]:
    """The topics that a connector of ours writes to; of others we know nothing."""
    from headgate.core.kafka.topics import TopicSpec
    from headgate.filters.events import database as events
    from headgate.reconcile.cassandra.connector import DLQ_TOPIC, HASH, SINK_ONLY, TOPIC_PARTITIONS

    config = connector.config
    if connector.name == events.NAME:
        topic = config.get(events.TOPIC_FIELD)
        return [TopicSpec(topic, events.TOPIC_PARTITIONS, events.TOPIC_DAYS)] if topic else []
    if HASH not in config.values():
        return []
    letters = {v for k, v in config.items() if k.endswith("dlq.topic") or k == SINK_ONLY}
    brokers = "dlq.bootstrap.servers"
    for key in config:
        if key.endswith(brokers) and f"{key.removesuffix(brokers)}dlq.topic" not in config:
            letters.add(DLQ_TOPIC)  # what the plugins take when none is named
    routes = {v for k, v in config.items() if k.endswith(".replacement") and "$" not in v}
    return [
        *(TopicSpec(name, TOPIC_PARTITIONS, TOPIC_DAYS) for name in sorted(routes)),
        *(TopicSpec(name, PARTITIONS, DLQ_DAYS) for name in sorted(letters)),
    ]


def _connector(settings: Settings, what: str) -> Connector:
    from headgate.reconcile.cassandra.connector import documents_connector, read_connector

    path = Path(what)
    if path.suffix == ".json" or path.is_file():
        return read_connector(_read(path))
    if what == EVENTS:
        return of_events(settings)
    return documents_connector() if what == DOCUMENTS else own(settings, what)


def of_events(settings: Settings) -> Connector:
    """Debezium on the events' tables, by the settings in force."""
    from headgate.filters.events.database import events_connector, place_of

    referred = EVENTS_REFERRED if settings.postgres_password else ""
    return events_connector(place_of(settings), settings.filter_source_topic, referred)


def own(settings: Settings, table: str) -> Connector:
    """The polling source of a rule table, by its declaration and the settings in force."""
    from headgate.hashing.contract import load_contract
    from headgate.quality.compile.resolve import open_rules
    from headgate.reconcile.cassandra.connector import Cluster, cloud_table, own_connector

    judged = open_rules(settings, table).table
    if judged.reconcile is None or judged.reconcile.contract is None:
        raise SettingsError(
            f"the table {table} names no hash contract",
            why="reconcile.contract is not set",
            fix="name a file under contracts/ there",
        )
    contract = load_contract(settings.root / judged.reconcile.contract).value
    if not settings.cassandra_contact_points:
        raise UnavailableError(
            "there is no Cassandra here",
            why="CASSANDRA_CONTACT_POINTS is not set",
            fix="headgate local up --with cassandra, or set CASSANDRA_CONTACT_POINTS",
        )
    cluster = Cluster(
        settings.cassandra_contact_points,
        settings.cassandra_port,
        settings.cassandra_local_dc,
        settings.need("bootstrap_servers"),
        settings.cassandra_user or "",
        REFERRED if settings.cassandra_password else "",
    )
    return own_connector(cloud_table(judged, contract), cluster)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = str(getattr(error, "strerror", None) or error)
        raise UsageError(f"{path} cannot be read", why=why, fix="name a connector file") from None


def _warn(connector: Connector) -> None:
    from headgate.reconcile.cassandra.connector import notices

    for words in notices(connector):
        console.warn(words)


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[dict[str, object]]:
    """What differs, key by key; passwords are masked on both sides."""
    keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    return [{"key": key, "before": before.get(key), "after": after.get(key)} for key in keys]


def _text(name: str, action: str, changes: list[dict[str, object]], dry_run: bool) -> str:
    verbs = {"create": "created", "change": "changed", "nothing": "as it was"}
    line = f"{name}: {'would ' + action if dry_run and action != 'nothing' else verbs[action]}"
    if action != "change" and not dry_run:
        return line
    details = [f"  {c['key']}: {c['before'] or '-'} → {c['after'] or '-'}" for c in changes]
    return "\n".join([line, *details])


@click.group()
def group() -> None:
    """Build the Connect plugins; deploy and watch connectors.

    KAFKA_CONNECT_URL names the worker; `headgate local up --with connect` runs one.

    \b
    Examples:
      headgate connect deploy business
      headgate connect status
      headgate connect restart headgate-cloud-hash-source
    """


group.add_command(render)
group.add_command(deploy)


@group.command()
def build() -> None:
    """Compile the plugins, with javac or with a compiler that is fetched.

    A worker that runs already loads them when it is started again.
    """
    from headgate.config.settings import load_settings
    from headgate.core.runtime.java_build import build_plugins
    from headgate.local.service_kinds import PLUGIN_SOURCES

    built = build_plugins(load_settings().root / PLUGIN_SOURCES)
    plugins = sorted(path.name for path in built.folder.iterdir())
    console.done(f"{'compiled with' if built.fresh else 'compiled before, with'} {built.compiler}")
    result = {"folder": str(built.folder), "compiler": built.compiler, "plugins": plugins}
    console.data(result, text="\n".join(str(built.folder / name) for name in plugins))


@group.command()
def plugins() -> None:
    """Show the plugins that the worker has loaded."""
    found = open_connect().plugins()
    console.data([{"class": name, "kind": kind, "version": v} for name, kind, v in found])


@group.command("list")
def list_() -> None:
    """Show all connectors."""
    console.data([_row(state) for state in open_connect().states()])


@group.command()
@click.argument("name", required=False)
def status(name: str | None) -> None:
    """Show connectors with their tasks; exit code 1 when one of them has failed."""
    connect = open_connect()
    states = [_known(connect.state(name), name)] if name else list(connect.states())
    console.data([row for state in states for row in _tasks(state)])
    if failed := [state for state in states if state.failed]:
        raise OperationError(
            f"failed: {', '.join(state.name for state in failed)}",
            why="; ".join(state.why for state in failed),
            fix=f"headgate connect restart {failed[0].name}",
        )


def _known(state: ConnectorState | None, name: str) -> ConnectorState:
    if state is None:
        raise UsageError(f"there is no connector {name}", fix="headgate connect list")
    return state


def _row(state: ConnectorState) -> dict[str, object]:
    running = len(state.tasks) - len(state.not_running)
    return {
        "connector": state.name,
        "kind": state.kind,
        "state": state.state,
        "tasks": f"{running} of {len(state.tasks)} running",
        "words": state.why or None,
    }


def _tasks(state: ConnectorState) -> Sequence[dict[str, object]]:
    """A line for the connector, then one for each of its tasks."""
    from headgate.core.kafka.connect_rest import told

    parts = [(None, state), *((task.id, task) for task in state.tasks)]
    return [
        {
            "connector": state.name,
            "task": number,
            "state": part.state,
            "worker": part.worker,
            "words": told(part.trace) if part.trace else None,
        }
        for number, part in parts
    ]


@group.command()
@click.argument("name")
@click.option("--all", "everything", is_flag=True, help="All tasks, not only those that failed.")
@click.option("--timeout", default=WAIT_SECONDS, show_default=True, help="Seconds to wait.")
def restart(name: str, everything: bool, timeout: float) -> None:
    """Start what has failed of a connector again, and wait until it runs.

    \b
    Examples:
      headgate connect restart headgate-cloud-hash-source
      headgate connect restart headgate-cloud-hash-source --all
    """
    connect = open_connect()
    before = _known(connect.state(name), name)
    if not everything and not before.failed:
        console.done(f"{name}: nothing has failed")
    else:
        connect.restart(name, failed_only=not everything)
    console.data([_row(connect.wait_running(name, timeout))])


@group.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(name: str, yes: bool) -> None:
    """Delete a connector; how far it had read stays on Connect's offsets topic."""
    connect = open_connect()
    _known(connect.state(name), name)
    confirm(f"Delete the connector {name}?", yes=yes, otherwise="deleting needs --yes here")
    connect.delete(name)
    console.done(f"{name}: deleted")
