"""From a declared rule set to judged tables: every rule one condition, every fault told at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.declarations.declared import Declared
from headgate.declarations.spec_document import WHOLE_FILE
from headgate.errors import DeclarationError, Fault
from headgate.quality.compile.judging import Judging
from headgate.quality.compile.model import JudgedTable
from headgate.quality.spec.rule_set import RuleSet, RuleTable
from headgate.quality.spec.rules_loader import Reading, read_rules

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.quality.compile.model import JudgedTable


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
    from headgate.quality.compile.judge import judged_table
    from headgate.quality.spec.rules_loader import find_table, load_rules

    file = find_table(settings.root, table)
    rules = load_rules(file, settings.topics_of(file.stem))
    return judged_table(rules, rules.value.table(table))
