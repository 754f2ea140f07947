"""The messages of both topics in one shape: what each says of a key, and when it was read."""

from __future__ import annotations

from headgate.conditions.expr_literals import spark_identifier
from headgate.core.sql.statement import select, view
from headgate.quality.compile.names import Names
from headgate.quality.compile.source import Source
from headgate.quality.compile.unique import TIME_OPTIONS
from headgate.quality.spec.rule_set import RuleTable
from headgate.reconcile.reconcile_state import DELETE, UPSERT

_GONE = "kafka_value IS NULL"


def hash_field(table: RuleTable, side: str) -> str:
    """The column with one side's hash; the rule set's check has let it pass."""
    assert table.hash is not None
    return table.hash.onprem_field if side == "onprem" else table.hash.cloud_field


def other_columns(table: RuleTable, side: str, source: Source) -> tuple[str, ...]:
    """The declared columns that no field of the state holds already."""
    assert table.reconcile is not None
    known = {table.pk, hash_field(table, side), table.reconcile.hash_version}
    known |= {source.declared.event_time, source.action}
    return tuple(name for name in source.declared.columns if name not in known)


def message_statements(table: RuleTable, names: Names, sources: dict[str, Source]) -> list[str]:
    queries = [_side(table, side, source) for side, source in sources.items()]
    words = (
        "The readable messages of both sides in one shape. version is the event time, or the record's timestamp"
        " for a tombstone and where the event time is missing or out of range; read_at is always the record's."
    )
    timed = (
        "A timestamp in the future is capped at the batch's time, so that one clock that runs ahead does not"
        " move the watermark of all. A streaming job replaces this view with one that has a watermark on seen_at."
    )
    return [
        view(names.messages, words, "\nUNION ALL\n".join(queries)),
        view(
            names.timed,
            timed,
            select(
                ["*", "least(read_at, session.batch_time) AS seen_at"], f"FROM {names.messages}"
            ),
        ),
    ]


def _side(table: RuleTable, side: str, source: Source) -> str:
    key = f"CAST({spark_identifier(table.pk)} AS STRING)"
    hash_ = spark_identifier(hash_field(table, side))
    return select(
        [
            f"'{side}' AS side",
            f"IF({_GONE}, CAST(kafka_key AS STRING), {key}) AS pk",
            f"IF({_GONE}, kafka_timestamp, {source.at()}) AS version",
            f"kafka_partition AS partition, kafka_offset AS offset, {hash_} AS hash, {_hash_version(table, source)}",
            f"{_action(source)} AS action",
            "kafka_timestamp AS read_at",
            f"{_row(other_columns(table, side, source), source)} AS row",
        ],
        f"FROM {source.names.read}",
        "WHERE _reason_code IS NULL",
    )


def _hash_version(table: RuleTable, source: Source) -> str:
    name = table.reconcile.hash_version if table.reconcile else None
    if name not in source.types:
        return "CAST(NULL AS INT) AS hash_version"
    column = spark_identifier(name)
    return column if column == "hash_version" else f"{column} AS hash_version"


def _action(source: Source) -> str:
    """A tombstone is a delete; on-prem a message that names no action is an upsert."""
    if source.action is None:
        return f"IF({_GONE}, '{DELETE}', NULL)"
    return f"IF({_GONE}, '{DELETE}', coalesce({spark_identifier(source.action)}, '{UPSERT}'))"


def _row(others: tuple[str, ...], source: Source) -> str:
    """What else the message says, for rules and for whoever looks at it."""
    if not others:
        return "CAST(NULL AS STRING)"
    columns = ", ".join(map(spark_identifier, others))
    return f"IF({_GONE}, NULL,\n  to_json(struct({columns}), {TIME_OPTIONS}))"
