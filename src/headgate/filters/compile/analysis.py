"""What can be said of filters without any event: never, always, equal to, contained in another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from headgate.conditions.analysis.compare import Region, implies
from headgate.conditions.analysis.read import Reader
from headgate.conditions.spark import to_spark
from headgate.filters.compile.model import CompiledFilter

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
    reader, region = _read(compiled)
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
    return _read(compiled)[1].is_never


def _read(compiled: CompiledFilter) -> tuple[Reader, Region]:
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
    theirs = _read(other)[1]
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
