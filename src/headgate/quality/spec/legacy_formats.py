"""Upgrades rule sets of version 1 and of the old typed format to version 2, keeping the line of every part.

Works on the plain document before validation, so faults point at the lines of the file as written. Returns
the upgraded document and one deprecation note for each old form found; a version 2 document passes unchanged.
"""

from __future__ import annotations

import re
from pathlib import Path

from headgate.declarations.document import Document, Plain


class Moving:
    """A document under construction: what is put into it keeps its old lines."""

    def __init__(self, old: Document) -> None:
        self.old = old
        self._lines: dict[str, int] = {"": old.lines.get("", 1)}
        self._by_head: dict[str, list[tuple[str, int]]] = {}
        for pointer, line in old.lines.items():
            self._by_head.setdefault(_head(pointer), []).append((pointer, line))

    def line(self, new: str, old: str) -> None:
        """What stands at `new` was written at `old`, with all that is inside it."""
        for pointer, line in self._by_head.get(_head(old), ()):
            if pointer == old or pointer.startswith((f"{old}.", f"{old}[")):
                self._lines.setdefault(new + pointer.removeprefix(old), line)

    def refuse(self, pointer: str, what: str, fix: str) -> None:
        """A fault of the old document, at a place in it."""
        self.old.add(pointer, what, fix)

    def finish(self, data: dict[str, Plain]) -> Document:
        return Document(self.old.file, self.old.variables, data, self._lines, self.old.faults)


def _head(pointer: str) -> str:
    """The first step of a pointer: a key, or an item of a list."""
    return pointer.partition(".")[0]


def texts(value: Plain) -> list[str]:
    """The texts of a list, or the one text."""
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, str)]


def mapping(value: Plain) -> dict[str, Plain]:
    """The mapping, or an empty one for what is none."""
    return value if isinstance(value, dict) else {}


def mappings(value: Plain) -> list[tuple[int, dict[str, Plain]]]:
    """The mappings of a list with their places in it."""
    items = value if isinstance(value, list) else []
    return [(at, item) for at, item in enumerate(items) if isinstance(item, dict)]


_ALIASES = {"t1": "onprem", "t2": "cloud"}
_QUIET = ("MATCH", "DELETE_EVENT")
_JOINED_KEYS = ("version", "metadata", "sources", "join", "rules", "outputs", "metrics", "hash")
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
        if key not in _JOINED_KEYS:
            fix = f"It may have: {', '.join(_JOINED_KEYS)}."
            moving.refuse(key, f"version 1 has no key `{key}`", fix)
    rules = [_upgrade_joined_rule(moving, at, rule) for at, rule in mappings(data.get("rules"))]
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


def _upgrade_joined_rule(moving: Moving, at: int, rule: dict[str, Plain]) -> dict[str, Plain]:
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


_EMITS: dict[str, tuple[str, str]] = {"fail": ("INVALID", "ERROR"), "warn": ("QUARANTINE", "WARN")}
_OTHER = ("UNKNOWN", "INFO")
_TYPES = {"timestamp_fresh": "timestamp_freshness"}
_RENAMED = {"id": "name", "message": "description"}
_TYPED_KEYS = (
    "table",
    "topic",
    "pk",
    "columns",
    "event_time",
    "rules",
    "version",
    "metadata",
    "metrics",
)
_WHY = "the old typed form does not say it"


def typed(moving: Moving, data: dict[str, Plain], table: str) -> Document:
    """The document in the form of version 2; what it leaves open is asked for."""
    for key in data:
        if key not in _TYPED_KEYS:
            fix = f"It may have: {', '.join(_TYPED_KEYS)}."
            moving.refuse(key, f"the old typed form has no key `{key}`", fix)
    rules = [_upgrade_typed_rule(moving, at, rule) for at, rule in mappings(data.get("rules"))]
    source = _source(moving, data, table)
    name = data.get("table", table)
    one: dict[str, Plain] = {"name": name, "sources": {"onprem": source}, "rules": list(rules)}
    if "pk" in data:
        one["pk"] = data["pk"]
        moving.line("tables[0].pk", "pk")
    else:
        moving.refuse("", f"`pk` is missing: {_WHY}", "Add pk: with the column that is the key.")
        one["pk"] = next(iter(mapping(source["columns"])), "id")
    kept = {key: data[key] for key in ("metadata", "metrics") if key in data}
    for key in kept:
        moving.line(key, key)
    return moving.finish({**kept, "version": 2, "tables": [one]})


