"""From a declared rule set to judged tables: every rule one condition, every fault told at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from headgate.compile.rules.columns import RuleColumns
from headgate.compile.rules.measures import KeyRefusal, checked_aggregate
from headgate.compile.rules.model import JudgedRule, JudgedTable, Unique
from headgate.compile.rules.typed import Lowering
from headgate.errors import DeclarationError, Fault
from headgate.expr.faults import ExprError
from headgate.expr.tree import Expr
from headgate.spec.declared import Declared
from headgate.spec.document import WHOLE_FILE
from headgate.spec.rules_loader import Reading, read_rules
from headgate.spec.ruleset import HORIZON, Aggregate, OnFail, Rule, RuleSet, RuleTable, Severity

Part = TypeVar("Part", Rule, Aggregate)
STATUSES: dict[Severity, str] = {"ERROR": "INVALID", "WARN": "QUARANTINE", "INFO": "INFO"}


@dataclass(frozen=True)
class JudgedFile:
    """A rule set, its judged tables, and what a person should be told of it."""

    declared: Declared[RuleSet]
    tables: tuple[JudgedTable, ...]
    notes: tuple[Fault, ...]


def load_judged(path: Path, variables: Mapping[str, str]) -> JudgedFile:
    """The rule set in `path`, judged; raises the faults of all its keys and conditions."""
    reading = read_rules(path, variables)
    if reading.declared is None:
        raise DeclarationError(reading.faults)
    judging = _Judging(reading.declared, reading)
    tables = tuple(judging.tables())
    faults = (*reading.faults, *judging.faults)
    if faults:
        raise DeclarationError(_in_order(faults))
    old = [Fault(str(path), 1, WHOLE_FILE, note, "") for note in reading.declared.notes]
    return JudgedFile(reading.declared, tables, tuple(old))


def judged(declared: Declared[RuleSet]) -> tuple[JudgedTable, ...]:
    """All tables of the rule set; raises DeclarationError with all faults."""
    judging = _Judging(declared, Reading(declared, ()))
    tables = tuple(judging.tables())
    if judging.faults:
        raise DeclarationError(_in_order(judging.faults))
    return tables


def judged_table(declared: Declared[RuleSet], table: RuleTable) -> JudgedTable:
    """One table of the rule set; raises DeclarationError with all its faults."""
    judging = _Judging(declared, Reading(declared, ()))
    found = judging.table(declared.value.tables.index(table), table)
    if judging.faults:
        raise DeclarationError(_in_order(judging.faults))
    return found


def _in_order(faults: tuple[Fault, ...] | list[Fault]) -> list[Fault]:
    """By line; a rule for all tables can have the same fault in each."""
    return sorted(dict.fromkeys(faults), key=lambda fault: (fault.line or 0, fault.column or 0))


@dataclass
class _Judging:
    declared: Declared[RuleSet]
    reading: Reading
    faults: list[Fault] = field(default_factory=list[Fault])

    def tables(self) -> Iterator[JudgedTable]:
        for at, table in enumerate(self.declared.value.tables):
            if f"tables[{at}]" not in self.reading.aside:
                yield self.table(at, table)

    def table(self, at: int, table: RuleTable) -> JudgedTable:
        rule_set = self.declared.value
        columns = RuleColumns(table)
        found = [
            judged
            for pointer, rule in _placed(at, rule_set.rules, table.rules, "rules")
            if not self.reading.is_aside(pointer)
            and (judged := self.rule(columns, table, pointer, rule)) is not None
        ]
        measured = [
            checked
            for pointer, aggregate in _placed(
                at, rule_set.aggregates, table.aggregates, "aggregates"
            )
            if not self.reading.is_aside(pointer)
            and (checked := self.aggregate(columns, pointer, aggregate)) is not None
        ]
        return JudgedTable(rule_set, table, tuple(found), tuple(measured), columns.types)

    def aggregate(
        self, columns: RuleColumns, pointer: str, aggregate: Aggregate
    ) -> Aggregate | None:
        try:
            return checked_aggregate(columns, aggregate)
        except KeyRefusal as refused:
            refusal = refused.refusal
            self.note(f"{pointer}.{refused.key}", refusal.what, refusal.why, refusal.fix)
        return None

    def rule(
        self, columns: RuleColumns, table: RuleTable, pointer: str, rule: Rule
    ) -> JudgedRule | None:
        condition, unique = self.condition(columns, pointer, rule), None
        if rule.type == "unique":
            unique = self.unique(columns, pointer, rule)
        if condition is None and unique is None:
            return None
        return _judged_rule(table, rule, condition, unique)

    def condition(self, columns: RuleColumns, pointer: str, rule: Rule) -> Expr | None:
        """The condition of a rule; None after its faults were noted."""
        if rule.when is not None:
            return self.text(columns, f"{pointer}.when", rule.when)
        if rule.type == "schema" and (columns.table.is_pair or columns.table.first.topic is None):
            what = "`type: schema` looks at the JSON of one topic, and this table has another form"
            self.note(f"{pointer}.type", what, "", "Leave the rule out for this table.")
            return None
        lowering = Lowering(columns, rule)
        condition = lowering.condition()
        self.note_all(pointer, lowering)
        return None if lowering.faults else condition

    def unique(self, columns: RuleColumns, pointer: str, rule: Rule) -> Unique | None:
        if columns.table.is_pair:
            what = "`type: unique` is for one source: of two, the newest row of each key is joined"
            self.note(f"{pointer}.type", what, "", "Leave the rule out for this table.")
            return None
        lowering = Lowering(columns, rule)
        names = tuple(column.name for column in lowering.fields())
        self.note_all(pointer, lowering)
        return None if lowering.faults else Unique(names, rule.horizon or HORIZON)

    def note_all(self, pointer: str, lowering: Lowering) -> None:
        for key, fault in lowering.faults:
            self.note(f"{pointer}.{key}", fault.what, fault.why, fault.fix, fault.position)

    def text(self, columns: RuleColumns, pointer: str, text: str) -> Expr | None:
        """The condition that `text` is; None after its faults were noted."""
        try:
            return columns.condition(text)
        except ExprError as error:
            for fault in error.faults:
                self.note(pointer, fault.what, fault.why, fault.fix, fault.position)
        return None

    def note(
        self, pointer: str, what: str, why: str, fix: str, position: int | None = None
    ) -> None:
        self.faults.append(self.declared.fault(pointer, what, why, fix, position))


def _placed(
    at: int, shared: tuple[Part, ...], own: tuple[Part, ...], key: str
) -> Iterator[tuple[str, Part]]:
    """Those for all tables, then those of the table itself, each with its pointer."""
    yield from ((f"{key}[{i}]", rule) for i, rule in enumerate(shared))
    yield from ((f"tables[{at}].{key}[{i}]", rule) for i, rule in enumerate(own))


def _judged_rule(
    table: RuleTable, rule: Rule, condition: Expr | None, unique: Unique | None
) -> JudgedRule:
    emit = rule.emit
    severity = emit.severity if emit else rule.severity or "ERROR"
    return JudgedRule(
        name=rule.name,
        reason=rule.description or rule.name,
        status=emit.dq_status if emit else STATUSES[severity],
        metric=(emit.metric if emit else None) or rule.name,
        severity=severity,
        on_fail=_on_fail(table, rule, severity),
        condition=condition,
        unique=unique,
    )


def _on_fail(table: RuleTable, rule: Rule, severity: Severity) -> OnFail:
    if rule.on_fail is not None:
        return rule.on_fail
    return table.on_fail if severity == "ERROR" else "keep"
