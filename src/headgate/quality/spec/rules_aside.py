"""Sets faulty parts of a rule set aside, so that they do not hide the faults of the others."""

from __future__ import annotations

import re
from collections.abc import Iterable
from copy import deepcopy

from headgate.declarations.model import pointer_to
from headgate.declarations.spec_document import Document, Plain
from headgate.errors import Fault
from headgate.quality.spec.rule_set import VERSION

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
