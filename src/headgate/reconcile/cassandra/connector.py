"""Kafka Connect configurations that poll a Cassandra table: our source with the hash transform, and DataStax's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate.core.kafka.connect_rest import TRANSFORMS, Connector, transforms
from headgate.errors import SettingsError
from headgate.hashing.contract import HashContract
from headgate.quality.spec.rule_set import RuleTable

OWN_NAME = "headgate-cloud-hash-source"
SOURCE = "headgate.connect.CassandraPollSource"
HASH = "com.company.kafka.connect.smt.HashRowSMT"
CONVERTERS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
RAW_PREFIX = "raw-cloud-"
DLQ_TOPIC = "dlq-cassandra-cloud"
TOPIC_PARTITIONS = 6
SINK_ONLY = "errors.deadletterqueue.topic.name"
UNSEEN = (
    "polling does not see deletes: a key deleted on both sides becomes a ZOMBIE; let the lookup"
    " hasher run beside it (headgate reconcile hasher TABLE), which answers a DELETE with a null hash"
)


@dataclass(frozen=True)
class Cluster:
    """Where Cassandra is, and where Connect finds the brokers for dead letters."""

    contact_points: str
    port: int
    local_dc: str
    bootstrap: str
    username: str = ""
    password: str = field(default="", repr=False)


@dataclass(frozen=True)
class Pace:
    """How a connector works, as against what it does."""

    tasks: int = 2
    poll_ms: int = 5_000
    # A row may be written so much later than its own time says, and is still found.
    lag_ms: int = 300_000


@dataclass(frozen=True)
class CloudTable:
    """A Cassandra table, how its rows are hashed, and the names of what is told about them."""

    keyspace: str
    table: str
    contract: HashContract
    topic: str
    pk: str = "pk"
    version: str = "last_updated"
    key_field: str = "pk"
    hash_field: str = "hash_cloud"
    version_field: str = "hash_version"
    time_field: str = "cloud_ts"


def cloud_table(table: RuleTable, contract: HashContract) -> CloudTable:
    """What a table's `reconcile:` section says of its cloud side."""
    rows = table.reconcile.rows.cloud if table.reconcile else None
    cloud = table.sources.get("cloud")
    if table.reconcile is None or rows is None or cloud is None or not rows.cassandra:
        raise _not_polled(table.name, "it names no Cassandra table: reconcile.rows.cloud.cassandra")
    if rows.version is None:
        raise _not_polled(table.name, "reconcile.rows.cloud.version names no column of times")
    if "," in rows.key:
        raise _not_polled(
            table.name, f"its key has several columns: {rows.key}", "use the hasher for it"
        )
    keyspace, _, name = rows.cassandra.partition(".")
    return CloudTable(
        keyspace,
        name,
        contract,
        cloud.topic or "topic2",
        rows.key,
        rows.version,
        table.pk,
        table.hash.cloud_field if table.hash else "hash_cloud",
        table.reconcile.hash_version or "hash_version",
        cloud.event_time or "cloud_ts",
    )


def _not_polled(name: str, why: str, fix: str = "complete its rule set") -> SettingsError:
    return SettingsError(f"the table {name} cannot be polled by Connect", why=why, fix=fix)


def own_connector(
    table: CloudTable, cluster: Cluster, pace: Pace | None = None, name: str = OWN_NAME
) -> Connector:
    """Our polling source; its messages are exactly key, hash, version and time."""
    pace = pace or Pace()
    config = {
        "connector.class": SOURCE,
        "tasks.max": str(pace.tasks),
        **_source(table, cluster, pace),
        **CONVERTERS,
        **_chain(table, cluster, name),
        "topic.creation.default.partitions": str(TOPIC_PARTITIONS),
        "topic.creation.default.replication.factor": "-1",
    }
    return Connector(name, config)


def _source(table: CloudTable, cluster: Cluster, pace: Pace) -> dict[str, str]:
    login = {"username": cluster.username, "password": cluster.password}
    return {
        "contact.points": cluster.contact_points,
        "load.balancing.local.dc": cluster.local_dc,
        "port": str(cluster.port),
        **(login if cluster.username else {}),
        "keyspace": table.keyspace,
        "table": table.table,
        "pk.column": table.pk,
        "columns": ",".join(field.name for field in table.contract.fields),
        "topic.prefix": RAW_PREFIX,
        "poll.interval.ms": str(pace.poll_ms),
        "lag.ms": str(pace.lag_ms),
        "timestamp.column.name": table.version,
        "mode": "timestamp",
        "dlq.topic": DLQ_TOPIC,
        "dlq.bootstrap.servers": cluster.bootstrap,
    }


