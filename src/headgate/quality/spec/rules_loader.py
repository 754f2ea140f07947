"""Reads a rule set: every fault at once, each with its file, line and what to write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headgate.declarations.declared import Declared, line_of
from headgate.declarations.model import validate
from headgate.declarations.refusal import suggestion
from headgate.declarations.spec_document import Document, Plain, read_document, text_of
from headgate.errors import DeclarationError, Fault, UsageError
from headgate.quality.spec.rule_set import RuleSet
from headgate.quality.spec.rules_aside import is_within, mended, unreadable_parts
from headgate.quality.spec.rules_checks import faults_of
from headgate.quality.spec.rules_old import converted
from headgate.quality.spec.rules_reconcile import contract_faults, with_default_times
from headgate.quality.spec.rules_values import fill_values

ROOT_FILE = "rules.yaml"
FOLDER = "rules"
TESTS = ".tests"


@dataclass(frozen=True)
class Reading:
    """What could be read of a file, and its faults.

    `aside` are the pointers of the rules and tables that have faults: what stands there in the
    rule set is not what was written.
    """

    declared: Declared[RuleSet] | None
    faults: tuple[Fault, ...]
    aside: frozenset[str] = frozenset()

    def is_aside(self, pointer: str) -> bool:
        return is_within(pointer, self.aside)


def load_rules(path: Path, variables: Mapping[str, str]) -> Declared[RuleSet]:
    """The rule set in `path`; raises DeclarationError with all faults but those of conditions."""
    reading = read_rules(path, variables)
    if reading.faults or reading.declared is None:
        raise DeclarationError(reading.faults)
    return reading.declared


def read_rules(path: Path, variables: Mapping[str, str]) -> Reading:
    """The rule set in `path` as far as it can be read, with its faults."""
    try:
        document = read_document(str(path), text_of(path), variables)
    except DeclarationError as error:
        return Reading(None, error.faults)
    if not isinstance(document.data, dict):
        if not document.faults:
            document.add("", "the rule set is not a mapping", "Write `key: value` lines.", line=1)
        return Reading(None, _sorted(document))
    document, notes = converted(document)
    _name_aliases(document.data)
    fill_values(document, path.parent)
    return _checked(document, notes, root_of(path))


def root_of(path: Path) -> Path:
    """The project's root, by where its rule sets stand."""
    folder = path.parent
    return folder.parent if folder.name == FOLDER else folder


def rule_files(root: Path) -> tuple[Path, ...]:
    """Every rule set under `root`: rules.yaml, then rules/*.yml by name."""
    first = root / ROOT_FILE
    others = [*(root / FOLDER).glob("*.yml"), *(root / FOLDER).glob("*.yaml")]
    found = sorted(path for path in others if not path.stem.endswith(TESTS))
    return (first, *found) if first.is_file() else tuple(found)


def tables_in(path: Path) -> tuple[str, ...]:
    """The names of the tables that a file declares, whether or not they have faults."""
    return tuple(name for name, _ in places_of_tables(path))


def places_of_tables(path: Path) -> tuple[tuple[str, int | None], ...]:
    """The names of the tables that a file declares, each with its line."""
    document, _ = converted(read_document(str(path), text_of(path), {}))
    data = document.data if isinstance(document.data, dict) else {}
    listed = data.get("tables")
    tables = [t for t in listed if isinstance(t, dict)] if isinstance(listed, list) else []
    return tuple(
        (name, line_of(document.lines, f"tables[{at}].name"))
        for at, table in enumerate(tables)
        if isinstance(name := table.get("name"), str)
    )


def find_table(root: Path, name: str) -> Path:
    """The file that declares that table; an unknown one is refused with those there are."""
    known = {table: path for path in reversed(rule_files(root)) for table in tables_in(path)}
    if name in known:
        return known[name]
    guess, names = suggestion(name, known, "tables"), ", ".join(sorted(known))
    raise UsageError(
        f"no rule set has a table `{name}`",
        why=f"neither {ROOT_FILE} nor {FOLDER}/*.yml declares it",
        fix=guess if names in guess else f"{guess} There are: {names}.",
    )


def _checked(document: Document, notes: tuple[str, ...], root: Path) -> Reading:
    """First the shape of every part, then what must hold between those that have it."""
    rule_set = validate(RuleSet, document)
    aside = unreadable_parts(document)
    if rule_set is None:
        rule_set = validate(RuleSet, mended(document, aside))
    if rule_set is None:
        return Reading(None, _sorted(document))
    rule_set = with_default_times(rule_set)
    for pointer, what, fix in (*faults_of(rule_set), *contract_faults(rule_set, root)):
        if not is_within(pointer, aside):
            document.add(pointer, what, fix)
    declared = Declared(rule_set, document.file, document.lines, notes)
    return Reading(declared, _sorted(document), unreadable_parts(document))


def _name_aliases(data: Plain) -> None:
    """A source without an alias is t1, the cloud's of two t2."""
    tables = data.get("tables") if isinstance(data, dict) else None
    for table in tables if isinstance(tables, list) else []:
        sources = table.get("sources") if isinstance(table, dict) else None
        if isinstance(sources, dict):
            for side, source in sources.items():
                if isinstance(source, dict):
                    is_second = side == "cloud" and len(sources) > 1
                    source.setdefault("alias", "t2" if is_second else "t1")


def _sorted(document: Document) -> tuple[Fault, ...]:
    return tuple(sorted(document.faults, key=lambda fault: fault.line or 0))
