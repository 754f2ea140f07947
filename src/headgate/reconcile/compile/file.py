"""The SQL file of a reconciled pair: from states to verdicts, and all statements in the order of the data.

`VerdictViews` go from states to verdicts: the facts, the decision table, and the rules of the set on what is settled.
Each view adds one step to the one below. A batch, a sweep, the permanent views and whoever runs the file by hand
bind other states below them, so that the text stands once.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headgate.conditions.ast import And, Column, Expr, Not
from headgate.conditions.literals import spark_column, spark_identifier, spark_literal
from headgate.core.sql.fragments import call, filled
from headgate.core.sql.script import Section, Sections, case, nested, select, statement, view
from headgate.declarations.types import BOOLEAN, in_words
from headgate.quality.compile.resolve import JudgedRule, JudgedTable
from headgate.quality.compile.results import (
    CLEAN,
    FAILED,
    insert_dead_letters,
    rule_verdict,
)
from headgate.quality.compile.source import (
    Source,
    dead_letters_query,
    source_statements,
    sources_of,
    topic_literal,
    window_start,
)
from headgate.quality.compile.tables import RECONCILE, Names
from headgate.quality.compile.unique import TIME_OPTIONS
from headgate.quality.compile.windows import metrics_sections, partials_statements
from headgate.quality.spec.reconcile_checks import Limits, limits_of
from headgate.quality.spec.reconcile_section import Reconcile
from headgate.quality.spec.rule_checks import VERDICT_PREFIX
from headgate.reconcile.compile.states import (
    CHANGES,
    declared_columns,
    keep_statement,
    message_statements,
    other_columns,
    state_statements,
    window_states_statement,
)
from headgate.reconcile.decision_table import Decision, decisions, settled_decisions, statuses
from headgate.reconcile.state import ACTIONS, DEADLINE, DELETE, FACTS, fact_sql, placed

_AT = "judged_at"
_NOT_DUE = Not(Column("due", BOOLEAN))
_ARRIVED = "greatest(onprem_first.read_at, cloud_first.read_at)"
_STATUS = "coalesce(_rule.status, _row.status)"
_SETTLED_BY = case(
    [
        ("is_pending", "NULL"),
        ("NOT has_waited", "'records'"),
        (f"{_AT} >= deadline", "'deadline'"),
    ],
    "'end_of_input'",
)
_PLAIN = 30  # a column shorter than this may share its line
PENDING = tuple(name for name, status in statuses().items() if status.rollup == "pending")


@dataclass(frozen=True)
class VerdictViews:
    """The views that lead from the states of a pair to its results."""

    judged: JudgedTable
    sources: dict[str, Source]
    limits: Limits

    @property
    def names(self) -> Names:
        return Names(self.judged.table.name, RECONCILE)

    def statements(self) -> list[str]:
        names, rules = self.names, self.judged.rules
        found = [
            view(
                names.facts,
                self._fact_words(),
                self._facts(),
            ),
            view(
                names.decided,
                ("_rule: the first rule that matches, in this order, and the names of all that match. " if rules else "")
                + "_open and _final: the first row of the decision table that matches, for a key that may still wait"
                " for a side and for a key that is due. The numbers are those of the one table in the documentation;"
                " rows that can decide both before and after the deadline stand in both lists.",
                self._decided(),
            ),
            view(
                names.verdicts,
                self._verdict_words(),
                self._verdicts(),
            ),
            view(
                names.results,
                "Every key with its verdict. event_time is when it was reached, verdict the status by the decision"
                " table alone, provisional the status by the table of a waiting key if it were due now.",
                self._results(),
            ),
        ]  # fmt: skip
        if self._view_name:
            words = "Each key with both hashes and its status."
            found.append(view(spark_identifier(self._view_name), words, self._pairs()))
        return found

    def _fact_words(self) -> str:
        window, wait = self.limits.window, self.limits.window + self.limits.grace
        aliases = " and ".join(f"{alias} is {side}" for side, alias, _ in self._sides())
        return (
            f"The facts that rules and decision table test; {aliases}. A key is late if its sides arrived more than"
            f" the window of {in_words(window).lower()} apart, and due {in_words(wait).lower()} (window and grace) after the"
            " later arrival, or at the end of all input as here. A NULL hash is invalid on-prem; in the cloud it"
            " says that there is no row. stale: the newest version is not in the last record; conflict: it came"
            " with two contents."
        )

    def _verdict_words(self) -> str:
        by_rule = (
            "2. one that a rule matches gets the verdict of its first rule, whatever the table says; 3. any other"
            if self.judged.rules
            else "2. any other"
        )
        return (
            "The verdict of a key: 1. one that is not due waits if its _open row is pending, which never happens"
            f" here; {by_rule} gets the verdict of the decision table (_row). It was reached at _at: when the later"
            " side arrived or, where a job would have waited for more (has_waited), at the deadline."
        )

    @property
    def _view_name(self) -> str | None:
        """Another name for the view of pairs that the declaration asks for, as the documents have it."""
        declared = self.judged.table.reconcile
        return declared.view if declared else None

    def _facts(self) -> str:
        facts = [(fact.name, fact_sql(fact, self.limits, _AT)) for fact in FACTS]
        columns = [f"{sql} AS {name}" for name, sql in facts if sql != name]
        sides = [f"{self._side(side, source)} AS {alias}" for side, alias, source in self._sides()]
        deadline = f"{placed(DEADLINE, self.limits, _AT)} AS deadline"
        return select(["*", *sides, *columns, deadline], f"FROM {self.names.states}")

    def _decided(self) -> str:
        columns = [
            f"{rule_verdict(self.judged.rules)} AS _rule",
            f"{rule_verdict(rows_while_open(), 'row')} AS _open",
            f"{rule_verdict(settled_decisions(), 'row')} AS _final",
        ]
        return select(["*", *columns], f"FROM {self.names.facts}")

    def _verdicts(self) -> str:
        """What waited belongs to the time of its deadline, everything else to that of its arrival."""
        waits = f"_open.status IN ({', '.join(map(spark_literal, PENDING))})"
        columns = [
            "* EXCEPT (_rule)",
            "IF(due, _final, _open) AS _row",
            f"IF(NOT due AND {waits}, NULL, _rule) AS _rule",
            f"NOT due AND {waits} AS is_pending",
            f"due AND {waits} AS has_waited",
            f"IF(due AND {waits} AND {_AT} >= deadline, deadline, {_ARRIVED}) AS _at",
        ]
        return select(columns, f"FROM {self.names.decided}")

    def _results(self) -> str:
        columns = self._columns().items()
        listed = [name if sql == name else f"{sql} AS {name}" for name, sql in columns]
        return f"SELECT\n{textwrap.indent(filled(listed, least=_PLAIN), '  ')}\nFROM {self.names.verdicts}"

    def _pairs(self) -> str:
        """One row for each key, with what else the on-prem message says."""
        table, source = self.judged.table, self.sources["onprem"]
        others = other_columns(table, "onprem", source)
        columns = [spark_column(name, source.declared.alias) for name in others]
        key = spark_identifier(table.pk)
        columns += ["pk" if key == "pk" else f"pk AS {key}", "hash_onprem", "hash_cloud"]
        return select([*columns, f"{_STATUS} AS dq_status"], f"FROM {self.names.verdicts}")

    def _sides(self) -> list[tuple[str, str, Source]]:
        return [(side, source.declared.alias, source) for side, source in self.sources.items()]

    def _side(self, side: str, source: Source) -> str:
        """The declared columns of one side; NULL where it has said nothing."""
        columns = declared_columns(self.judged.table, side, source)
        fields = filled([f"{sql} AS {spark_identifier(name)}" for name, sql in columns.items()])
        return f"IF({side} IS NULL, NULL, struct(\n{textwrap.indent(fields, '  ')}\n))"

    def _columns(self) -> dict[str, str]:
        rollup = render_rollup(self.judged.rules)
        by_table = f"array(concat('{VERDICT_PREFIX}', lower(_row.status)))"
        return {
            "pk": "pk",
            "action": "onprem.action",
            "dq_status": _STATUS,
            "dq_reason": "coalesce(_rule.reason, _row.reason)",
            "dq_severity": "coalesce(_rule.severity, _row.severity)",
            "dq_rules": f"IF(is_pending, NULL, coalesce(_rule.rules, {by_table}))",
            "rollup": rollup,
            "dq_outcome": f"decode(rollup, 'pending', 'pending', 'valid', '{CLEAN}', '{FAILED}')",
            "hash_onprem": "hash_onprem",
            "hash_cloud": "hash_cloud",
            "event_time": "_at",
            "window_start": window_start("_at", self.judged.rule_set.metrics.window),
            "row": self._row(),
            "processing_time": _AT,
            **self._place(),
            "id": _id(self.judged.table.name),
            "verdict": "_row.status",
            "provisional": "IF(is_pending, _final.status, NULL)",
            "settled": "NOT is_pending",
            "settled_by": _SETTLED_BY,
            "within_grace": "IF(is_pending, NULL, within_grace)",
            "late": "late",
            "stale": "stale",
            "conflict": "conflict",
            "onprem_version": "onprem.version",
            "cloud_version": "cloud.version",
            "onprem_read_at": "onprem_first.read_at",
            "cloud_read_at": "cloud_first.read_at",
            "deadline": "deadline",
            "origin": "origin",
        }

    def _row(self) -> str:
        """Both sides as text, where something is wrong with them."""
        pairs = [f"{spark_literal(alias)}, {alias}" for _, alias, _ in self._sides()]
        text = f"to_json({call('named_struct', pairs)}, {TIME_OPTIONS})"
        return call("IF", ["rollup IN ('pending', 'valid')", "NULL", text])

    def _place(self) -> dict[str, str]:
        """Of the newest record on-prem, or of the only one."""
        onprem, cloud = (topic_literal(s.declared.topic or "") for s in self.sources.values())
        fields = {"partition": "partition", "offset": "offset", "timestamp": "read_at"}
        return {
            "kafka_topic": f"IF(onprem IS NULL, {cloud}, {onprem})",
            **{
                f"kafka_{name}": f"coalesce(onprem, cloud).{field}"
                for name, field in fields.items()
            },
        }


def _id(table: str) -> str:
    """As `change_id` makes it."""
    versions = ", ".join(
        f"coalesce(CAST(unix_micros({side}.version) AS STRING), '-')"
        for side in ("onprem", "cloud")
    )
    text = f"concat_ws('\\n', dq_status, {versions}, {spark_literal(table)}, pk)"
    return f"sha2({text}, 256)"


def rows_while_open() -> list[Decision]:
    """The rows as they are before the deadline, without those that another then forestalls."""
    found: list[Decision] = []
    before: list[set[Expr]] = []
    for row in decisions():
        whole = row.condition.items if isinstance(row.condition, And) else (row.condition,)
        items = tuple(item for item in whole if item != _NOT_DUE)
        if not any(other <= set(items) for other in before):
            found.append(replace(row, condition=items[0] if len(items) == 1 else And(items)))
        before.append(set(items))
    return found


def render_rollup(rules: Sequence[JudgedRule]) -> str:
    """A status that the table knows is rolled up as there; another is invalid where it is an ERROR.

    Else the key keeps the roll-up of its verdict: a warning does not make a missing row valid.
    """
    known = statuses()
    own = dict.fromkeys(rule.status for rule in rules if rule.status not in known)
    listed = ", ".join(map(spark_literal, own))
    status = f"IF(_rule.status IN ({listed}), _row.status, dq_status)" if own else "dq_status"
    groups = {
        rollup: [name for name, status in known.items() if status.rollup == rollup]
        for rollup in ("valid", "missing", "pending")
    }
    branches = [
        (f"{status} IN ({', '.join(map(spark_literal, names))})", f"'{rollup}'")
        for rollup, names in groups.items()
    ]
    if own:
        branches.insert(
            0, (f"_rule.status IN ({listed}) AND _rule.severity = 'ERROR'", "'invalid'")
        )
    return case(branches, "'invalid'")


def reconcile_sources(judged: JudgedTable) -> dict[str, Source]:
    """Both sides; a tombstone of either is a delete, and the first says what was done."""
    declared = judged.table.reconcile or Reconcile()
    sources = dict(zip(judged.table.sources, sources_of(judged), strict=True))
    sources = {side: replace(source, reads_tombstones=True) for side, source in sources.items()}
    first = sources["onprem"]
    if declared.action in first.types:
        sources["onprem"] = replace(first, action=declared.action, actions=ACTIONS)
    return sources


def reconcile_sections(judged: JudgedTable) -> Sections:
    names, sources = Names(judged.table.name, RECONCILE), reconcile_sources(judged)
    limits = limits_of(judged.table.reconcile or Reconcile())
    facts, decided, verdicts, *results = VerdictViews(judged, sources, limits).statements()
    count = len(judged.rules)
    views = [
        *(
            Section(f"the records of topic {source.declared.topic}", source_statements(source))
            for source in sources.values()
        ),
        Section(
            "messages of both sides, and the state of each key",
            [*message_statements(judged.table, names, sources), *state_statements(names)],
        ),
        Section("the facts that rules and decision table test", [facts]),
        Section(
            f"the rules ({count}) and the decision table" if count else "the decision table",
            [decided, verdicts],
        ),
        Section(f"{names.results}: every key with its verdict", results),
        *metrics_sections(judged, names),
    ]
    engine = [
        window_states_statement(names, limits),
        keep_statement(names),
        _accept(names),
        *partials_statements(judged, names),
        _outcomes(names, sources),
        _counts(names),
        insert_dead_letters([dead_letters_query(source, names.job) for source in sources.values()]),
    ]
    return Sections(views, engine)


def _accept(names: Names) -> str:
    words = (
        "Every change of a verdict is kept: it is the audit of the pair. The job replaces this view with the"
        " results that are a change."
    )
    columns = textwrap.indent(filled([name for name in CHANGES if name != "revision"]), "  ")
    query = f"SELECT\n{columns},\n  session.batch_revision AS revision\nFROM {names.changes}"
    return statement("accept", words, f"INSERT INTO {names.results_table} BY NAME\n{query}")


def _outcomes(names: Names, sources: dict[str, Source]) -> str:
    """What became of every record of both topics."""
    reads = [
        f"SELECT '{side}' AS side, kafka_value, _reason_code FROM {source.names.read}"
        for side, source in sources.items()
    ]
    query = f"""SELECT
  side,
  CASE
    WHEN _reason_code IS NOT NULL THEN 'refused'
    WHEN kafka_value IS NULL THEN 'tombstone'
    ELSE 'accepted'
  END AS outcome,
  _reason_code AS reason,
  count(*) AS n
FROM {nested(chr(10).join([reads[0], "UNION ALL", reads[1]]))}
GROUP BY ALL"""
    return statement("outcomes", "What became of every record: each has one outcome.", query)


def _counts(names: Names) -> str:
    """What is counted by offsets: deletes, and what came more than once within these records."""
    same = f"""SELECT side, action <=> '{DELETE}' AS is_delete, count(*) AS n
FROM {names.messages}
GROUP BY side, pk, version, hash, action <=> '{DELETE}'"""
    query = f"""SELECT
  side, sum(n) AS messages, sum(IF(is_delete, n, 0L)) AS deletes, sum(n - 1) AS duplicates
FROM {nested(same)}
GROUP BY side"""
    words = (
        "A duplicate is the same key, version and hash at another offset; whether an earlier batch had it, the"
        " table of states knows."
    )
    return statement("counts", words, query)
