"""Loads rule sets: finds the files of a project, reads one, and reports every fault with its file and line.

A rule or table with faults is replaced by a harmless stand-in, so that it does not hide the faults of the
others; `Reading.aside` names those parts. Lists of `values_file` are read here, once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from headgate.declarations.document import (
    Document,
    Plain,
    pointer_to,
    read_document,
    text_of,
    validate,
)
from headgate.declarations.errors import Declared, Refusal, line_of, suggestion
from headgate.errors import DeclarationError, Fault, UsageError
from headgate.quality.spec.legacy_formats import converted
from headgate.quality.spec.reconcile_checks import contract_faults, with_default_times
from headgate.quality.spec.rule_checks import faults_of
from headgate.quality.spec.rule_set import VERSION, RuleSet

if TYPE_CHECKING:
    from headgate.config.settings import Settings

_PART = re.compile(r"(?:tables\[\d+\]\.)?(?:rules|aggregates)\[\d+\]|tables\[\d+\]")
_STEP = re.compile(r"[a-z]+|\d+")
_PARTS = {"rules", "aggregates"}
_KEPT = ("metadata", "metrics", "tables", "rules", "aggregates")


def parts_of(faults: Iterable[Fault]) -> frozenset[str]:
    """The rules, or else the tables, that faults stand in."""
    found = (_PART.match(fault.field) for fault in faults)
    return frozenset(match[0] for match in found if match)


def unreadable_parts(document: Document) -> frozenset[str]:
    """The parts with faults, apart from tables of which only keys are unknown.

    A rule with an unknown key counts: without that key it may say something else.
    """
    unknown = {pointer_to(steps) for steps in document.unknown_keys if not _PARTS & set(steps)}
    return parts_of(fault for fault in document.faults if fault.field not in unknown)


def is_within(pointer: str, parts: Iterable[str]) -> bool:
    return any(pointer == part or pointer.startswith(f"{part}.") for part in parts)


def mended(document: Document, aside: Iterable[str]) -> Document:
    """The document without unknown keys, with a harmless part in the place of each set aside."""
    given = document.data if isinstance(document.data, dict) else {}
    faulty = {fault.field.split(".")[0] for fault in document.faults}
    kept = {key: deepcopy(given[key]) for key in _KEPT if key in given and key not in faulty}
    data: dict[str, Plain] = {**kept, "version": VERSION}
    for *steps, key in document.unknown_keys:
        _drop_key(data, steps, key)
    for pointer in sorted(aside):
        _put_stand_in(data, pointer)
    return Document(document.file, document.variables, data, document.lines)


def _drop_key(data: Plain, steps: Iterable[str | int], key: str | int) -> None:
    for step in steps:
        data = _inner(data, str(step))
    if isinstance(data, dict):
        data.pop(str(key), None)


def _put_stand_in(data: dict[str, Plain], pointer: str) -> None:
    *steps, kind, last = _STEP.findall(pointer)
    node: Plain = data
    for step in (*steps, kind):
        node = _inner(node, step)
    if isinstance(node, list):
        node[int(last)] = _stand_in(kind, int(last), node[int(last)])


def _inner(node: Plain, step: str) -> Plain:
    if isinstance(node, list):
        return node[int(step)]
    return node.get(step) if isinstance(node, dict) else None


def _stand_in(kind: str, at: int, given: Plain) -> Plain:
    """It keeps the name, so that another of the same name is still a fault."""
    named = given.get("name") if isinstance(given, dict) else None
    name = named if isinstance(named, str) and named else f"{kind}_{at}"
    if kind == "rules":
        return {"name": name, "when": "TRUE"}
    if kind == "aggregates":
        return {"name": name, "measure": "row_count", "min": 0}
    source: Plain = {"topic": name, "table": f"{kind}_{at}", "columns": {"id": "STRING"}}
    return {"name": name, "pk": "id", "sources": {"onprem": source}}


MAX_VALUES = 10_000
_FORM = 'Write a JSON list of texts or numbers: ["a", "b"].'


def fill_values(document: Document, folder: Path) -> None:
    """Puts the list of each `values_file` in its place; a `url` is refused."""
    for pointer, rule in _rules(document.data):
        if "url" in rule:
            document.add(
                f"{pointer}.url",
                "a list is not fetched from elsewhere, since its revision could not be kept",
                "Save it as JSON beside this file and write values_file: name.json.",
            )
            del rule["url"]
            rule.setdefault("values", ["?"])
        name = rule.get("values_file")
        if isinstance(name, str) and "values" not in rule:
            try:
                rule["values"] = _read(folder, name)
                del rule["values_file"]
            except Refusal as refusal:
                document.add(f"{pointer}.values_file", refusal.what, refusal.fix)


def _rules(data: Plain) -> Iterator[tuple[str, dict[str, Plain]]]:
    given = data if isinstance(data, dict) else {}
    yield from _listed("rules", given.get("rules"))
    tables = given.get("tables")
    for at, table in enumerate(tables if isinstance(tables, list) else []):
        if isinstance(table, dict):
            yield from _listed(f"tables[{at}].rules", table.get("rules"))


def _listed(place: str, rules: Plain) -> Iterator[tuple[str, dict[str, Plain]]]:
    for at, rule in enumerate(rules if isinstance(rules, list) else []):
        if isinstance(rule, dict):
            yield f"{place}[{at}]", rule


def _read(folder: Path, name: str) -> list[Plain]:
    path = folder / name
    if not name.isprintable():
        raise Refusal(f"{name!r} has a control character", "Write the name of a file beside this.")
    if not path.resolve().is_relative_to(folder.resolve()):
        raise Refusal(f"`{name}` is not beside this file", "Put it there and write its name alone.")
    try:
        found: Plain = orjson.loads(path.read_bytes())
    except OSError as error:
        raise Refusal(f"`{name}` cannot be read: {error.strerror}", "Check its name.") from None
    except orjson.JSONDecodeError as error:
        raise Refusal(f"`{name}` is not JSON: {error}", _FORM) from None
    if not isinstance(found, list) or not found:
        raise Refusal(f"`{name}` is not a list with values", _FORM)
    if len(found) > MAX_VALUES:
        raise Refusal(f"`{name}` has more than {MAX_VALUES:,} values", "Join with a table instead.")
    return found


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


def table_names(root: Path) -> Iterator[str]:
    """The names of the tables that all rule sets under `root` declare."""
    return (name for file in rule_files(root) for name in tables_in(file))


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


@dataclass(frozen=True)
class SensitiveNames:
    """Columns that rule sets tag as sensitive, and the topics whose records have such a column as key."""

    columns: frozenset[str]
    keyed_topics: frozenset[str]


def sensitive_names(settings: Settings) -> SensitiveNames:
    """The tagged columns of every rule set; raises DeclarationError when one cannot be read."""
    root = settings.root
    sets = [load_rules(file, settings.topics_of(file.stem)).value for file in rule_files(root)]
    columns: set[str] = set()
    topics: set[str] = set()
    for table in (table for rules in sets for table in rules.tables):
        tagged = frozenset[str]().union(*(side.sensitive for side in table.sources.values()))
        columns |= tagged
        if table.pk in tagged:
            topics |= {side.topic for side in table.sources.values() if side.topic}
    return SensitiveNames(frozenset(columns), frozenset(topics))


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