def _upgrade_typed_rule(moving: Moving, at: int, rule: dict[str, Plain]) -> dict[str, Plain]:
    old, new = f"rules[{at}]", f"tables[0].rules[{at}]"
    moving.line(new, old)
    found = {_RENAMED.get(key, key): value for key, value in rule.items() if key != "severity"}
    for before, after in _RENAMED.items():
        moving.line(f"{new}.{after}", f"{old}.{before}")
    if isinstance(name := found.get("name"), str):
        found["name"] = re.sub(r"[^a-z0-9_]+", "_", name.lower())
    if rule.get("type") == "schema_registry":
        fix = "Write type: schema, which asks for the declared columns."
        moving.refuse(f"{old}.type", "schema_registry never matched, so nobody can rely on it", fix)
        found = {"name": found.get("name", f"rule_{at}"), "type": "schema"}
    if isinstance(kind := found.get("type"), str):
        found["type"] = _TYPES.get(kind, kind)
    severity = rule.get("severity", "fail")
    status, level = _EMITS.get(str(severity).lower(), _OTHER)
    found["emit"] = {"dq_status": status, "severity": level}
    moving.line(f"{new}.emit.severity", f"{old}.severity")
    return found


def _source(moving: Moving, data: dict[str, Plain], table: str) -> dict[str, Plain]:
    columns, place = data.get("columns"), "tables[0].sources.onprem"
    if columns is None:
        columns = dict[str, Plain](derived_columns(moving, data))
    moving.line(f"{place}.columns", "columns")
    source: dict[str, Plain] = {"table": f"{data.get('table', table)}_rows", "columns": columns}
    topic = data.get("topic") or moving.old.variables.get("TOPIC")
    if topic is None:
        moving.refuse("", f"`topic` is missing: {_WHY}", "Add topic: with the topic that is read.")
        topic = "unknown"
    source["topic"] = topic
    moving.line(f"{place}.topic", "topic")
    if "event_time" in data:
        source["event_time"] = data["event_time"]
        moving.line(f"{place}.event_time", "event_time")
    return source


def derived_columns(moving: Moving, data: dict[str, Plain]) -> dict[str, str]:
    """The columns by how rules use them; a field used in two ways, or in SQL, must be declared."""
    uses: dict[str, dict[str, str]] = {}
    for at, rule in mappings(data.get("rules")):
        for name, kind in _uses(rule):
            uses.setdefault(name, {}).setdefault(kind, f"rules[{at}]")
    for name in texts(data.get("pk")):
        uses.setdefault(name, {})
    _share_kinds(data, uses)
    found: dict[str, str] = {}
    for name, kinds in uses.items():
        known = [kind for kind in kinds if kind]
        if len(known) > 1:
            what = f"`{name}` is used as {' and as '.join(known)}"
            moving.refuse(kinds[known[1]], what, _declare(name, known[0]))
        found[name] = known[0] if known else "STRING"
    _ask_for_names_in_sql(moving, data, found)
    return found


def _share_kinds(data: dict[str, Plain], uses: dict[str, dict[str, str]]) -> None:
    """Fields that are compared have one type: that of the one whose type is known."""
    for at, rule in mappings(data.get("rules")):
        pair = [*texts(rule.get("left")), *texts(rule.get("right"))]
        kinds = [kind for name in pair for kind in uses.get(name, {}) if kind]
        for name in pair:
            if kinds and not any(uses[name]):
                uses[name][kinds[0]] = f"rules[{at}]"


