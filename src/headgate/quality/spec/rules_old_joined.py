"""Version 1: conditions for one table whose two sources are joined by key."""

from __future__ import annotations

import re

from headgate.declarations.spec_document import Document, Plain
from headgate.quality.spec.rules_moving import Moving, mapping, mappings, texts

_ALIASES = {"t1": "onprem", "t2": "cloud"}
_QUIET = ("MATCH", "DELETE_EVENT")
_OWN = ("version", "metadata", "sources", "join", "rules", "outputs", "metrics", "hash")
_TAKEN = {
    "metadata": ("env", "pipeline"),
    "metrics": ("namespace", "window"),
    "join": ("on", "key", "pk"),
}
_QUOTED = re.compile(r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
_KEPT = (
    "topic",
    "table",
    "dc",
    "alias",
    "columns",
    "event_time",
    "watermark",
    "pk_path",
    "iceberg",
)


def joined(moving: Moving, data: dict[str, Plain], table: str) -> Document:
    """The document in the form of version 2; columns that it does not declare are text."""
    for key in data:
        if key not in _OWN:
            fix = f"It may have: {', '.join(_OWN)}."
            moving.refuse(key, f"version 1 has no key `{key}`", fix)
    rules = [_rule(moving, at, rule) for at, rule in mappings(data.get("rules"))]
    key = _key(moving, data)
    sources = _sources(moving, data, table, key)
    one: dict[str, Plain] = {"name": table, "pk": key, "sources": sources, "rules": list(rules)}
    if len(sources) == 2:
        one["hash"] = _hash(moving, data, sources)
    given = mapping(data.get("metadata"))
    metadata = {key: given[key] for key in _TAKEN["metadata"] if key in given}
    new: dict[str, Plain] = {"version": 2, "metadata": metadata, "metrics": _metrics(data)}
    new["tables"] = [one]
    return moving.finish(new)


def dropped(data: dict[str, Plain]) -> tuple[str, ...]:
    """The keys that version 1 knew and nothing here goes by, as a person finds them."""
    inner = [
        f"{name}.{key}"
        for name, kept in _TAKEN.items()
        for key in mapping(data.get(name))
        if key not in kept
    ]
    return tuple(sorted([*inner, *(["outputs"] if "outputs" in data else [])]))


def _metrics(data: dict[str, Plain]) -> dict[str, Plain]:
    given = mapping(data.get("metrics"))
    return {key: given[key] for key in _TAKEN["metrics"] if key in given}


def _key(moving: Moving, data: dict[str, Plain]) -> str:
    join = mapping(data.get("join"))
    found = next((given for key in _TAKEN["join"] if (given := texts(join.get(key)))), list[str]())
    if not found:
        moving.refuse("join", "`on` is missing", "Add join: {on: …} with the column of the key.")
    moving.line("tables[0].pk", "join")
    return found[0].rpartition(".")[2] if found else "pk"


def _rule(moving: Moving, at: int, rule: dict[str, Plain]) -> dict[str, Plain]:
    moving.line(f"tables[0].rules[{at}]", f"rules[{at}]")
    found = dict(rule)
    emit = dict(mapping(rule.get("emit")))
    if isinstance(metric := emit.get("metric"), str):
        emit["metric"] = metric.removeprefix("dq_")
    emit.setdefault("severity", "INFO" if emit.get("dq_status") in _QUIET else "ERROR")
    found["emit"] = emit
    return found


def _sources(moving: Moving, data: dict[str, Plain], table: str, key: str) -> dict[str, Plain]:
    """By side; version 1 names a source by its side or by its alias."""
    found: dict[str, Plain] = {}
    for name, value in mapping(data.get("sources")).items():
        given = mapping(value)
        alias = str(given.get("alias", name if name in _ALIASES else ""))
        side = name if name in _ALIASES.values() else _ALIASES.get(alias, name)
        source = {kept: given[kept] for kept in _KEPT if kept in given}
        moving.line(f"tables[0].sources.{side}", f"sources.{name}")
        for unknown in given.keys() - set(_KEPT):
            moving.refuse(f"sources.{name}.{unknown}", "this says nothing here", "Leave it out.")
        source.setdefault("alias", next((a for a, s in _ALIASES.items() if s == side), alias))
        source.setdefault("table", f"{side}_{table}")
        source.setdefault("columns", _columns(data, str(source["alias"]), key, given))
        found[side] = source
    if not found:
        moving.refuse("", "`sources` is missing", "Add sources: with onprem and cloud.")
    return found


def _columns(
    data: dict[str, Plain], alias: str, key: str, given: dict[str, Plain]
) -> dict[str, Plain]:
    """What the conditions read of a source; text unless it is the event time."""
    named = re.compile(rf"(?:\b{re.escape(alias)}|\{{{re.escape(alias)}\}})\.`?(\w+)")
    whens = [text for _, rule in mappings(data.get("rules")) for text in texts(rule.get("when"))]
    names = [key, *(name for text in whens for name in named.findall(_QUOTED.sub("''", text)))]
    found: dict[str, Plain] = dict.fromkeys(names, "STRING")
    for name in texts(given.get("event_time")):
        found[name] = "TIMESTAMP(3)"
    return found


def _hash(moving: Moving, data: dict[str, Plain], sources: dict[str, Plain]) -> Plain:
    if "hash" in data:
        moving.line("tables[0].hash", "hash")
        return data["hash"]
    found: dict[str, Plain] = {}
    for side, source in sources.items():
        columns = mapping(mapping(source).get("columns"))
        names = [name for name in columns if "hash" in name.lower()]
        if len(names) != 1:
            seen = "none" if not names else " and ".join(names)
            what = f"the column with the hash of `{side}` cannot be told: there is {seen}"
            moving.refuse(f"sources.{side}", what, "Add hash: {onprem_field: …, cloud_field: …}.")
        found[f"{side}_field"] = names[0] if names else next(iter(columns), "hash")
    return found
