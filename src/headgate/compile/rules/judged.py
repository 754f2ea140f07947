"""The judged rows: each with the verdict of the rules, or none."""

from __future__ import annotations

import textwrap

from headgate.compile.fragments import call, lines, split_literals
from headgate.compile.rules.model import JudgedRule, JudgedTable
from headgate.compile.rules.names import Names
from headgate.compile.rules.source import PLACE, Source
from headgate.compile.rules.statement import nested, select, view
from headgate.compile.rules.unique import unique_rules, unique_statements
from headgate.compile.rules.verdicts import all_rules, rule_verdict, verdict_case
from headgate.expr.literals import spark_column, spark_identifier, spark_literal
from headgate.spec.ruleset import RuleTable

ACTION, UPSERT = "action", "UPSERT"


def rules_view(judged: JudgedTable) -> str:
    """All that is said of a rule, as a table."""
    rows = [_row(at, rule) for at, rule in enumerate(all_rules(judged), 1)]
    names = "place, name, status, metric, severity, on_fail, reason"
    words = "The rules in the order that decides: the first that matches gives a row its status."
    if not rows:
        nothing = "(0, '', '', '', '', '', '')"
        query = f"SELECT *\nFROM VALUES\n  {nothing}\nAS rules ({names})\nWHERE FALSE"
    else:
        query = f"SELECT *\nFROM VALUES\n  {textwrap.indent(lines(rows), '  ').strip()}\nAS rules ({names})"
    return view(Names(judged.table.name).rules, words, query)


def _row(at: int, rule: JudgedRule) -> str:
    texts = (rule.name, rule.status, rule.metric, rule.severity, rule.on_fail, rule.reason)
    return split_literals(f"({at}, {', '.join(spark_literal(text) for text in texts)})")


def judged_statements(judged: JudgedTable, sources: tuple[Source, ...]) -> list[str]:
    if judged.table.is_pair:
        return [*(_newest(source) for source in sources), _pairs(judged, sources)]
    source = sources[0]
    before = unique_statements(judged, source) if unique_rules(judged) else []
    return [*before, _rows(judged, source, bool(before))]


def _rows(judged: JudgedTable, source: Source, with_keys: bool) -> str:
    names = Names(judged.table.name)
    start = names.rows if with_keys else source.names.rows
    at = [] if with_keys else [f"{source.at()} AS _at"]
    verdict = f"{rule_verdict(judged.rules)} AS _verdict"
    words = "The rows, each with the verdict of the rules that match it, or NULL."
    return view(names.judged, words, select(["*", *at, verdict], f"FROM {start}"))


def _newest(source: Source) -> str:
    key = spark_identifier(source.pk)
    order = ", ".join(f"{column} DESC" for column in _order(source))
    numbered = select(
        ["*", f"row_number() OVER (PARTITION BY {key} ORDER BY {order}) AS _nth"],
        f"FROM {source.names.rows}",
    )
    words = "The newest row of each key."
    query = f"SELECT * EXCEPT (_nth)\nFROM {nested(numbered)}\nWHERE _nth = 1"
    return view(source.names.newest, words, query)


def _order(source: Source) -> list[str]:
    """What makes a row newer. A table has no offsets: there the values decide, so that it is always
    the same row; one without an event time comes last."""
    if source.declared.topic is not None:
        return [source.at(), "kafka_partition", "kafka_offset"]
    said = [source.declared.event_time] if source.declared.event_time else []
    return [spark_identifier(name) for name in dict.fromkeys([*said, *source.types])]


def _pairs(judged: JudgedTable, sources: tuple[Source, ...]) -> str:
    onprem, cloud = sources
    one, two = (spark_column(judged.table.pk, s.declared.alias) for s in sources)
    first, second = (spark_identifier(s.declared.alias) for s in sources)
    columns = [
        f"CAST(coalesce({one}, {two}) AS STRING) AS _pk",
        f"{action_of(onprem, first)} AS _action",
        *_hashes(judged.table, first, second),
        f"IF({one} IS NULL, {cloud.at(cloud.declared.alias)}, {onprem.at(onprem.declared.alias)}) AS _at",
        *(f"IF({one} IS NULL, {second}.{name}, {first}.{name}) AS {name}" for name in PLACE),
        *(f"{_struct(source)} AS _{source.declared.alias}" for source in sources),
        f"{rule_verdict(judged.rules)} AS _by_rules",
    ]
    pairs = select(
        columns,
        f"FROM {onprem.names.newest} AS {first}",
        f"FULL OUTER JOIN {cloud.names.newest} AS {second}",
        f"  ON {one} = {two}",
    )
    words = (
        "Pairs of the newest rows of a key, each with the verdict of the rules that match it. A pair that"
        " no rule matches has the verdict of its hashes."
    )
    verdict = f"{call('coalesce', ['_by_rules', verdict_case()])} AS _verdict"
    query = select(["* EXCEPT (_by_rules)", verdict], f"FROM {nested(pairs)}")
    return view(Names(judged.table.name).judged, words, query)


def action_of(source: Source, alias: str = "") -> str:
    """What a row says was done; without a word it was an upsert."""
    if ACTION not in source.types:
        return "CAST(NULL AS STRING)"
    action = spark_column(ACTION, alias)
    said = f"coalesce(CAST({action} AS STRING), '{UPSERT}')"
    if not alias:
        return said
    return f"IF({spark_column(source.pk, alias)} IS NULL, NULL, {said})"


def _hashes(table: RuleTable, first: str, second: str) -> list[str]:
    if table.hash is None:
        return []
    return [
        f"{first}.{spark_identifier(table.hash.onprem_field)} AS _hash_onprem",
        f"{second}.{spark_identifier(table.hash.cloud_field)} AS _hash_cloud",
    ]


def _struct(source: Source) -> str:
    alias = source.declared.alias
    fields = [f"{spark_column(name, alias)} AS {spark_identifier(name)}" for name in source.types]
    return f"struct({', '.join(fields)})"
