"""Offsets of a topic as spans per partition, and what is left of some without others. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

Span = tuple[int, int]
Spans = Mapping[str, Sequence[Span]]


def between(start: Mapping[str, int], end: Mapping[str, int]) -> Spans:
    """From the one offsets to the others; a partition that `start` lacks is from the beginning."""
    found = {p: (start.get(p, 0), until) for p, until in end.items()}
    return {p: [span] for p, span in found.items() if span[1] > span[0]}


def merged(spans: Iterable[tuple[str, int, int]]) -> Spans:
    """Spans in any order, each given with its partition, as few as possible."""
    found: dict[str, list[Span]] = {}
    for partition, start, end in sorted(spans, key=lambda one: (one[0], one[1], one[2])):
        lane = found.setdefault(partition, [])
        if lane and start <= lane[-1][1]:
            lane[-1] = (lane[-1][0], max(lane[-1][1], end))
        elif end > start:
            lane.append((start, end))
    return {partition: lane for partition, lane in found.items() if lane}


def each(spans: Spans) -> Iterable[tuple[str, int, int]]:
    return ((p, start, end) for p, lane in spans.items() for start, end in lane)


def union(*parts: Spans) -> Spans:
    return merged(one for part in parts for one in each(part))


def minus(spans: Spans, without: Spans) -> Spans:
    """What of these is in none of the others."""
    known = merged(each(without))
    left = (
        (partition, *piece)
        for partition, start, end in each(spans)
        for piece in _rest((start, end), known.get(partition, ()))
    )
    return merged(left)


def _rest(span: Span, without: Sequence[Span]) -> Iterable[Span]:
    start, end = span
    for low, high in without:
        if high <= start or low >= end:
            continue
        if low > start:
            yield start, low
        start = max(start, high)
    if start < end:
        yield start, end


def size(spans: Spans) -> int:
    return sum(end - start for _, start, end in each(spans))


def first(spans: Spans, most: int) -> Spans:
    """The beginning of each partition's spans, about so many offsets in all."""
    share = max(1, most // max(1, len(spans)))
    return {p: [(lane[0][0], min(lane[0][1], lane[0][0] + share))] for p, lane in spans.items()}


def blocks(spans: Spans) -> list[tuple[dict[str, int], dict[str, int]]]:
    """As starts and ends per partition: the first spans of all partitions, then the second…"""
    lanes = [[(partition, span) for span in lane] for partition, lane in sorted(spans.items())]
    rows = ([one for one in row if one] for row in zip_longest(*lanes))
    return [({p: span[0] for p, span in row}, {p: span[1] for p, span in row}) for row in rows]
