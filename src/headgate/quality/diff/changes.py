"""Compares two revisions of a table's rules: in words, and by their verdicts on given rows; rendered as text."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from headgate.conditions.ast import columns_of
from headgate.quality.compile.resolve import JudgedRule, JudgedTable, rule_words
from headgate.quality.diff.rows import (
    Given,
    declared_fields,
    hidden_fields,
    masked_row,
    shown_key,
    typed_row,
)
from headgate.quality.evaluator import RowVerdict, Seen, judge_row
from headgate.quality.explain import aggregate_words, limit_words
from headgate.quality.report.rows import spread
from headgate.quality.spec.rule_set import Aggregate

SAMPLES = 20


@dataclass(frozen=True)
class RuleChange:
    """One rule or aggregate that is new, gone or different, and in what."""

    name: str
    change: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class CountChange:
    """Rows whose status a rule gives and rows that it matches, before and after."""

    rule: str
    n_before: int
    n_after: int
    matched_before: int
    matched_after: int


@dataclass(frozen=True)
class StatusChange:
    """How many rows go from one status to another."""

    before: str
    after: str
    rows: int


@dataclass(frozen=True)
class ChangedRow:
    """A row whose status changes; sensitive values are masked."""

    key: str
    before: str
    after: str
    rules_before: tuple[str, ...]
    rules_after: tuple[str, ...]
    row: Mapping[str, str]


@dataclass(frozen=True)
class RowsDiff:
    """What would change over some rows."""

    rows: int
    changed: int
    unreadable: int
    counts: tuple[CountChange, ...]
    statuses: tuple[StatusChange, ...]
    samples: tuple[ChangedRow, ...]


@dataclass(frozen=True)
class RuleDiff:
    """Two revisions of one table; `rows` is None where no rows were asked for or found."""

    table: str
    old: str
    new: str
    changes: tuple[RuleChange, ...]
    rows: RowsDiff | None = None
    notes: tuple[str, ...] = ()


def rule_changes(old: JudgedTable | None, new: JudgedTable | None) -> tuple[RuleChange, ...]:
    """Rules and aggregates, in the order of the new revision; those that are gone come last."""
    before = {rule.name: rule for rule in old.rules} if old else {}
    after = {rule.name: rule for rule in new.rules} if new else {}
    moved = _moved(list(before), list(after))
    changes = [_changed(name, before.get(name), rule, moved) for name, rule in after.items()]
    changes += [
        RuleChange(name, "removed", (f"matched when {rule_words(rule)}",))
        for name, rule in before.items()
        if name not in after
    ]
    found = [change for change in changes if change is not None]
    return (*found, *_aggregate_changes(old, new))


def _changed(
    name: str, old: JudgedRule | None, new: JudgedRule, moved: Mapping[str, str]
) -> RuleChange | None:
    if old is None:
        gives = f"gives {new.status}, {new.severity}, on_fail {new.on_fail}"
        return RuleChange(name, "added", (f"matches when {rule_words(new)}", gives))
    words = (*_differences(old, new), *([moved[name]] if name in moved else []))
    return RuleChange(name, "changed", words) if words else None


def _differences(old: JudgedRule, new: JudgedRule) -> Iterator[str]:
    if (old.condition, old.unique) != (new.condition, new.unique):
        yield f"matches when {rule_words(new)} (was: {rule_words(old)})"
    for key in ("status", "severity", "metric", "on_fail", "reason"):
        before, after = getattr(old, key), getattr(new, key)
        if before != after:
            yield f"{key}: {before} → {after}"


def _moved(before: Sequence[str], after: Sequence[str]) -> dict[str, str]:
    """Rules that stand elsewhere among those that both have: the first that matches decides."""
    shared = [name for name in after if name in set(before)]
    earlier = [name for name in before if name in set(after)]
    places = {name: at for at, name in enumerate(earlier, 1)}
    return {
        name: f"decides at place {at}, before at {places[name]} of those in both"
        for at, name in enumerate(shared, 1)
        if places[name] != at
    }


def _aggregate_changes(old: JudgedTable | None, new: JudgedTable | None) -> tuple[RuleChange, ...]:
    before = {one.name: one for one in old.aggregates} if old else {}
    after = {one.name: one for one in new.aggregates} if new else {}
    names = dict.fromkeys((*after, *before))
    found = [(name, before.get(name), after.get(name)) for name in names]
    return tuple(_aggregate_change(name, was, now) for name, was, now in found if was != now)


def _aggregate_change(name: str, old: Aggregate | None, new: Aggregate | None) -> RuleChange:
    told = [_limits(one) for one in (new, old) if one is not None]
    if old is None or new is None:
        return RuleChange(name, "removed" if new is None else "added", tuple(told))
    return RuleChange(name, "changed", (f"{told[0]} (was: {told[1]})",))


def _limits(one: Aggregate) -> str:
    limits = limit_words(one.min, one.max)
    return f"each window: {aggregate_words(one)} must be {limits}, {one.severity}"


@dataclass(frozen=True)
class _Judged:
    """A row and what both revisions say of it."""

    given: Given
    old: RowVerdict
    new: RowVerdict

    @property
    def kind(self) -> tuple[str, str]:
        return self.old.status, self.new.status


def row_changes(
    old: JudgedTable, new: JudgedTable, rows: Sequence[Given], batch_time: datetime, seed: int = 5
) -> RowsDiff:
    """What both say of the rows that both can read; a row that one of them cannot is counted."""
    before, after = Seen(), Seen()
    judged = list[_Judged]()
    for given in rows:
        was, now = typed_row(old, given), typed_row(new, given)
        if was is not None and now is not None:
            one = judge_row(old, was, batch_time, before)
            judged.append(_Judged(given, one, judge_row(new, now, batch_time, after)))
    changed = [one for one in judged if one.old.status != one.new.status]
    return RowsDiff(
        rows=len(judged),
        changed=len(changed),
        unreadable=len(rows) - len(judged),
        counts=tuple(_counts(old, new, judged)),
        statuses=_statuses(changed),
        samples=_samples(old, new, changed, seed),
    )


def _counts(old: JudgedTable, new: JudgedTable, judged: Sequence[_Judged]) -> Iterator[CountChange]:
    """Only rules that count otherwise."""
    gave = [Counter(v.rules[0] for v in found if v.rules) for found in _sides(judged)]
    matched = [Counter(name for v in found for name in v.rules) for found in _sides(judged)]
    for name in dict.fromkeys(rule.name for rule in (*new.rules, *old.rules)):
        numbers = (gave[0][name], gave[1][name], matched[0][name], matched[1][name])
        if numbers[0] != numbers[1] or numbers[2] != numbers[3]:
            yield CountChange(name, *numbers)


def _sides(judged: Sequence[_Judged]) -> tuple[list[RowVerdict], list[RowVerdict]]:
    return [one.old for one in judged], [one.new for one in judged]


def _statuses(changed: Sequence[_Judged]) -> tuple[StatusChange, ...]:
    counted = Counter(one.kind for one in changed)
    return tuple(StatusChange(*kind, rows) for kind, rows in counted.most_common())


def _samples(
    old: JudgedTable, new: JudgedTable, changed: Sequence[_Judged], seed: int
) -> tuple[ChangedRow, ...]:
    """Some of every change of status; what either revision calls sensitive is masked."""
    hidden = hidden_fields(old.table) | hidden_fields(new.table)
    declared = declared_fields(old.table, new.table)
    kinds: dict[tuple[str, str], list[_Judged]] = {}
    for one in sorted(changed, key=lambda one: _drawn(one, seed)):
        kinds.setdefault(one.kind, []).append(one)
    return tuple(
        ChangedRow(
            key=shown_key(new, one.given, hidden),
            before=one.old.status,
            after=one.new.status,
            rules_before=one.old.rules,
            rules_after=one.new.rules,
            row=masked_row(one.given, declared, hidden, _concerned(old, new, one)),
        )
        for one in spread([kinds[kind] for kind in sorted(kinds)], SAMPLES)
    )


def _concerned(old: JudgedTable, new: JudgedTable, one: _Judged) -> frozenset[str]:
    """The columns that the rules read which hold in one revision only, or differ."""
    names = set(one.old.rules) ^ set(one.new.rules) or {*one.old.rules[:1], *one.new.rules[:1]}
    rules = [rule for rule in (*old.rules, *new.rules) if rule.name in names]
    keys = [key for rule in rules if rule.condition for key in columns_of(rule.condition)]
    keys += [key for rule in rules if rule.unique for key in rule.unique.fields]
    return frozenset(key.rpartition(".")[2] for key in keys)


def _drawn(one: _Judged, seed: int) -> str:
    return hashlib.md5(f"{seed}|{one.given.place}".encode(), usedforsecurity=False).hexdigest()


_SIGNS = {"added": "+", "removed": "-", "changed": "~"}
MOST_FIELDS = 8


def diff_text(found: RuleDiff) -> str:
    return "\n".join(_lines(found))


def _lines(found: RuleDiff) -> Iterator[str]:
    if not found.changes:
        yield f"{found.table}: {found.old} and {found.new} have the same rules"
    else:
        yield f"{found.table}: {found.old} → {found.new}"
    for change in found.changes:
        yield f"  {_SIGNS[change.change]} {change.name}"
        yield from (f"      {words}" for words in change.words)
    yield from (f"  ! {note}" for note in found.notes)
    if found.rows is not None:
        yield from _rows(found.rows)


def _rows(rows: RowsDiff) -> Iterator[str]:
    yield ""
    cannot = f", {rows.unreadable:,} could not be read" if rows.unreadable else ""
    yield f"  {rows.rows:,} rows judged by both{cannot}: {rows.changed:,} change their status"
    yield from (f"    {s.before} → {s.after}: {s.rows:,}" for s in rows.statuses)
    for count in rows.counts:
        gives = f"gives the status of {count.n_before:,} → {count.n_after:,}"
        yield f"    {count.rule}: {gives}, matches {count.matched_before:,} → {count.matched_after:,}"
    for row in rows.samples:
        fields = ", ".join(f"{k}={v}" for k, v in list(row.row.items())[:MOST_FIELDS])
        yield f"    {row.key}: {row.before} → {row.after} ({', '.join(row.rules_after) or 'no rule'}): {fields}"
