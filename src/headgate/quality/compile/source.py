"""SQL of one source: its records as they came, parsed strictly, then as rows or with the reason for refusal.

Each source has three views: `<table>_source` (the engine binds the records of a batch under this name),
`<table>_read` (fields, or a reason code) and `<table>` (the rows that rules judge).
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from datetime import timedelta

from headgate.conditions.ast import columns_of
from headgate.conditions.literals import spark_column, spark_identifier, spark_literal
from headgate.core.sql.fragments import branch, call, filled, hanging, table_name, tried_of_any
from headgate.core.sql.script import nested, select, statement, view
from headgate.core.sql.strict_json import EXTRA, MISSING, REASONS, read_record
from headgate.declarations.columns import Column
from headgate.declarations.types import STRING, SqlType
from headgate.quality.compile.resolve import JudgedTable
from headgate.quality.compile.tables import SourceNames
from headgate.quality.record_parser import TIMES, read_path, root_schema
from headgate.quality.spec.rule_set import RuleSource

MISSING_KEY = "dq_missing_pk"
UNKNOWN_ACTION = "dq_unknown_action"
UNKNOWN_ACTION_WORDS = "the action is none of those there are"
WRONG_TYPE = "wrong_type"
MISSING_KEY_WORDS = "the record has no key"
MASKED = "***"
PLACE = ("kafka_topic", "kafka_partition", "kafka_offset", "kafka_timestamp")
BYTES = ("kafka_key", "kafka_value", "kafka_headers")
_PLACE_TYPES = dict(zip(PLACE, ("STRING", "INT", "BIGINT", "TIMESTAMP"), strict=True))
_READ_AS_TEXT = ("DATE", "TIMESTAMP_LTZ", "TIMESTAMP")
_PLAIN_TOPIC = re.compile(r"(?:[A-Za-z0-9._-]|\$\{[A-Z_]+\})+")


@dataclass(frozen=True)
class TopicRecords:
    """The records of one topic, as the JSON reading of bronze asks for them."""

    columns: tuple[Column, ...]
    ts_format: str = TIMES
    keeps_drift: bool = True


@dataclass(frozen=True)
class Source:
    """One source of a judged table, with the types that its columns have for the rules."""

    declared: RuleSource
    pk: str
    types: dict[str, SqlType]
    tells_fields: bool
    # Columns of which no value is shown.
    hidden: frozenset[str] = frozenset()
    # A tombstone is read too, as the delete of the key in the record's key.
    reads_tombstones: bool = False
    # The column with the action and what it may say, where the record takes no part otherwise.
    action: str | None = None
    actions: tuple[str, ...] = ()

    @property
    def names(self) -> SourceNames:
        return SourceNames(self.declared.table)

    @property
    def records(self) -> TopicRecords:
        """The fields that are read; a key that a path finds is none of them."""
        by_path = self.pk if self.declared.pk_path else None
        return TopicRecords(
            tuple(_field(name, kind) for name, kind in self.types.items() if name != by_path)
        )

    @property
    def root(self) -> str | None:
        """The field in which the key stands, where the documents show it beside the others."""
        if not (self.declared.pk_path and self.reads_tombstones):
            return None
        name = read_path(self.declared.pk_path)[0].name
        return None if name.lower() in {known.lower() for known in self.types} else name

    def at(self, source: str = "") -> str:
        """When the row happened: what it says itself, else when its record came.

        A year that no calendar has is no time: sums with it would overflow, and fail every try.
        """
        came = spark_column("kafka_timestamp", source)
        if self.declared.topic is None:
            came = "session.batch_time"
        if self.declared.event_time is None:
            return came
        said = spark_column(self.declared.event_time, source)
        return f"IF(year({said}) BETWEEN 1 AND 9999, {said}, {came})"

    @property
    def hides_time(self) -> bool:
        return self.declared.event_time in self.hidden


def sources_of(judged: JudgedTable) -> tuple[Source, ...]:
    pair = judged.table.is_pair
    used = {name for rule in judged.rules if rule.condition for name in columns_of(rule.condition)}
    return tuple(
        Source(
            declared=source,
            pk=judged.table.pk,
            types=_types(judged, source, f"{source.alias}." if pair else ""),
            tells_fields=bool(used & {EXTRA, MISSING}),
            hidden=frozenset(source.sensitive),
        )
        for source in judged.table.sources.values()
    )


def _types(judged: JudgedTable, source: RuleSource, prefix: str) -> dict[str, SqlType]:
    names = list(source.columns)
    if judged.table.pk not in names:
        names.insert(0, judged.table.pk)
    return {name: judged.types.get(prefix + name, STRING) for name in names}


def _field(name: str, kind: SqlType) -> Column:
    written = STRING if kind.name in _READ_AS_TEXT else kind
    return Column(name, written, kind, name, kind)


def window_start(at: str, window: timedelta) -> str:
    """Windows are aligned to the epoch."""
    seconds = int(window.total_seconds())
    return f"timestamp_seconds(unix_seconds({at}) - pmod(unix_seconds({at}), {seconds}))"


def topic_literal(topic: str) -> str:
    """A topic's name; a placeholder in it stays one."""
    return f"'{topic}'" if _PLAIN_TOPIC.fullmatch(topic) else spark_literal(topic)


