"""From where to where a run has read its sources, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headgate.core.ledger.store_model import SNAPSHOT, Range

MOST = 6


def range_words(ranges: Sequence[Range]) -> tuple[str, ...]:
    """A line for each partition or table; beyond a few, how many more there are."""
    spans: dict[tuple[str, str], tuple[int, int]] = {}
    for range_ in ranges:
        for place, start, end in _spans(range_):
            first, last = spans.get(place, (start, end))
            spans[place] = (min(first, start), max(last, end))
    told = [_words(*place, *span) for place, span in spans.items()]
    more = len(told) - MOST
    return (*told[:MOST], f"and {more:,} partitions more") if more > 0 else tuple(told)


def source_names(ranges: Sequence[Range]) -> tuple[str, ...]:
    """The topics and tables that were read, as they are really called."""
    names = (range_.source.partition(":")[2] for range_ in ranges)
    return tuple(dict.fromkeys(filter(None, names)))


def _spans(range_: Range) -> Iterator[tuple[tuple[str, str], int, int]]:
    name = range_.source.partition(":")[2] or range_.source
    for part, end in range_.end.items():
        yield (name, part), range_.start.get(part, 0), end


def _words(source: str, part: str, start: int, end: int) -> str:
    if part == SNAPSHOT:
        return f"{source} at snapshot {end}"
    return f"{source}, partition {part}: offsets {start:,} to {end:,}"
