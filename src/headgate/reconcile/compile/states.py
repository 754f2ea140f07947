"""From the messages of both topics to the state of each key, as SQL, and the tables that keep it.

A message is the state of a key of which one message is known. So the columns that make a state of each
message stand once (`message_columns`), and the aggregation that merges states (`merge_columns`) serves
the messages of a batch, the windows of a stream and the table of states. No order of its input changes
its result, and a row that comes twice adds nothing.
"""

from __future__ import annotations

from datetime import timedelta

from headgate.conditions.literals import spark_identifier, spark_literal
from headgate.core.sql.fragments import TABLE_PROPERTIES
from headgate.core.sql.script import select, statement, view
from headgate.quality.compile.source import Source
from headgate.quality.compile.tables import (
    NAMESPACE_STATEMENT,
    PARTIALS,
    RESULTS,
    Names,
    dead_letter_tables,
    table_statement,
)
from headgate.quality.compile.unique import TIME_OPTIONS
from headgate.quality.spec.reconcile_checks import Limits
from headgate.quality.spec.rule_set import RuleTable
from headgate.reconcile.state import DELETE, UPSERT

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
    queries = [_side_query(table, side, source) for side, source in sources.items()]
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


def _side_query(table: RuleTable, side: str, source: Source) -> str:
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


def declared_columns(table: RuleTable, side: str, source: Source) -> dict[str, str]:
    """Each declared column as SQL over a state."""
    return {name: column_of(table, side, source, name) for name in source.types}


def column_of(table: RuleTable, side: str, source: Source, name: str) -> str:
    """One declared column as SQL over a state; what has no field of its own stands in the row's text."""
    assert table.reconcile is not None
    kept = {
        table.pk: "pk",
        hash_field(table, side): f"{side}.hash",
        table.reconcile.hash_version: f"{side}.hash_version",
        source.declared.event_time: f"{side}.version",
        source.action: f"{side}.action",
    }
    if name in kept:
        return kept[name]
    others = other_columns(table, side, source)
    fields = ", ".join(f"{spark_identifier(one)} {source.types[one].spark}" for one in others)
    return f"from_json({side}.row, {spark_literal(fields)}).{spark_identifier(name)}"


NEWEST = {
    "version": "TIMESTAMP",
    "partition": "INT",
    "offset": "BIGINT",
    "hash": "STRING",
    "hash_version": "INT",
    "action": "STRING",
    "read_at": "TIMESTAMP",
    "row": "STRING",
}
# Its least is the first arrival of the newest version: so the version stands there turned round.
FIRST = {
    "version_desc": "BIGINT",
    "read_at": "TIMESTAMP",
    "partition": "INT",
    "offset": "BIGINT",
    "hash": "STRING",
}
END = {"partition": "INT", "offset": "BIGINT"}
# The ends of what the newest version has said: unequal where it has said several things.
GREATEST = {"version": "TIMESTAMP", "content": "BIGINT"}
LEAST = {"version_desc": "BIGINT", "content": "BIGINT"}
SIDES = ("onprem", "cloud")
# Keys, hashes and times are another in every row: a dictionary of them only costs. One of statuses or
# actions stays far below this size.
ROWS_APART = {"write.parquet.dict-size-bytes": "16384"}


def _struct(fields: dict[str, str]) -> str:
    return f"STRUCT<{', '.join(f'{name}: {kind}' for name, kind in fields.items())}>"


def _side(side: str) -> dict[str, str]:
    return {
        side: _struct(NEWEST),
        f"{side}_first": _struct(FIRST),
        f"{side}_end": _struct(END),
        f"{side}_greatest": _struct(GREATEST),
        f"{side}_least": _struct(LEAST),
    }


# What is known of a key in one window of the horizon: maxima and minima, so that rows merge.
STATE = {
    "pk": "STRING",
    "window_start": "TIMESTAMP",
    **_side("onprem"),
    **_side("cloud"),
}
STATES = {**STATE, "records": "BIGINT", "batch_time": "TIMESTAMP"}
CHANGES = {
    **RESULTS,
    "id": "STRING",
    "verdict": "STRING",
    "provisional": "STRING",
    "rollup": "STRING",
    "settled": "BOOLEAN",
    "settled_by": "STRING",
    "within_grace": "BOOLEAN",
    "late": "BOOLEAN",
    "stale": "BOOLEAN",
    "conflict": "BOOLEAN",
    "onprem_version": "TIMESTAMP",
    "cloud_version": "TIMESTAMP",
    "onprem_read_at": "TIMESTAMP",
    "cloud_read_at": "TIMESTAMP",
    "deadline": "TIMESTAMP",
    "origin": "STRING",
}


