"""Resolves a declared rule set: every rule becomes one condition, in the order that decides a row's status.

Input: what `quality.spec.loader` read. Output: one `JudgedTable` for each table, faults that must be fixed
and notes that a person should see; analysis of the conditions finds rules that can never match or never
decide. `rule_words` describes a resolved rule for screens and reports.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from headgate.conditions.analysis.findings import Kind, Named, analyse
from headgate.conditions.ast import Expr
from headgate.conditions.describe import describe_condition, listed
from headgate.conditions.grammar import ExprError
from headgate.declarations.document import WHOLE_FILE
from headgate.declarations.errors import Declared
from headgate.declarations.types import SqlType, in_words
from headgate.errors import DeclarationError, Fault
from headgate.quality.compile.columns import RuleColumns
from headgate.quality.compile.typed_rules import (
    EXTRA,
    MISSING,
    KeyRefusal,
    Lowering,
    checked_aggregate,
    idle_limits,
)
from headgate.quality.spec.loader import Reading, find_table, load_rules, read_rules
from headgate.quality.spec.rule_set import (
    HORIZON,
    Aggregate,
    OnFail,
    Rule,
    RuleSet,
    RuleTable,
    Severity,
)

if TYPE_CHECKING:
    from headgate.config.settings import Settings


VALID = "VALID"
MATCH = "MATCH"


@dataclass(frozen=True)
class Unique:
    """A row is bad when its key was seen before within the horizon."""

    fields: tuple[str, ...]
    horizon: timedelta


@dataclass(frozen=True)
class JudgedRule:
    """One rule: the row is bad when `condition` holds, or `unique` finds its key again."""

    name: str
    reason: str
    status: str
    metric: str
    severity: Severity
    on_fail: OnFail
    condition: Expr | None = None
    unique: Unique | None = None


@dataclass(frozen=True)
class JudgedTable:
    """All that the compiler needs of one table; `types` of columns as rules see them.

    With two sources the names in `types` are qualified: `t1.action`.
    """

    rule_set: RuleSet
    table: RuleTable
    rules: tuple[JudgedRule, ...]
    aggregates: tuple[Aggregate, ...]
    types: dict[str, SqlType]

    @property
    def clean_status(self) -> str:
        return MATCH if self.table.is_pair else VALID


# What `schema` reads is no field: names of fields that lack or were not declared, where there are any.
_PSEUDO = re.compile(rf"(?:\b(\w+)\.)?({MISSING}|{EXTRA}) is present")
_SCHEMA = {MISSING: "a declared field is missing", EXTRA: "there is a field that is not declared"}


def rule_words(rule: JudgedRule) -> str:
    """What makes a row bad, in words."""
    if rule.unique is not None:
        fields = listed(list(rule.unique.fields))
        return f"{fields} came before within {in_words(rule.unique.horizon).lower()}"
    if rule.condition is None:
        return rule.reason
    return _PSEUDO.sub(_field_words, describe_condition(rule.condition))


def _field_words(found: re.Match[str]) -> str:
    of = f" of {found[1]}" if found[1] else ""
    return f"{_SCHEMA[found[2]]}{of}"


Part = TypeVar("Part", Rule, Aggregate)
STATUSES: dict[Severity, str] = {"ERROR": "INVALID", "WARN": "QUARANTINE", "INFO": "INFO"}
# Nothing is accepted and then never fires; what else analysis finds may be meant.
_KEY_WORDS = "a record without its key is a dead letter, dq_missing_pk, before any rule sees it"
_FATAL: tuple[Kind, ...] = ("never_true", "impossible")


@dataclass
class Judging:
    """`faults` must be mended; `notes` are what a person should be told all the same."""

    declared: Declared[RuleSet]
    reading: Reading
    faults: list[Fault] = field(default_factory=list[Fault])
    notes: list[Fault] = field(default_factory=list[Fault])

    def tables(self) -> Iterator[JudgedTable]:
        for at, table in enumerate(self.declared.value.tables):
            if f"tables[{at}]" not in self.reading.aside:
                yield self.table(at, table)

    def table(self, at: int, table: RuleTable) -> JudgedTable:
        rule_set, columns = self.declared.value, RuleColumns(table)
        rules = {
            pointer: judged
            for pointer, rule in self._placed(at, rule_set.rules, table.rules, "rules")
            if (judged := self._rule(columns, pointer, rule)) is not None
        }
        shared, own = rule_set.aggregates, table.aggregates
        aggregates = [
            checked
            for pointer, aggregate in self._placed(at, shared, own, "aggregates")
            if (checked := self._aggregate(columns, pointer, aggregate)) is not None
        ]
        self._analyse(table, rules)
        return JudgedTable(rule_set, table, tuple(rules.values()), tuple(aggregates), columns.types)

    def _placed(
        self, at: int, shared: tuple[Part, ...], own: tuple[Part, ...], key: str
    ) -> Iterator[tuple[str, Part]]:
        """Those for all tables, then those of the table itself, but none that is set aside."""
        placed = [(f"{key}[{i}]", part) for i, part in enumerate(shared)]
        placed += [(f"tables[{at}].{key}[{i}]", part) for i, part in enumerate(own)]
        yield from ((p, part) for p, part in placed if not self.reading.is_aside(p))

    def _aggregate(
        self, columns: RuleColumns, pointer: str, aggregate: Aggregate
    ) -> Aggregate | None:
        try:
            found = checked_aggregate(columns, aggregate)
        except KeyRefusal as refused:
            refusal = refused.refusal
            self._refuse(f"{pointer}.{refused.key}", refusal.what, refusal.why, refusal.fix)
            return None
        self._limits(columns, pointer, found)
        return found

    def _limits(self, columns: RuleColumns, pointer: str, aggregate: Aggregate) -> None:
        """Limits that no value can pass: a fault where there is no other, else a note."""
        given = [limit for limit in (aggregate.min, aggregate.max) if limit is not None]
        idle = idle_limits(columns, aggregate)
        for key, words in idle:
            fix = "Write one that can be passed, or leave it out."
            fault = self.declared.fault(f"{pointer}.{key}", f"it can never fail: {words}", "", fix)
            (self.faults if len(idle) == len(given) else self.notes).append(fault)

    def _rule(self, columns: RuleColumns, pointer: str, rule: Rule) -> JudgedRule | None:
        if rule.when is not None:
            condition = self._text(columns, f"{pointer}.when", rule.when)
            return condition and _resolved(columns.table, rule, condition)
        misfit = _misfit(columns.table, rule)
        if misfit:
            fix = "Leave the rule out for this table."
            self._refuse(f"{pointer}.type", f"`type: {rule.type}` {misfit}", "", fix)
            return None
        lowering = Lowering(columns, rule)
        made = _unique(lowering) if rule.type == "unique" else lowering.condition()
        for key, fault in lowering.faults:
            self._refuse(f"{pointer}.{key}", fault.what, fault.why, fault.fix, fault.position)
        return None if made is None or lowering.faults else _resolved(columns.table, rule, made)

    def _text(self, columns: RuleColumns, pointer: str, text: str) -> Expr | None:
        """The condition that `text` is; None after its faults were noted."""
        try:
            return columns.condition(text)
        except ExprError as error:
            for fault in error.faults:
                self._refuse(pointer, fault.what, fault.why, fault.fix, fault.position)
        return None

    def _analyse(self, table: RuleTable, rules: dict[str, JudgedRule]) -> None:
        """What the conditions say of each other, at the rule that it is said of."""
        # Of a pair either side may be missing, and its key with it.
        known = {} if table.is_pair else {table.pk: _KEY_WORDS}
        places = {rule.name: pointer for pointer, rule in rules.items()}
        named = [Named(r.name, r.condition) for r in rules.values() if r.condition is not None]
        for finding in analyse(named, known):
            pointer = places.get(finding.name, "rules")
            fault = self.declared.fault(pointer, finding.words, "", finding.fix)
            (self.faults if finding.kind in _FATAL else self.notes).append(fault)

    def _refuse(
        self, pointer: str, what: str, why: str, fix: str, position: int | None = None
    ) -> None:
        self.faults.append(self.declared.fault(pointer, what, why, fix, position))


def _misfit(table: RuleTable, rule: Rule) -> str:
    """Why a type of rule says nothing of this kind of table; empty where it does."""
    if rule.type == "schema" and (table.is_pair or table.first.topic is None):
        return "looks at the JSON of one topic, and this table has another form"
    if rule.type == "unique" and table.is_pair:
        return "is for one source: of two, versions of a key are merged"
    return ""


def _unique(lowering: Lowering) -> Unique:
    names = tuple(column.name for column in lowering.fields())
    return Unique(names, lowering.rule.horizon or HORIZON)


def _resolved(table: RuleTable, rule: Rule, made: Expr | Unique) -> JudgedRule:
    emit = rule.emit
    severity = emit.severity if emit else rule.severity or "ERROR"
    return JudgedRule(
        name=rule.name,
        reason=rule.description or rule.name,
        status=emit.dq_status if emit else STATUSES[severity],
        metric=(emit.metric if emit else None) or rule.name,
        severity=severity,
        on_fail=_on_fail(table, rule, severity),
        condition=None if isinstance(made, Unique) else made,
        unique=made if isinstance(made, Unique) else None,
    )


def _on_fail(table: RuleTable, rule: Rule, severity: Severity) -> OnFail:
    if rule.on_fail is not None:
        return rule.on_fail
    return table.on_fail if severity == "ERROR" else "keep"


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
    judging = Judging(reading.declared, reading)
    tables = tuple(judging.tables())
    _raise((*reading.faults, *judging.faults))
    old = [_old_form(path, note) for note in reading.declared.notes]
    return JudgedFile(reading.declared, tables, tuple(_in_order((*old, *judging.notes))))


def judged(declared: Declared[RuleSet]) -> tuple[JudgedTable, ...]:
    """All tables of the rule set; raises DeclarationError with all faults."""
    judging = Judging(declared, Reading(declared, ()))
    tables = tuple(judging.tables())
    _raise(judging.faults)
    return tables


def judged_table(declared: Declared[RuleSet], table: RuleTable) -> JudgedTable:
    """One table of the rule set; raises DeclarationError with all its faults."""
    judging = Judging(declared, Reading(declared, ()))
    found = judging.table(declared.value.tables.index(table), table)
    _raise(judging.faults)
    return found


def _old_form(path: Path, note: str) -> Fault:
    what, _, advice = note.partition(": ")
    return Fault(str(path), 1, WHOLE_FILE, what, f"{advice[:1].upper()}{advice[1:]}.")


def _raise(faults: Sequence[Fault]) -> None:
    if faults:
        raise DeclarationError(_in_order(faults))


def _in_order(faults: Sequence[Fault]) -> list[Fault]:
    """By line; a rule for all tables can have the same fault in each."""
    return sorted(dict.fromkeys(faults), key=lambda fault: (fault.line or 0, fault.column or 0))


def open_rules(settings: Settings, table: str) -> JudgedTable:
    """The rule table of that name, judged."""
    file = find_table(settings.root, table)
    rules = load_rules(file, settings.topics_of(file.stem))
    return judged_table(rules, rules.value.table(table))