def _uses(rule: dict[str, Plain]) -> list[tuple[str, str]]:
    """The fields of a rule and the type that it takes them for; none where any type will do."""
    fields = [*texts(rule.get("field")), *texts(rule.get("fields"))]
    fields += [*texts(rule.get("left")), *texts(rule.get("right"))]
    return [(name, _kind(rule)) for name in fields]


def _kind(rule: dict[str, Plain]) -> str:
    kind = rule.get("type")
    if kind == "regex":
        return "STRING"
    if kind in ("timestamp_freshness", "timestamp_fresh"):
        return "TIMESTAMP(3)"
    if kind in ("range", "threshold"):
        limits = [rule.get("min"), rule.get("max")]
        return "TIMESTAMP(3)" if any(isinstance(limit, str) for limit in limits) else "DOUBLE"
    values = rule.get("values")
    if kind in ("lookup_in", "lookup_not_in") and isinstance(values, list) and values:
        kinds = {type(value) for value in values}
        if kinds <= {int, float}:
            return "BIGINT" if kinds == {int} else "DOUBLE"
        return "BOOLEAN" if kinds == {bool} else "STRING"
    return ""


_WORD = re.compile(r"`([^`]+)`|\b([A-Za-z_]\w*)\b(?!\s*\()")
_KEYWORDS = frozenset(
    "AND OR NOT IS NULL IN BETWEEN LIKE RLIKE CASE WHEN THEN ELSE END TRUE FALSE AS CAST DATE "
    "TIMESTAMP STRING INT BIGINT DOUBLE DECIMAL BOOLEAN DISTINCT FROM".split()
)


def _ask_for_names_in_sql(moving: Moving, data: dict[str, Plain], found: dict[str, str]) -> None:
    """How SQL text uses a field says little of its type, so it is asked for by name."""
    for at, rule in mappings(data.get("rules")):
        for text in texts(rule.get("sql")):
            words = [quoted or bare for quoted, bare in _WORD.findall(_QUOTED.sub("''", text))]
            for name in dict.fromkeys(words):
                if name not in found and name.upper() not in _KEYWORDS:
                    what = f"the type of `{name}` cannot be told from the rules"
                    moving.refuse(f"rules[{at}].sql", what, _declare(name, "STRING"))
                    found[name] = "STRING"


def _declare(name: str, kind: str) -> str:
    return f"Add columns: with all fields and their types, as {{{name}: {kind}}}."


_ADVICE = "it still loads, but write version 2 (docs/rules.md says how)"


def converted(document: Document) -> tuple[Document, tuple[str, ...]]:
    """The document as version 2 writes it, and what to tell a person where it was not that."""
    data = document.data
    if not isinstance(data, dict) or data.get("version", 0) not in (0, 1) or "tables" in data:
        return document, ()
    table = table_name(document.file)
    if _is_typed(data):
        form, moved = "the old typed form", typed(Moving(document), data, table)
    elif data.get("version") == 1:
        form, moved = "the form of version 1", joined(Moving(document), data, table)
    else:
        return document, ()
    name = Path(document.file).name
    unused = () if _is_typed(data) else dropped(data)
    notes = (f"{name}: {key} says nothing here and is left out" for key in unused)
    return moved, (f"{name} is written in {form}: {_ADVICE}", *notes)


def table_name(file: str) -> str:
    """The name of the only table in an old file: the file's own."""
    name = re.sub(r"[^a-z0-9_]+", "_", Path(file).stem.lower()).strip("_")
    return name if name[:1].isalpha() else f"t_{name}"


def _is_typed(data: dict[str, Plain]) -> bool:
    rules = data.get("rules")
    listed = [rule for rule in rules if isinstance(rule, dict)] if isinstance(rules, list) else []
    return any("id" in rule or ("type" in rule and "name" not in rule) for rule in listed)