def source_statements(source: Source) -> list[str]:
    """From the source itself to its rows, and what cannot be a row."""
    if source.declared.topic is None:
        return [_bound_table(source), _table_read(source), _table_rows(source), *_named(source)]
    return [
        _bound_topic(source),
        _read(source),
        _rows(source),
        *_named(source),
    ]


def _bound_topic(source: Source) -> str:
    words = "All records of the topic."
    topic = topic_literal(source.declared.topic or "")
    return statement(
        "",
        words,
        f"""CREATE OR REPLACE TEMPORARY VIEW {source.names.bound}
USING kafka
OPTIONS (
  'kafka.bootstrap.servers' '${{BOOTSTRAP_SERVERS}}', 'subscribe' {topic}, 'includeHeaders' 'true',
  'startingOffsets' 'earliest', 'endingOffsets' 'latest', 'kafka.isolation.level' 'read_committed'
)""",
    )


def _bound_table(source: Source) -> str:
    words = "All rows of the table; a job reads one snapshot of it."
    query = f"SELECT *\nFROM {table_name(source.declared.iceberg or '')}"
    return view(source.names.bound, words, query)


def _table_read(source: Source) -> str:
    columns = [spark_identifier(name) for name in source.types]
    branches = [branch(f"{spark_identifier(source.pk)} IS NULL", f"'{MISSING_KEY}'")]
    branches += [branch(unlike, f"'{WRONG_TYPE}'") for unlike in _unlike(source).values()]
    found = textwrap.indent("\n".join(branches), "  ")
    words = "Why a row cannot be judged: no key, or a value that is none of the declared type; NULL when it can."
    query = select([*columns, f"CASE\n{found}\nEND AS _reason_code"], f"FROM {source.names.bound}")
    return view(source.names.read, words, query)


def _unlike(source: Source) -> dict[str, str]:
    """For each column, when it has a value that is none of its type; a text takes any."""
    return {
        name: f"{spark_identifier(name)} IS NOT NULL AND {tried_of_any(name, kind)} IS NULL"
        for name, kind in source.types.items()
        if kind != STRING
    }


def unlike_words(source: Source) -> str:
    """Which columns of a row have values that are none of their types, without the values."""
    said = [
        call("IF", [unlike, spark_literal(f"{name} is no {source.types[name]}"), "NULL"])
        for name, unlike in _unlike(source).items()
    ]
    return call("concat_ws", ["'; '", spark_literal(REASONS[WRONG_TYPE]), *said])


def _table_rows(source: Source) -> str:
    columns = [
        f"{tried_of_any(name, kind)} AS {spark_identifier(name)}"
        for name, kind in source.types.items()
    ]
    columns += [f"CAST(NULL AS {kind}) AS {name}" for name, kind in _PLACE_TYPES.items()]
    query = select(columns, f"FROM {source.names.read}", "WHERE _reason_code IS NULL")
    return view(source.names.rows, "The rows, with the declared types.", query)


