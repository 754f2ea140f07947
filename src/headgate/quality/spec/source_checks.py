"""Checks of a rule table's sources: names, topics, columns, event time, key and hash columns.

Yields one `(pointer, what, fix)` for each fault; reads the validated model only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TypeAlias

from headgate.declarations.columns import RESERVED_COLUMNS, is_odd_name
from headgate.declarations.errors import suggestion
from headgate.declarations.types import STRING, SqlType
from headgate.quality.spec.rule_set import RuleSource, RuleTable

Found: TypeAlias = Iterator[tuple[str, str, str]]

PREFIX = "dq_"
LOWER = re.compile(r"[a-z][a-z0-9_]{0,62}")
LOWER_FIX = "Use lower-case letters, digits and underscores, beginning with a letter."
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
IDENTIFIER_FIX = "Use letters, digits and underscores, not beginning with a digit."
# A placeholder stays one where the rule set is kept: it is filled when it runs.
TOPIC = re.compile(r"(?:[A-Za-z0-9._-]|\$\{[A-Z_]+\}){1,249}")
TOPIC_FIX = "Use up to 249 letters, digits, dots, underscores and hyphens."
_LAKE_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\.[A-Za-z_][A-Za-z0-9_]*")
_PATH_STEP = r"[A-Za-z_][A-Za-z0-9_]*(?:\[(?:[0-9]{1,9}|[A-Za-z_][A-Za-z0-9_]*='[^'\[\]]*')\])?"
_PATH = re.compile(rf"{_PATH_STEP}(?:\.{_PATH_STEP})*")
_OWN_ALIASES = {"onprem": "t1", "cloud": "t2"}
_PLACEHOLDERS = ("pk", "hash_onprem", "hash_cloud", "batch_time", "session")
# The compiled SQL says session.batch_time, which such a column would hide.
_TAKEN_COLUMNS = (*RESERVED_COLUMNS, "session")
_TAKEN_BEGINNINGS = (PREFIX, "_", "kafka_")


def source_faults(place: str, table: RuleTable) -> Found:
    """What does not fit in a table's sources, alone or beside each other."""
    for name, (side, source) in zip(table.sources, table.sides.items(), strict=True):
        yield from _source(f"{place}.sources.{name}", side, source)
        yield from _key(f"{place}.sources.{name}", place, table, source)
    yield from _pair(place, table)
    yield from _hash(place, table)


def _source(place: str, side: str, source: RuleSource) -> Found:
    if not IDENTIFIER.fullmatch(source.table):
        yield f"{place}.table", f"`{source.table}` is not a name for a view", IDENTIFIER_FIX
    elif source.table.lower().startswith(PREFIX):
        what = f"names that begin with `{PREFIX}` are those of compiled views"
        yield f"{place}.table", what, "Use another."
    yield from _origin(place, source)
    yield from _alias(place, side, source.alias)
    yield from _columns(place, source)
    if source.event_time is not None:
        yield from _event_time(f"{place}.event_time", source, source.event_time)
    if source.pk_path is not None:
        yield from _path(f"{place}.pk_path", source.pk_path)


def _path(pointer: str, path: str) -> Found:
    if not path.isprintable() or "${" in path:
        what = f"{path!r} has `${{` or a control character"
        yield pointer, what, "Choose the item by another field."
    elif not _PATH.fullmatch(path):
        what = f"`{path}` is not a path"
        yield pointer, what, "Write for example partitionColumns[type='PK'].value."


def _origin(place: str, source: RuleSource) -> Found:
    if (source.topic is None) == (source.iceberg is None):
        both = "both a topic and a table of the lake" if source.topic else "no topic and no table"
        yield place, f"the source has {both}", "Write `topic` or `iceberg`, one of them."
    for key, topic in (("topic", source.topic), ("dlq_topic", source.dlq_topic)):
        if topic is not None and (not TOPIC.fullmatch(topic) or topic in {".", ".."}):
            yield f"{place}.{key}", f"`{topic}` is not a topic name", TOPIC_FIX
    if source.topic is not None and source.topic == source.dlq_topic:
        yield f"{place}.dlq_topic", "dead letters would go back to the topic", "Use another topic."
    if source.iceberg is not None and not _LAKE_TABLE.fullmatch(source.iceberg):
        what = f"`{source.iceberg}` is not of the form schema.table"
        yield f"{place}.iceberg", what, "Write for example silver.orders."


