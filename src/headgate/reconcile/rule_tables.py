"""What reconciliation gives to rule tables with two sources: SQL, tables, views, and verdicts on single rows.

`PAIRS` is loaded by name (`headgate.app`); quality knows its interface only, `quality.pairs.PairSupport`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from headgate.conditions.evaluator.values import Value
from headgate.core.sql.script import Script, Sections
from headgate.quality.compile.resolve import JudgedRule, JudgedTable
from headgate.quality.compile.tables import Names
from headgate.quality.pairs import PairSupport
from headgate.quality.spec.reconcile_checks import limits_of
from headgate.quality.spec.reconcile_section import Reconcile
from headgate.quality.spec.rule_set import RuleTable, Side
from headgate.reconcile.compile.file import reconcile_sections
from headgate.reconcile.compile.states import reconcile_tables
from headgate.reconcile.compile.views import reconcile_views
from headgate.reconcile.decision_table import Verdict, judge, verdict_rules
from headgate.reconcile.state import UPSERT, Reading, State, merge_all, of_message


class _Pairs:
    """Pairs as quality asks for them; nothing is kept between calls."""

    def file_sections(self, judged: JudgedTable) -> Sections:
        return reconcile_sections(judged)

    def verdict_rules(self) -> tuple[JudgedRule, ...]:
        return verdict_rules()

    def table_statements(self, names: Names) -> list[str]:
        return reconcile_tables(names)

    def permanent_views(self, names: Names, script: Script, pairs_view: str | None) -> list[str]:
        return reconcile_views(names, script, pairs_view)

    def row_with_action(self, table: RuleTable, row: Mapping[str, Value]) -> dict[str, Value]:
        declared, source = table.reconcile or Reconcile(), table.sources["onprem"]
        key = f"{source.alias}.{declared.action}"
        there = _is_there(row, source.alias)
        if there and declared.action in source.columns and row.get(key) is None:
            return {**row, key: UPSERT}
        return dict(row)

    def verdict_when_due(self, table: RuleTable, row: Mapping[str, Value], at: datetime) -> Verdict:
        limits = limits_of(table.reconcile or Reconcile())
        parts = [
            of_message(side, "", _reading(table, side, row, at))
            for side, source in table.sides.items()
            if _is_there(row, source.alias)
        ]
        state = merge_all(parts) if parts else State("")
        return judge(state, at + limits.wait, limits)


def _is_there(row: Mapping[str, Value], alias: str) -> bool:
    return any(value is not None for key, value in row.items() if key.startswith(f"{alias}."))


def _reading(table: RuleTable, side: Side, row: Mapping[str, Value], at: datetime) -> Reading:
    source, declared = table.sources[side], table.reconcile or Reconcile()

    def value_of(name: str | None) -> Value:
        return row.get(f"{source.alias}.{name}") if name else None

    assert table.hash is not None
    hash_ = value_of(table.hash.onprem_field if side == "onprem" else table.hash.cloud_field)
    version, number = value_of(source.event_time), value_of(declared.hash_version)
    action = value_of(declared.action) if side == "onprem" else None
    return Reading(
        version=version if isinstance(version, datetime) else at,
        partition=0,
        offset=0,
        hash=None if hash_ is None else str(hash_),
        hash_version=number if isinstance(number, int) else None,
        action=None if action is None else str(action),
        read_at=at,
    )


PAIRS: PairSupport = _Pairs()