def _read(source: Source) -> str:
    records = select(
        [
            "topic AS kafka_topic, partition AS kafka_partition, offset AS kafka_offset",
            "timestamp AS kafka_timestamp, key AS kafka_key, value AS kafka_value, headers AS kafka_headers",
            f"{read_record(source.records, more=_read_options(source))} AS record",
        ],
        f"FROM {source.names.bound}",
        *(() if source.reads_tombstones else ("WHERE value IS NOT NULL",)),
    )
    key = ["record._key AS " + spark_identifier(source.pk)] if source.declared.pk_path else []
    unused = ", ".join(("_reason_code", *(["_key"] if key else [])))
    columns = ["* EXCEPT (record)", f"record.* EXCEPT ({unused})", *key]
    reason = hanging("\n".join(_reasons(source)))
    words = (
        "Each record, read strictly: its fields, or the reason why it cannot be a row; a job writes those with"
        " a _reason_code to the dead letters. A tombstone has no fields: it "
        + ("deletes its key." if source.reads_tombstones else "is counted, not judged.")
    )
    query = select([*columns, f"CASE\n  {reason}\nEND AS _reason_code"], f"FROM {nested(records)}")
    return view(source.names.read, words, query)


def _read_options(source: Source) -> dict[str, str]:
    """What a source asks of strict_json beside its columns."""
    masked = [c.name for c in source.records.columns if c.name in source.hidden]
    return {
        **({"key": source.declared.pk_path} if source.declared.pk_path else {}),
        **({"masked": ", ".join(map(spark_identifier, masked))} if masked else {}),
        **({"framed": "true"} if source.declared.framed else {}),
    }


def _reasons(source: Source) -> list[str]:
    """Why a record cannot be a row, as branches of a CASE."""
    key = "_key" if source.declared.pk_path else spark_identifier(source.pk)
    branches = [
        *_tombstones(source),
        branch("record._reason_code IS NOT NULL", "record._reason_code"),
        branch(f"record.{key} IS NULL", f"'{MISSING_KEY}'"),
    ]
    if source.action is not None:
        known = ", ".join(spark_literal(action) for action in source.actions)
        action = f"record.{spark_identifier(source.action)}"
        branches.append(branch(f"{action} NOT IN ({known})", f"'{UNKNOWN_ACTION}'"))
    return branches


def _tombstones(source: Source) -> list[str]:
    if not source.reads_tombstones:
        return []
    no_key = "kafka_key IS NULL OR NOT is_valid_utf8(CAST(kafka_key AS STRING))"
    return [
        branch(f"kafka_value IS NULL AND ({no_key})", f"'{MISSING_KEY}'"),
        branch("kafka_value IS NULL", "NULL"),
    ]


def _rows(source: Source) -> str:
    drifted = [] if source.tells_fields else [EXTRA, MISSING]
    unused = ", ".join(("_reason_code", "_reason", "_drift", *drifted, *BYTES))
    columns = [f"* EXCEPT ({unused})"]
    if source.root is not None:
        columns.append(_root_value(source))
    alive = " AND kafka_value IS NOT NULL" if source.reads_tombstones else ""
    query = select(columns, f"FROM {source.names.read}", f"WHERE _reason_code IS NULL{alive}")
    words = (
        "The readable records that are no tombstones, for queries by hand."
        if source.reads_tombstones
        else "The rows that the rules see."
    )
    return view(source.names.rows, words, query)


def _root_value(source: Source) -> str:
    """The field around the key. No job reads this column, so it costs only who looks at it."""
    value = "substring(kafka_value, 6)" if source.declared.framed else "kafka_value"
    fields = spark_literal(root_schema(source.declared.pk_path or ""))
    root = spark_identifier(source.root or "")
    return f"from_json(CAST({value} AS STRING), {fields}).{root} AS {root}"


def _named(source: Source) -> list[str]:
    """The rows under another name that is asked for, without the field in which the key stands."""
    if source.declared.pk_view is None:
        return []
    without = f" EXCEPT ({spark_identifier(source.root)})" if source.root else ""
    query = f"SELECT *{without}\nFROM {source.names.rows}"
    return [view(spark_identifier(source.declared.pk_view), "The rows with their key.", query)]


def dead_letters_query(source: Source, job: str) -> str:
    """The dead letters of this source's unreadable records."""
    own = {MISSING_KEY: MISSING_KEY_WORDS}
    if source.action is not None:
        own[UNKNOWN_ACTION] = UNKNOWN_ACTION_WORDS
    words = ", ".join(f"'{code}', '{text}'" for code, text in own.items())
    columns = [
        f"'{job}' AS job",
        "session.batch_revision AS revision",
        "_reason_code AS reason_code",
        f"decode(_reason_code, {words}, _reason) AS reason",
        *PLACE,
        *BYTES,
        "session.batch_time AS refused_at",
    ]
    return f"""SELECT
{textwrap.indent(filled(columns), "  ")}
FROM {source.names.read}
WHERE _reason_code IS NOT NULL"""