def reconcile_tables(names: Names) -> list[str]:
    """The statements that make the tables of a pair; their columns do not depend on the rules."""
    own = {**TABLE_PROPERTIES, **ROWS_APART}
    return [
        NAMESPACE_STATEMENT,
        table_statement(names.states_table, STATES, own),
        table_statement(names.results_table, CHANGES, own),
        table_statement(names.partials_table, PARTIALS),
        *dead_letter_tables(),
    ]


# The least of these is the first arrival of the newest version.
VERSION_DESC = "-unix_micros(version)"
# What a version says, as far as a verdict asks, as one number: see `Reading.content` of the state.
_LINE = 112
CONTENT = f"xxhash64(hash, action <=> '{DELETE}', hash_version)"


def message_columns(side: str) -> list[str]:
    """One message as the state of its key, as SQL over the view of messages; NULL for the other side."""
    parts = {
        side: f"struct({', '.join(map(_message_field, NEWEST))})",
        f"{side}_first": f"struct({', '.join(map(_message_field, FIRST))})",
        f"{side}_end": "struct(partition, offset)",
        f"{side}_greatest": f"struct(version, {CONTENT} AS content)",
        f"{side}_least": f"struct({VERSION_DESC} AS version_desc, {CONTENT} AS content)",
    }
    own = f"side = '{side}'"
    return [f"{_if(own, sql)} AS {name}" for name, sql in parts.items()]


def _if(condition: str, value: str) -> str:
    whole = f"IF({condition}, {value}, NULL)"
    return whole if len(whole) <= _LINE else f"IF({condition},\n  {value}, NULL)"


def _message_field(name: str) -> str:
    renamed = {"version_desc": VERSION_DESC, "read_at": "seen_at"}
    return f"{renamed[name]} AS {name}" if name in renamed else name


def merge_columns(side: str) -> list[str]:
    """Both parts of a state merged, as aggregates over states of one key."""
    columns = {side: "max", f"{side}_first": "min", f"{side}_end": "max"}
    columns |= {f"{side}_greatest": "max", f"{side}_least": "min"}
    return [f"{function}({name}) AS {name}" for name, function in columns.items()]


def merged_query(states: str, *more: str) -> str:
    """The state of each key: the merge of all its rows in `states`, and `more` aggregates of them."""
    columns = ["pk", "max(window_start) AS window_start"]
    columns += [column for side in SIDES for column in merge_columns(side)]
    return select([*columns, *more], f"FROM {states}", "GROUP BY pk")


def state_statements(names: Names) -> list[str]:
    """Messages as states, and the state of each key, for the file that people read."""
    messages = select(
        ["*", *(column for side in SIDES for column in message_columns(side))],
        f"FROM {names.timed}",
    )
    columns = ["pk", *(column for side in SIDES for column in merge_columns(side))]
    columns += [
        "TRUE AS whole",
        "TRUE AS ended",
        "session.batch_time AS judged_at",
        "'batch' AS origin",
    ]
    states = select(columns, f"FROM {names.message_states}", "GROUP BY pk")
    return [
        view(
            names.message_states,
            "Each message as the state that its key would have if this were its only message. version_desc is"
            " negated, so that a minimum finds the newest version.",
            messages,
        ),
        view(
            names.states,
            "The state of each key. Per side: the newest version, when that version first arrived (_first), the"
            " highest partition and offset (_end), and the content of the newest version, which differs between"
            " _greatest and _least if that version came with two. Maxima and minima only, so the order of arrival"
            " changes nothing. Here all"
            " records are known (whole) and no more will come (ended), so every key is due; a job replaces this"
            " view with the states of its batch, whose keys may have to wait.",
            states,
        ),
    ]


def window_states_statement(names: Names, limits: Limits) -> str:
    """The aggregation of the streaming query: states of keys in windows of the horizon."""
    seconds = limits.horizon // timedelta(seconds=1)
    columns = ["pk", "window.start AS window_start"]
    columns += [column for side in SIDES for column in merge_columns(side)]
    query = select(
        [*columns, "count(*) AS records"], f"FROM {names.message_states}", "GROUP BY pk, window"
    )
    words = (
        f"The states of the streaming query, one for each key and window of {seconds:,} seconds: when a window"
        " has ended, Spark drops its states. The table below keeps them."
    )
    return view(names.window_states, words, query, step="states view")


def keep_statement(names: Names) -> str:
    words = (
        "States are only ever added: the state of a key is the merge of all its rows. The job replaces this"
        " view with the states of the batch and the batch's time."
    )
    keep = f"INSERT INTO {names.states_table} BY NAME\nSELECT *\nFROM {names.window_states}"
    return statement("states", words, keep)