def _alias(place: str, side: str, alias: str) -> Found:
    if not LOWER.fullmatch(alias):
        yield f"{place}.alias", f"`{alias}` is not an alias", LOWER_FIX
    own = _OWN_ALIASES[side]
    taken = {*_OWN_ALIASES.values(), *_PLACEHOLDERS} - {own}
    if alias in taken:
        what = f"`{alias}` stands for something else in conditions"
        yield f"{place}.alias", what, f"Write {own}, or another name."


def _columns(place: str, source: RuleSource) -> Found:
    seen: set[str] = set()
    for name in source.columns:
        fix = "Rename the field where the event is made."
        yield from _column(f"{place}.columns.{name}", name, seen, fix)
        seen.add(name.lower())


def _column(pointer: str, name: str, seen: Collection[str], fix: str) -> Found:
    folded = name.lower()
    if folded in _TAKEN_COLUMNS or folded.startswith(_TAKEN_BEGINNINGS):
        yield pointer, f"`{name}` is a name that Headgate uses itself", fix
    elif is_odd_name(name):
        yield pointer, f"{name!r} has a dot, a quote, `${{` or a control character", fix
    elif folded in seen:
        # Spark compares names of columns without regard to case.
        yield pointer, f"`{name}` differs from another column in case only", "Keep one."


def _event_time(pointer: str, source: RuleSource, name: str) -> Found:
    kind = source.types.get(name)
    if kind is None:
        yield pointer, f"there is no column `{name}`", suggestion(name, source.columns, "columns")
    elif not kind.is_time:
        yield pointer, f"`{name}` is {kind}, not a time", "Declare the column as TIMESTAMP(3)."


def _key(source_place: str, place: str, table: RuleTable, source: RuleSource) -> Found:
    kind = source.types.get(table.pk)
    if kind is None and source.pk_path is None:
        side = source_place.rpartition(".")[2]
        near = suggestion(table.pk, source.columns, "columns")
        what = f"there is no column `{table.pk}` in the source `{side}`"
        yield f"{place}.pk", what, f"{near} Where the key is inside a field, write `pk_path`."
    elif kind is None:
        seen = {name.lower() for name in source.columns}
        yield from _column(f"{place}.pk", table.pk, seen, "Give the key another name.")
    elif kind.name in {"FLOAT", "DOUBLE"}:
        fix = "Declare it as STRING or DECIMAL."
        yield f"{source_place}.columns.{table.pk}", f"{kind} is not exact enough for a key", fix
    elif source.pk_path is not None and kind.name != "STRING":
        fix = "Declare it as STRING, or leave it out of the columns."
        yield f"{source_place}.columns.{table.pk}", "a key from a path is text", fix


def _pair(place: str, table: RuleTable) -> Found:
    if not table.is_pair:
        return
    first, second = table.sources["onprem"], table.sources["cloud"]
    for key in ("alias", "topic", "iceberg"):
        given = getattr(second, key)
        if given is not None and given == getattr(first, key):
            pointer = f"{place}.sources.cloud.{key}"
            yield pointer, f"both sources have the {key} `{given}`", "Name another."
    kinds = [_key_type(table, source) for source in (first, second)]
    if None not in kinds and len({kind.name for kind in kinds if kind}) > 1:
        what = f"the key is {kinds[0]} on-prem and {kinds[1]} in the cloud"
        side = "onprem" if second.pk_path is not None else "cloud"
        fix = "Declare both alike; a key from a path is STRING."
        yield f"{place}.sources.{side}.columns.{table.pk}", what, fix


def _key_type(table: RuleTable, source: RuleSource) -> SqlType | None:
    """A key from a path is text, whether or not it is among the columns too."""
    return source.types.get(table.pk) if source.pk_path is None else STRING


def _hash(place: str, table: RuleTable) -> Found:
    if table.hash is None:
        if table.is_pair:
            fix = "Add `hash: {onprem_field: …, cloud_field: …}`."
            yield place, "two sources are compared by a hash, and `hash` is missing", fix
        return
    wanted = {"onprem_field": table.hash.onprem_field, "cloud_field": table.hash.cloud_field}
    for key, name in wanted.items():
        side = "cloud" if table.is_pair and key == "cloud_field" else next(iter(table.sources))
        source = table.sources[side]
        kind, pointer = source.types.get(name), f"{place}.hash.{key}"
        if kind is None:
            what = f"there is no column `{name}` in the source `{side}`"
            yield pointer, what, suggestion(name, source.columns, "columns")
        elif kind.name != "STRING":
            yield pointer, f"`{name}` is {kind}, and a hash is text", "Declare it as STRING."
