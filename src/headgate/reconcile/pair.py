"""A pair of rows as a person writes it in a test, made into the state that a stream would have of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from headgate.conditions.evaluator.twin_values import Value
from headgate.quality.spec.limits import limits_of
from headgate.quality.spec.reconcile_section import Reconcile
from headgate.quality.spec.rule_set import RuleTable, Side
from headgate.reconcile.reconcile_state import UPSERT, Reading, State, merge_all, of_message
from headgate.reconcile.verdict import Verdict, judge


def said_row(table: RuleTable, row: Mapping[str, Value]) -> dict[str, Value]:
    """The row as rules see it: an on-prem message that names no action is an upsert."""
    declared, source = table.reconcile or Reconcile(), table.sources["onprem"]
    key = f"{source.alias}.{declared.action}"
    there = _is_there(row, source.alias)
    if there and declared.action in source.columns and row.get(key) is None:
        return {**row, key: UPSERT}
    return dict(row)


def pair_verdict_when_due(table: RuleTable, row: Mapping[str, Value], at: datetime) -> Verdict:
    """The verdict on the pair once nothing more is waited for; both sides were read at one time."""
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

    def said(name: str | None) -> Value:
        return row.get(f"{source.alias}.{name}") if name else None

    assert table.hash is not None
    hash_ = said(table.hash.onprem_field if side == "onprem" else table.hash.cloud_field)
    version, number = said(source.event_time), said(declared.hash_version)
    action = said(declared.action) if side == "onprem" else None
    return Reading(
        version=version if isinstance(version, datetime) else at,
        partition=0,
        offset=0,
        hash=None if hash_ is None else str(hash_),
        hash_version=number if isinstance(number, int) else None,
        action=None if action is None else str(action),
        read_at=at,
    )
