"""A filter judged in Python: which records it takes, what the router would write, and findings that need no event.

`event_of` reads a record exactly as Spark does (reference evaluator of the router). `findings_of` analyses
conditions: never, always, no effect, equal to or contained in another filter; every finding is certain, but the
analysis does not find everything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import orjson

from headgate.conditions.analysis.formulas import Region, implies
from headgate.conditions.analysis.two_valued import Reader
from headgate.conditions.evaluator.casts import read_text
from headgate.conditions.evaluator.evaluate import build_evaluator
from headgate.conditions.evaluator.json_documents import Json, read_document, text_of, value_of
from headgate.conditions.spark_sql import to_spark
from headgate.declarations.types import BIGINT
from headgate.filters.compile.spark_sql import SENT, CompiledFilter
from headgate.filters.spec import COLUMNS, NUMBER_COLUMN

Kind: TypeAlias = Literal["never", "always", "no_effect", "equal", "contained", "contains"]
# What the router vouches for: without an id a record is no event.
KNOWN = {"id": "every event has an id"}
_SHOWN = 60


@dataclass(frozen=True)
class Finding:
    """Each finding is certain; not all there is to find is found. `other` is the other filter's id."""

    kind: Kind
    filter: str
    other: str | None
    words: str


def findings_of(compiled: CompiledFilter, others: Sequence[CompiledFilter] = ()) -> list[Finding]:
    """What is to be said of a filter, alone and beside the others of its source."""
    reader, region = _read_region(compiled)
    alone = [*_alone(compiled, region), *_parts(compiled, reader, region)]
    if not region.is_usual:
        return alone
    beside = [
        found
        for other in others
        if other.id != compiled.id and other.source == compiled.source
        for found in _beside(compiled, region, other)
    ]
    return [*alone, *beside]


def never_matches(compiled: CompiledFilter) -> bool:
    """Whether it is certain that no event can match."""
    return _read_region(compiled)[1].is_never


def _read_region(compiled: CompiledFilter) -> tuple[Reader, Region]:
    reader = Reader(KNOWN)
    return reader, Region(reader.read(compiled.condition))


def _alone(compiled: CompiledFilter, region: Region) -> list[Finding]:
    if region.is_never:
        return [Finding("never", compiled.id, None, f"`{compiled.id}` can match no event")]
    if region.is_always:
        return [Finding("always", compiled.id, None, f"`{compiled.id}` matches every event")]
    return []


def _parts(compiled: CompiledFilter, reader: Reader, region: Region) -> list[Finding]:
    if region.is_never or region.is_always:
        return []
    found: list[Finding] = []
    for part, holds in reader.odd:
        text = to_spark(part)
        shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
        said = "every value" if holds else "no value"
        words = (
            f"a part of `{compiled.id}` decides nothing: `{shown}` is true of {said} there can be"
        )
        found.append(Finding("no_effect", compiled.id, None, words))
    return found


def _beside(compiled: CompiledFilter, region: Region, other: CompiledFilter) -> list[Finding]:
    theirs = _read_region(other)[1]
    if not theirs.is_usual:
        return []
    within, around = implies(region, theirs), implies(theirs, region)
    if within and around:
        words = f"`{compiled.id}` matches exactly the events that `{other.id}` matches"
        return [Finding("equal", compiled.id, other.id, words)]
    if within:
        words = f"every event that `{compiled.id}` matches, `{other.id}` matches too"
        return [Finding("contained", compiled.id, other.id, words)]
    if around:
        words = f"every event that `{other.id}` matches, `{compiled.id}` matches too"
        return [Finding("contains", compiled.id, other.id, words)]
    return []


# Far below what Spark's reader refuses: 1,000 levels, names of 50,000 characters.
_USUAL_SIZE, _USUAL_BRACKETS = 32_768, 200
_MOST_MILLIS = (1 << 63) - 1
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_LOWER_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\u00(1[a-f]|0[b-f])")


@dataclass(frozen=True)
class Event:
    """The columns of one event, as the router reads them; NULL is None."""

    columns: Mapping[str, str | int | None]

    @property
    def id(self) -> str:
        return str(self.columns["id"])


@dataclass(frozen=True)
class Refused:
    """A record that is no event: a tombstone, or a dead letter."""

    is_tombstone: bool = False


def event_of(value: bytes | None) -> Event | Refused:
    """The event in a record's value, its columns exactly as Spark reads them."""
    if value is None:
        return Refused(is_tombstone=True)
    try:
        # As strict as strict_json but for fields that stand twice and for sizes: no bytes that are
        # not UTF-8, nothing behind the value, no half surrogate, no number beyond a DOUBLE.
        root = orjson.loads(value)
    except orjson.JSONDecodeError:
        return Refused()
    return _usual(value, root) or _read(value)


def _usual(value: bytes, root: object) -> Event | None:
    """The event where the value is written as Debezium writes it; None leaves it to careful reading.

    A parser that is quick says nothing of fields that stand twice and of how numbers are written. But
    what it writes back byte for byte had neither; and what it has no room for is not usual.
    """
    if len(value) > _USUAL_SIZE or value.count(b"[") + value.count(b"{") > _USUAL_BRACKETS:
        return None
    if not isinstance(root, dict) or orjson.dumps(root) != value:
        return None
    found = cast("dict[str, Any]", root)
    texts = [found.get(name) for name in SENT]
    number = found.get(NUMBER_COLUMN)
    usual = all(text is None or type(text) is str for text in texts) and texts[0]
    if not usual or not (number is None or (type(number) is int and number <= _MOST_MILLIS)):
        return None
    return Event({**dict(zip(SENT, texts, strict=True)), NUMBER_COLUMN: number})


def _read(value: bytes) -> Event | Refused:
    root = read_document(value.decode())
    if not isinstance(root, dict):
        return Refused()
    columns: dict[str, str | int | None] = {}
    for name in COLUMNS:
        field = root.get(name)
        if field is None:
            columns[name] = None
            continue
        found = _whole_number(field) if name == NUMBER_COLUMN else text_of(field)
        if found is None:
            return Refused()
        columns[name] = found
    return Event(columns) if columns["id"] else Refused()


def _whole_number(value: Json) -> int | None:
    found = read_text(value_of(value) or "", BIGINT)
    return found if isinstance(found, int) else None


def matcher(compiled: CompiledFilter) -> Callable[[Event], bool]:
    """The filter as a function that tells whether it sends an event on."""
    evaluator = build_evaluator(compiled.condition)
    return lambda event: evaluator(event.columns, None) is True


def output_of(event: Event) -> tuple[bytes, bytes]:
    """The key and the value that the router writes, byte for byte."""
    plain = {name: event.columns[name] for name in SENT}
    text = _ENCODE(plain)
    if "\\u00" in text:
        # Java writes the escapes of control characters in capitals.
        text = _LOWER_ESCAPE.sub(lambda found: found.group(0)[:-2] + found.group(2).upper(), text)
    return event.id.encode(), text.encode()
