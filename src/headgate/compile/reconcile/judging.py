"""States → verdicts in SQL: the facts, the decision table, and the rules of the set on what is settled."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from headgate.compile.fragments import call
from headgate.compile.reconcile.decisions import Decision, decisions, settled_decisions, statuses
from headgate.compile.reconcile.facts import DEADLINE, FACTS, fact_sql, placed
from headgate.compile.reconcile.limits import Limits
from headgate.compile.reconcile.seen import declared_columns
from headgate.compile.rules.model import JudgedRule, JudgedTable
from headgate.compile.rules.results import CLEAN, FAILED
from headgate.compile.rules.source import Source, topic_literal, window_start
from headgate.compile.rules.statement import case, nested, select
from headgate.compile.rules.unique import TIME_OPTIONS
from headgate.compile.rules.verdicts import PREFIX, rule_verdict
from headgate.expr.literals import spark_literal
from headgate.expr.spark import to_spark
from headgate.expr.tree import And, Column, Expr, Not
from headgate.spec.types import BOOLEAN

_WAITS = Not(Column("due", BOOLEAN))
_ARRIVED = "greatest(onprem_first.read_at, cloud_first.read_at)"
PENDING = "pending"
_IS_PENDING = f"_row.rollup = '{PENDING}'"
_BY_TABLE = f"array(concat('{PREFIX}', lower(_row.status)))"
_RULES = f"coalesce(_verdict.rules, IF({_IS_PENDING}, NULL, {_BY_TABLE}))"
_OUTCOME = (
    f"CASE WHEN _rollup = '{PENDING}' THEN '{PENDING}'"
    f" WHEN _rollup = 'valid' THEN '{CLEAN}' ELSE '{FAILED}' END"
)


@dataclass(frozen=True)
class Judging:
    """How states are judged: `at` is the time, `revision` the name of what judges."""

    judged: JudgedTable
    sources: dict[str, Source]
    limits: Limits
    at: str = "judged_at"
    revision: str = "session.batch_revision"

    def query(self, states: str) -> str:
        """Every state of the view as a row of results, with both sides, and `changed` as it came."""
        columns = [name if sql == name else f"{sql} AS {name}" for name, sql in self._columns()]
        sides = [alias for _, alias, _ in self._sides()]
        return select([*columns, *sides, "changed"], f"FROM {nested(self._ruled(states))}")

    def _decided(self, states: str) -> str:
        """The facts, and by them the rows of the table: while the key waits, and once it is due."""
        told = [(fact.name, fact_sql(fact, self.limits, self.at)) for fact in FACTS]
        facts = [f"{sql} AS {name}" for name, sql in told if sql != name]
        deadline = f"{placed(DEADLINE, self.limits, self.at)} AS deadline"
        known = select(["*", *facts, deadline], f"FROM {states}")
        before = case([(to_spark(when), str(place)) for place, when in _while_open()])
        after = case([(to_spark(row.condition), str(row.place)) for row in settled_decisions()])
        return select(["*", f"{before} AS _open", f"{after} AS _final"], f"FROM {nested(known)}")

    def _told(self, states: str) -> str:
        """What is said of those rows. What waited belongs to its deadline, else to its arrival."""
        listed = textwrap.indent(",\n".join(_said(row) for row in decisions()), "  ")
        rows = f"array(\n  NULL,\n{listed}\n)"
        found = select(["*", f"{rows} AS _rows"], f"FROM {nested(self._decided(states))}")
        return select(
            [
                "* EXCEPT (_rows)",
                "get(_rows, IF(due, _final, _open)) AS _row",
                f"IF(due AND get(_rows, _open).rollup = '{PENDING}', deadline, {_ARRIVED}) AS _at",
                "get(_rows, _final).status AS _final_status",
            ],
            f"FROM {nested(found)}",
        )

    def _ruled(self, states: str) -> str:
        """With both sides as rules see them, and the verdict of the rules: NULL while the key waits."""
        rules = self.judged.rules
        sides = [f"{self._side(side, source)} AS {alias}" for side, alias, source in self._sides()]
        seen = select(["*", *sides], f"FROM {nested(self._told(states))}")
        verdict = rule_verdict(rules)
        if not rules:
            columns = ["*", f"{verdict} AS _verdict", "_row.rollup AS _rollup"]
            return select(columns, f"FROM {nested(seen)}")
        by_rules = select(["*", f"{verdict} AS _by_rules"], f"FROM {nested(seen)}")
        settled = f"IF({_IS_PENDING}, NULL, _by_rules) AS _verdict"
        ruled = select(["* EXCEPT (_by_rules)", settled], f"FROM {nested(by_rules)}")
        return select(["*", f"{render_rollup(rules)} AS _rollup"], f"FROM {nested(ruled)}")

    def _sides(self) -> list[tuple[str, str, Source]]:
        return [(side, source.declared.alias, source) for side, source in self.sources.items()]

    def _side(self, side: str, source: Source) -> str:
        """The declared columns of one side; NULL where it has said nothing."""
        columns = declared_columns(self.judged.table, side, source)
        pairs = [f"{spark_literal(name)}, {sql}" for name, sql in columns.items()]
        return call("IF", [f"{side} IS NULL", "NULL", call("named_struct", pairs)])

    def _columns(self) -> list[tuple[str, str]]:
        found = {
            "pk": "pk",
            "action": "onprem.action",
            "dq_status": "coalesce(_verdict.status, _row.status)",
            "dq_reason": "coalesce(_verdict.reason, _row.reason)",
            "dq_severity": "coalesce(_verdict.severity, _row.severity)",
            "dq_rules": _RULES,
            "dq_outcome": _OUTCOME,
            "hash_onprem": "hash_onprem",
            "hash_cloud": "hash_cloud",
            "event_time": "_at",
            "window_start": window_start("_at", self.judged.rule_set.metrics.window),
            "row": self._row(),
            "revision": self.revision,
            "processing_time": self.at,
            **self._place(),
            "id": _id(self.judged.table.name),
            "verdict": "_row.status",
            "provisional": f"IF({_IS_PENDING}, _final_status, NULL)",
            "rollup": "_rollup",
            "settled": f"_row.rollup <> '{PENDING}'",
            "within_grace": f"IF({_IS_PENDING}, NULL, within_grace)",
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
        return list(found.items())

    def _row(self) -> str:
        """Both sides as text, where something is wrong with them."""
        pairs = [f"{spark_literal(alias)}, {alias}" for _, alias, _ in self._sides()]
        text = f"to_json({call('named_struct', pairs)}, {TIME_OPTIONS})"
        return call("IF", [f"_rollup IN ('{PENDING}', 'valid')", "NULL", text])

    def _place(self) -> dict[str, str]:
        """Of the newest record on-prem, or of the only one."""
        onprem, cloud = (topic_literal(s.declared.topic or "") for s in self.sources.values())
        fields = {"partition": "partition", "offset": "offset", "timestamp": "read_at"}
        return {
            "kafka_topic": f"IF(onprem IS NULL, {cloud}, {onprem})",
            **{
                f"kafka_{name}": f"IF(onprem IS NULL, cloud.{field}, onprem.{field})"
                for name, field in fields.items()
            },
        }


def _id(table: str) -> str:
    """As `change_id` makes it."""
    return (
        "sha2(\n  concat_ws(\n    '\\n',\n    coalesce(_verdict.status, _row.status),\n"
        "    coalesce(CAST(unix_micros(onprem.version) AS STRING), '-'),\n"
        "    coalesce(CAST(unix_micros(cloud.version) AS STRING), '-'),\n"
        f"    {spark_literal(table)},\n    pk\n  ),\n  256\n)"
    )


def _while_open() -> list[tuple[int, Expr]]:
    """The rows as they are before the deadline, without those that another then forestalls."""
    found: list[tuple[int, Expr]] = []
    before: list[set[Expr]] = []
    for row in decisions():
        whole = row.condition.items if isinstance(row.condition, And) else (row.condition,)
        items = tuple(item for item in whole if item != _WAITS)
        if not any(other <= set(items) for other in before):
            found.append((row.place, items[0] if len(items) == 1 else And(items)))
        before.append(set(items))
    return found


def _said(row: Decision) -> str:
    fields = {"status": row.status, "severity": row.severity, "rollup": row.rollup}
    listed = [
        f"'{name}', {'CAST(NULL AS STRING)' if value is None else spark_literal(value)}"
        for name, value in {**fields, "reason": row.reason}.items()
    ]
    return f"named_struct({', '.join(listed)})"


def render_rollup(rules: Sequence[JudgedRule]) -> str:
    """A status that the table knows is rolled up as there; another is invalid where it is an ERROR.

    Else the key keeps the roll-up of its verdict: a warning does not make a missing row valid.
    """
    known = statuses()
    branches = {
        f"_verdict.status = {spark_literal(rule.status)}": f"'{known[rule.status].rollup}'"
        for rule in rules
        if rule.status in known
    }
    branches["_verdict.severity = 'ERROR'"] = "'invalid'"
    return case(list(branches.items()), "_row.rollup")