def _chain(table: CloudTable, cluster: Cluster, name: str) -> dict[str, str]:
    told = (table.pk, table.version, table.hash_field, table.version_field)
    renames = {table.pk: table.key_field, table.version: table.time_field}
    return transforms(
        {
            "ExtractPK": {"type": f"{TRANSFORMS}.ValueToKey", "fields": table.pk},
            # ValueToKey makes a struct; the topic's key is the bare value.
            "BareKey": {"type": f"{TRANSFORMS}.ExtractField$Key", "field": table.pk},
            "ComputeHash": {
                "type": HASH,
                "hash.version": str(table.contract.hash_version),
                "hash.contract": table.contract.in_one_line,
                "hash.algorithm": table.contract.algorithm,
                "output.field": table.hash_field,
                "version.field": table.version_field,
                "connector.name": name,
                "dlq.topic": DLQ_TOPIC,
                "dlq.bootstrap.servers": cluster.bootstrap,
            },
            "KeepContract": {
                "type": f"{TRANSFORMS}.ReplaceField$Value",
                "include": ",".join(told),
                "renames": ",".join(f"{old}:{new}" for old, new in renames.items() if old != new),
            },
            "RouteTopic": _route(table.topic),
        }
    )


def _route(topic: str) -> dict[str, str]:
    return {
        "type": f"{TRANSFORMS}.RegexRouter",
        "regex": f"{RAW_PREFIX}.*",
        "replacement": topic,
    }


def documents_connector() -> Connector:
    """The documents' `cassandra-cloud-source.json`, for the DataStax connector; as given."""
    config = {
        "connector.class": "com.datastax.oss.kafka.source.CassandraSourceConnector",
        "tasks.max": "4",
        "contact.points": "cassandra-cloud",
        "load.balancing.local.dc": "dc1",
        "port": "9042",
        "keyspace": "cloud_keyspace",
        "table": "business_table",
        "topic.prefix": RAW_PREFIX,
        "poll.interval.ms": "5000",
        "timestamp.column.name": "last_updated",
        "mode": "timestamp",
        **CONVERTERS,
        **transforms(
            {
                "ExtractPK": {"type": f"{TRANSFORMS}.ValueToKey", "fields": "pk"},
                "ComputeHash": {
                    "type": HASH,
                    "hash.fields": "col1,col2,col3",
                    "hash.algorithm": "SHA-256",
                    "output.field": "hash_cloud",
                },
                "RouteTopic": _route("topic2-cloud-hash"),
            }
        ),
        "errors.tolerance": "all",
        SINK_ONLY: DLQ_TOPIC,
        "errors.deadletterqueue.context.headers.enable": "true",
        "errors.log.enable": "true",
        "errors.log.include.messages": "true",
        "errors.retry.timeout": "600000",
        "errors.retry.delay.max.ms": "30000",
    }
    return Connector("cassandra-cloud-hash-source", config)


def read_connector(text: str) -> Connector:
    """A connector file, as its owner wrote it."""
    try:
        found: Any = json.loads(text)  # not yet looked at
        name, config = str(found["name"]), dict[str, object](found["config"])
    except (ValueError, KeyError, TypeError) as error:
        raise SettingsError(
            "the connector file is not valid",
            why=f"{type(error).__name__}: {error}",
            fix='write {"name": "…", "config": {…}}',
        ) from error
    return Connector(name, {key: str(value) for key, value in config.items()})


def notices(connector: Connector) -> tuple[str, ...]:
    """What the owner of this connector should know before it runs."""
    config = connector.config
    found: list[str] = []
    if config.get(SINK_ONLY) and _is_source(config):
        found.append(
            f"{SINK_ONLY} works for sinks only: Connect writes no dead letter for this source"
        )
    if config.get("mode") == "timestamp" and _is_source(config):
        found.append(UNSEEN)
    for alias in config.get("transforms", "").split(","):
        found += _hash_notices(f"transforms.{alias}.", config)
    if config.get("password") and "${" not in config["password"]:
        found.append("the password can be read through Connect's REST: use a config provider")
    if config.get("errors.log.include.messages") == "true":
        found.append("errors.log.include.messages writes whole records to the worker's log")
    return tuple(found)


def _is_source(config: Mapping[str, str]) -> bool:
    return "Source" in config.get("connector.class", "").rpartition(".")[2]


def _hash_notices(prefix: str, config: Mapping[str, str]) -> list[str]:
    if config.get(f"{prefix}type") != HASH:
        return []
    found: list[str] = []
    if not config.get(f"{prefix}dlq.bootstrap.servers"):
        lost = "vanishes" if config.get("errors.tolerance") == "all" else "stops the task"
        found.append(
            f"a record without a hash field {lost}: set {prefix}dlq.bootstrap.servers, and it "
            "becomes a dead letter"
        )
    if config.get(f"{prefix}hash.version", "1") == "1":
        found.append("hash version 1 is ambiguous: rows that differ can have equal hashes")
    return found
