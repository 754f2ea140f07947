"""Uniqueness: the key of each row, and whether it was met before within the rule's horizon.

Met before means: by a row of an earlier batch whose event time is at most the horizon away, or by
a row of this batch that stands before it in the order of event time, partition and offset. Keys of
the batch itself may stand in the key table already, when the batch is done again: they are left
out by its time.
"""

from __future__ import annotations

from collections.abc import Sequence

from headgate.compile.fragments import call
from headgate.compile.rules.masks import again
from headgate.compile.rules.model import JudgedRule, JudgedTable, Unique
from headgate.compile.rules.names import Names
from headgate.compile.rules.source import Source
from headgate.compile.rules.statement import nested, select, statement, view
from headgate.expr.literals import spark_identifier, spark_literal

Placed = tuple[int, JudgedRule, Unique]
_ORDER = "_at, kafka_partition, kafka_offset"
TIME_OPTIONS = r"map('timestampFormat', 'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSSXXX')"


def unique_rules(judged: JudgedTable) -> list[Placed]:
    return [(at, rule, rule.unique) for at, rule in enumerate(judged.rules) if rule.unique]


def has_key_table(judged: JudgedTable) -> bool:
    """Only a stream has earlier batches; a table or a pair is judged as a whole."""
    return bool(unique_rules(judged)) and judged.table.first.topic is not None


def unique_statements(judged: JudgedTable, source: Source) -> list[str]:
    """The rows with `_again_<n>` for each rule of uniqueness."""
    names, rules = Names(judged.table.name), unique_rules(judged)
    keys = [f"{key_of(unique.fields, source)} AS {_key(at)}" for at, _, unique in rules]
    keyed = select(["*", f"{source.at()} AS _at", *keys], f"FROM {source.names.rows}")
    words = "The keys that must not come twice, exactly as their values are; with a NULL there is no key."
    return [view(names.keyed, words, keyed), _met(judged, names, rules)]


def key_of(fields: Sequence[str], source: Source) -> str:
    """Values as exact JSON, hashed where one is sensitive; NULL where a value is."""
    pairs = [f"{spark_literal(name)}, {spark_identifier(name)}" for name in fields]
    text = f"to_json({call('named_struct', pairs)}, {TIME_OPTIONS})"
    if set(fields) & source.declared.sensitive:
        text = f"sha2({text}, 256)"
    missing = " OR ".join(f"{spark_identifier(name)} IS NULL" for name in fields)
    return call("IF", [missing, "NULL", text])


def _met(judged: JudgedTable, names: Names, rules: Sequence[Placed]) -> str:
    columns = [_again(judged, at, unique) for at, _, unique in rules]
    joins = [_join(names, at, rule) for at, rule, _ in rules] if has_key_table(judged) else []
    words = (
        "Whether the key was met before: in this batch, or within the horizon in an earlier one."
    )
    query = select([f"{names.keyed}.*", *columns], f"FROM {names.keyed}", *joins)
    return view(names.rows, words, query)


def _again(judged: JudgedTable, at: int, unique: Unique) -> str:
    micros = int(unique.horizon.total_seconds()) * 1_000_000
    window = f"OVER (PARTITION BY {_key(at)} ORDER BY {_ORDER})"
    here = f"unix_micros(_at) - unix_micros(lag(_at) {window}) <= {micros}L"
    tests = [f"coalesce({here}, FALSE)"]
    if has_key_table(judged):
        near = f"at -> abs(at - unix_micros(_at)) <= {micros}L"
        tests.append(f"coalesce(exists(_seen_{at}.times, {near}), FALSE)")
    either = "\n    OR ".join(tests)
    return f"{_key(at)} IS NOT NULL\n  AND (\n    {either}\n  ) AS {again(at)}"


def _join(names: Names, at: int, rule: JudgedRule) -> str:
    seen = select(
        ["key", "collect_list(unix_micros(event_time)) AS times"],
        f"FROM {names.keys_table}",
        f"WHERE rule = {spark_literal(rule.name)} AND batch_time <> session.batch_time",
        "GROUP BY key",
    )
    return f"LEFT JOIN {nested(seen, f'_seen_{at}')}\n  ON _seen_{at}.key = {_key(at)}"


def keys_statement(judged: JudgedTable) -> str:
    """The keys of this batch, for the batches to come."""
    names, rules = Names(judged.table.name), unique_rules(judged)
    told = [
        f"named_struct('rule', {spark_literal(rule.name)}, 'key', {_key(at)})"
        for at, rule, _ in rules
    ]
    query = select(
        [
            "rule",
            "key",
            "_at AS event_time",
            "kafka_partition",
            "kafka_offset",
            "session.batch_time AS batch_time",
        ],
        f"FROM {names.keyed}",
        f"LATERAL VIEW inline({call('array', told)}) keys AS rule, key",
        "WHERE key IS NOT NULL",
    )
    words = "Remember the keys, for the batches to come."
    return statement("keys", words, f"INSERT INTO {names.keys_table} BY NAME\n{query}")


def _key(at: int) -> str:
    return f"_key_{at}"
