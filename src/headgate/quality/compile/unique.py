"""SQL of `unique` rules: the key of each row, and whether it was seen before within the rule's horizon.

Seen before means: by a row of an earlier batch, or by one before it in this batch in the order of partition
and offset, whose event time is at most the horizon away. So the rows of a partition are judged alike wherever
a batch is cut. A table has no such order: its rows are taken in the order of event time.

Time is cut into intervals as long as the horizon. A row that is not the first of its key in an interval is a
repetition; for the first, the nearest earlier rows in the two neighbouring intervals decide. Both are running
values, so a key that comes a million times costs no more than a million keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from headgate.conditions.literals import spark_identifier, spark_literal
from headgate.core.sql.fragments import call
from headgate.core.sql.script import nested, select, statement, view
from headgate.quality.compile.resolve import JudgedRule, JudgedTable, Unique
from headgate.quality.compile.source import Source
from headgate.quality.compile.tables import Names

Placed = tuple[int, JudgedRule, Unique]
_MICROS = "unix_micros(_at)"
_OWN = "_apart, _stretch, _near, _side, _before, _below, _above"
TIME_FORMAT = r"yyyy-MM-dd\'T\'HH:mm:ss.SSSSSSXXX"
TIME_OPTIONS = f"map('timestampFormat', '{TIME_FORMAT}')"


def unique_rules(judged: JudgedTable) -> list[Placed]:
    return [(at, rule, rule.unique) for at, rule in enumerate(judged.rules) if rule.unique]


def has_key_table(judged: JudgedTable) -> bool:
    """Only a topic has earlier batches; a table is judged by its snapshot."""
    return bool(unique_rules(judged)) and judged.table.first.topic is not None


def unique_statements(judged: JudgedTable, source: Source) -> list[str]:
    """The rows with `_again_<n>` for each rule of uniqueness."""
    names, rules = Names(judged.table.name), unique_rules(judged)
    keys = [f"{key_of(unique.fields, source)} AS {_key(at)}" for at, _, unique in rules]
    keyed = select(["*", f"{source.at()} AS _at", *keys], f"FROM {source.names.rows}")
    words = "The keys that must not come twice, exactly as their values are; with a NULL there is no key."
    known = [_known_keys(names)] if has_key_table(judged) else []
    return [*known, view(names.keyed, words, keyed), _met(judged, names, rules)]


def _known_keys(names: Names) -> str:
    words = "Keys of earlier batches: none here. A job binds this view to its table of keys."
    columns = (
        "CAST(NULL AS STRING) AS rule",
        "CAST(NULL AS STRING) AS key",
        "CAST(NULL AS TIMESTAMP) AS event_time",
    )
    return view(names.known_keys, words, f"SELECT {', '.join(columns)}\nWHERE FALSE")


def key_of(fields: Sequence[str], source: Source) -> str:
    """Values as exact JSON, hashed where one is sensitive; NULL where a value is."""
    pairs = [f"{spark_literal(name)}, {spark_identifier(name)}" for name in fields]
    text = f"to_json({call('named_struct', pairs)}, {TIME_OPTIONS})"
    if set(fields) & source.hidden:
        text = f"sha2({text}, 256)"
    missing = " OR ".join(f"{spark_identifier(name)} IS NULL" for name in fields)
    return call("IF", [missing, "NULL", text])


def _met(judged: JudgedTable, names: Names, rules: Sequence[Placed]) -> str:
    words = "Whether the key was met before: by a row before it, or within the horizon in an earlier batch."
    if not has_key_table(judged):
        columns = [_in_table(judged, at, unique) for at, _, unique in rules]
        return view(names.rows, words, select(["*", *columns], f"FROM {names.keyed}"))
    query = ""
    for at, rule, unique in rules:
        start = nested(query) if query else names.keyed
        query = _again(names, start, at, rule, unique)
    return view(names.rows, words, query)


def _in_table(judged: JudgedTable, at: int, unique: Unique) -> str:
    """In the order of event time the row before is the nearest; equal times are told apart by values."""
    columns = ", ".join(spark_identifier(name) for name in judged.types)
    apart = f"{_key(at)}, IF({_key(at)} IS NULL, xxhash64({columns}), NULL)"
    before = f"lag({_MICROS}) OVER (PARTITION BY {apart} ORDER BY _at, {columns})"
    here = _within(_MICROS, before, unique)
    return f"{_key(at)} IS NOT NULL AND {here} AS {repeated_column(at)}"


def _again(names: Names, start: str, at: int, rule: JudgedRule, unique: Unique) -> str:
    seen = f"_seen_{at}.times"
    tests = [
        "_before > 0",
        _within(_MICROS, "_below", unique),
        _within("_above", _MICROS, unique),
        f"{seen}[_stretch] IS NOT NULL",
        _within(_MICROS, f"{seen}[_stretch - 1].last", unique),
        _within(f"{seen}[_stretch + 1].first", _MICROS, unique),
    ]
    either = "\n    OR ".join(tests)
    return select(
        [f"here.* EXCEPT ({_OWN})",
         f"{_key(at)} IS NOT NULL\n  AND (\n    {either}\n  ) AS {repeated_column(at)}"],
        f"FROM {nested(_beside(start, at, unique), 'here')}",
        _join(names, at, rule, unique),
        "WHERE _side = 0",
    )  # fmt: skip


def _beside(start: str, at: int, unique: Unique) -> str:
    """Each row with what stands before it: in its stretch, and nearest in those below and above.

    A row that has another of its key near it is told to the stretches beside its own as well.
    """
    apart = f"coalesce({_key(at)}, CAST(kafka_offset AS STRING)) AS _apart"
    stretch = f"{_stretch(_MICROS, unique)} AS _stretch"
    near = select(
        ["*",
         f"{_within(_MICROS, f'lag({_MICROS}) OVER near', unique)}\n"
         f"OR {_within(f'lead({_MICROS}) OVER near', _MICROS, unique)} AS _near"],
        f"FROM {nested(select(['*', apart, stretch], f'FROM {start}'))}",
        "WINDOW near AS (PARTITION BY _apart ORDER BY _at)",
    )  # fmt: skip
    return select(
        ["*",
         "count_if(_side = 0) OVER earlier AS _before",
         f"max(IF(_side = -1, {_MICROS}, NULL)) OVER earlier AS _below",
         f"min(IF(_side = 1, {_MICROS}, NULL)) OVER earlier AS _above"],
        f"FROM {nested(near)}",
        "LATERAL VIEW explode(IF(_near, array(-1, 0, 1), array(0))) sides AS _side",
        """WINDOW earlier AS (
  PARTITION BY _apart, _stretch - _side
  ORDER BY kafka_partition, kafka_offset
  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
)""",
    )  # fmt: skip


def _micros(unique: Unique) -> int:
    return unique.horizon // timedelta(microseconds=1)


def _within(later: str, earlier: str, unique: Unique) -> str:
    """Whether two times are at most the horizon apart; times that are ages apart are not."""
    return f"coalesce(try_subtract({later}, {earlier}) <= {_micros(unique)}L, FALSE)"


def _stretch(micros: str, unique: Unique) -> str:
    length = f"{_micros(unique)}L"
    return f"try_subtract({micros}, pmod({micros}, {length})) DIV {length}"


def _join(names: Names, at: int, rule: JudgedRule, unique: Unique) -> str:
    """Of each key the first and the last time in each stretch: what lies between them is as near."""
    stretch = _stretch("micros", unique)
    times = select(
        ["key", "unix_micros(event_time) AS micros"],
        f"FROM {names.known_keys}",
        f"WHERE rule = {spark_literal(rule.name)}",
    )
    stretches = select(
        [
            "key",
            f"{stretch} AS stretch",
            "struct(min(micros) AS first, max(micros) AS last) AS times",
        ],
        f"FROM {nested(times)}",
        f"GROUP BY key, {stretch}",
    )
    seen = select(
        ["key", "map_from_entries(collect_list(struct(stretch, times))) AS times"],
        f"FROM {nested(stretches)}",
        "GROUP BY key",
    )
    return f"LEFT JOIN {nested(seen, f'_seen_{at}')}\n  ON _seen_{at}.key = here._apart"


def keys_statements(judged: JudgedTable) -> list[str]:
    """The keys of earlier batches for this one, and the keys of this batch for those to come."""
    names, rules = Names(judged.table.name), unique_rules(judged)
    known = f"""SELECT rule, key, event_time FROM {names.keys_table} WHERE batch_time <> session.batch_time"""
    pairs = [
        f"named_struct('rule', {spark_literal(rule.name)}, 'key', {_key(at)})"
        for at, rule, _ in rules
    ]
    keep = f"""INSERT INTO {names.keys_table} BY NAME
SELECT rule, key, _at AS event_time, kafka_partition, kafka_offset, session.batch_time AS batch_time
FROM {names.keyed}
LATERAL VIEW inline({call("array", pairs)}) keys AS rule, key
WHERE key IS NOT NULL"""
    return [
        view(names.known_keys, "The keys of earlier batches.", known, step="view"),
        statement("keys", "The keys of this batch, for those to come.", keep),
    ]


def repeated_column(at: int) -> str:
    """The column that says whether the key of a `unique` rule was met before."""
    return f"_again_{at}"


def _key(at: int) -> str:
    return f"_key_{at}"
