"""The connector that turns the events' table into a topic: Debezium, one flat record for each change."""

from __future__ import annotations

from headgate.core.kafka.connect_rest import TRANSFORMS, Connector, transforms
from headgate.filters.events.events_database import PUBLICATION, TABLE, Place

NAME = "events-source"
SOURCE = "io.debezium.connector.postgresql.PostgresConnector"
UNWRAP = "io.debezium.transforms.ExtractNewRecordState"
STRINGS = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
PREFIX = "events"
TOPIC_PARTITIONS, TOPIC_DAYS = 3, 7
TOPIC_FIELD = "transforms.route.replacement"
# How soon a task tries again after PostgreSQL went away, and for how long: for ever.
RETRY_MS = 1_000


def events_connector(place: Place, topic: str, password: str) -> Connector:
    """The connector as Connect takes it; `password` is a reference, never the word itself."""
    login = {"database.user": place.user, "database.password": password}
    config = {
        "connector.class": SOURCE,
        "tasks.max": "1",
        "database.hostname": place.host,
        "database.port": str(place.port),
        **{name: value for name, value in login.items() if value},
        "database.dbname": place.database,
        "plugin.name": "pgoutput",
        "publication.name": PUBLICATION,
        # A migration makes it, so that the connector's user needs to own no table.
        "publication.autocreate.mode": "disabled",
        "slot.name": PUBLICATION,
        "table.include.list": f"public.{TABLE}",
        "snapshot.mode": "initial",
        "topic.prefix": PREFIX,
        "poll.interval.ms": "100",
        "errors.max.retries": "-1",
        "retriable.restart.connector.wait.ms": str(RETRY_MS),
        "key.converter": STRINGS,
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
        **_chain(topic),
        "topic.creation.default.partitions": str(TOPIC_PARTITIONS),
        "topic.creation.default.replication.factor": "-1",
    }
    return Connector(NAME, config)


def _chain(topic: str) -> dict[str, str]:
    return transforms(
        {
            "unwrap": {
                "type": UNWRAP,
                "add.fields": "op,table,ts_ms",
                "add.fields.prefix": "__",
                # A deleted row comes as its last state with op d, and without a tombstone.
                "delete.tombstone.handling.mode": "rewrite",
            },
            # `__op` says it already.
            "shape": {"type": f"{TRANSFORMS}.ReplaceField$Value", "exclude": "__deleted"},
            "key": {"type": f"{TRANSFORMS}.ExtractField$Key", "field": "id"},
            "route": {
                "type": f"{TRANSFORMS}.RegexRouter",
                "regex": f"{PREFIX}\\.public\\.{TABLE}",
                "replacement": topic,
            },
        }
    )
