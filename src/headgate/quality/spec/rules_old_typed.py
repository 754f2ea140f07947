"""The oldest form: typed rules with an `id`, and a table that the file says little of."""

from __future__ import annotations

import re

from headgate.declarations.spec_document import Document, Plain
from headgate.quality.spec.rules_moving import Moving, mapping, mappings, texts

_EMITS: dict[str, tuple[str, str]] = {"fail": ("INVALID", "ERROR"), "warn": ("QUARANTINE", "WARN")}
_OTHER = ("UNKNOWN", "INFO")
_TYPES = {"timestamp_fresh": "timestamp_freshness"}
_RENAMED = {"id": "name", "message": "description"}
_OWN = ("table", "topic", "pk", "columns", "event_time", "rules", "version", "metadata", "metrics")
_WHY = "the old typed form does not say it"


def typed(moving: Moving, data: dict[str, Plain], table: str) -> Document:
    """The document in the form of version 2; what it leaves open is asked for."""
    for key in data:
        if key not in _OWN:
            fix = f"It may have: {', '.join(_OWN)}."
            moving.refuse(key, f"the old typed form has no key `{key}`", fix)
    rules = [_rule(moving, at, rule) for at, rule in mappings(data.get("rules"))]
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


def _rule(moving: Moving, at: int, rule: dict[str, Plain]) -> dict[str, Plain]:
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


_QUOTED = re.compile(r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
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
