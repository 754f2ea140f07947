"""What a filter would have matched of the last events, beside what it matches now."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from headgate.core.identity.masking import (
    asked_fields,
    masked_columns,
    masked_fields,
    masked_header,
)
from headgate.core.identity.model import Identity
from headgate.core.identity.policy import OPERATIONS, may
from headgate.errors import DeclarationError, Fault, ForbiddenError, HeadgateError
from headgate.filters.compile.analysis import findings_of
from headgate.filters.compile.compile import compile_filter
from headgate.filters.compile.model import CompiledFilter
from headgate.filters.compile.twin import Event, Refused, event_of, matcher
from headgate.filters.control.model import Concern, Preview, Remark, Sample
from headgate.filters.loader import parse_text
from headgate.filters.recent import Recent, Record, Span
from headgate.filters.spec import JSON_COLUMN, Filter, canonical

LAST, MOST, SAMPLES, MOST_SAMPLES = 10_000, 200_000, 10, 100
# Whoever may read a dead letter's content may see what is masked elsewhere.
UNMASKED = "getDeadLetter"


@dataclass(frozen=True)
class Question:
    """The filter in question, its deployed revision, and the others that run on the same source."""

    declared: Filter
    deployed: Filter | None = None
    others: Sequence[Filter] = ()

    @property
    def both(self) -> tuple[Filter, ...]:
        return (self.declared,) if self.deployed is None else (self.declared, self.deployed)


@dataclass
class _Tally:
    """What was counted so far; the newest samples are kept."""

    keep: int
    events: int = 0
    refused: int = 0
    tombstones: int = 0
    added: int = 0
    removed: int = 0
    kept: int = 0
    new: deque[tuple[Record, Event]] = field(init=False)
    gone: deque[tuple[Record, Event]] = field(init=False)

    def __post_init__(self) -> None:
        self.new, self.gone = deque(maxlen=self.keep), deque(maxlen=self.keep)

    def no_event(self, refused: Refused) -> None:
        if refused.is_tombstone:
            self.tombstones += 1
        else:
            self.refused += 1

    def judged(self, record: Record, event: Event, now: bool, before: bool) -> None:
        self.events += 1
        if now and before:
            self.kept += 1
        elif now:
            self.added += 1
            self.new.append((record, event))
        elif before:
            self.removed += 1
            self.gone.append((record, event))


def preview(
    question: Question, recent: Recent | None, last: int = LAST, samples: int = SAMPLES
) -> Preview:
    """The answer; when the topic cannot be read, without the part that takes events."""
    began = time.monotonic()
    tally, span, unread = _Tally(min(max(samples, 0), MOST_SAMPLES)), Span({}), "no broker is known"
    if recent is not None:
        try:
            source = question.declared.source
            span = recent.span(source, min(max(last, 1), MOST))
            _count(tally, question, recent.records(source, span))
            unread = ""
        except HeadgateError as error:
            tally, span, unread = _Tally(0), Span({}), error.one_line
    return _told(question, tally, span, unread, time.monotonic() - began)


def refuse_masked_conditions(by: Identity, declared: Filter) -> None:
    """ForbiddenError for conditions on masked fields, unless the caller may see unmasked values.

    A count tells what a mask hides: with `id equals e0` and `header_data.vin lessThan x` a value is
    found by halves.
    """
    fields = sorted(masked_fields([declared]))
    if fields and not may(by, UNMASKED):
        raise ForbiddenError(
            f"{by.name} may not try out conditions on {', '.join(fields[:5])}",
            why="these fields are masked, and the counts of a dry run would tell their values",
            fix="submit the filter and dry-run it by its id, or ask somebody with one of the roles "
            f"{', '.join(sorted(OPERATIONS[UNMASKED]))}",
        )


def refuse_unknown_source(declared: Filter, known: Collection[str]) -> None:
    """DeclarationError for a source that is not among those that filters read here."""
    if declared.source not in known:
        what = f"{declared.source} is no topic that filters read here"
        fix = f"Write one of {', '.join(sorted(known))}, or submit the filter first."
        raise DeclarationError([Fault("", None, "/source", what, fix)])


def _count(tally: _Tally, question: Question, records: Iterable[Record]) -> None:
    now = _judge(question.declared)
    before = _judge(question.deployed) if question.deployed else _no
    for record in records:
        event = event_of(record.value)
        if isinstance(event, Refused):
            tally.no_event(event)
        else:
            tally.judged(record, event, now(event), before(event))


def _judge(declared: Filter) -> Callable[[Event], bool]:
    return matcher(compiled_of(declared)) if declared.enabled else _no


def _no(_: Event) -> bool:
    return False


def compiled_of(declared: Filter) -> CompiledFilter:
    return _compiled(canonical(declared))


@lru_cache(maxsize=2048)
def _compiled(text: str) -> CompiledFilter:
    return compile_filter(parse_text(text, ""))


def _told(question: Question, tally: _Tally, span: Span, unread: str, seconds: float) -> Preview:
    asked = asked_fields(question.both)
    deployed = compiled_of(question.deployed) if question.deployed else None
    return Preview(
        filter_id=question.declared.id,
        revision=compiled_of(question.declared).revision,
        deployed_revision=deployed.revision if deployed else None,
        source=question.declared.source,
        events=tally.events,
        refused=tally.refused,
        tombstones=tally.tombstones,
        matched=tally.added + tally.kept,
        matched_before=tally.removed + tally.kept,
        added=tally.added,
        removed=tally.removed,
        kept=tally.kept,
        samples_added=_samples(tally.new, asked),
        samples_removed=_samples(tally.gone, asked),
        remarks=remarks(question),
        consumers=concerns(question, tally.added, tally.removed),
        read={str(partition): bounds for partition, bounds in sorted(span.ranges.items())},
        seconds=round(seconds, 3),
        unread=unread,
    )


def _samples(found: Iterable[tuple[Record, Event]], asked: frozenset[str]) -> tuple[Sample, ...]:
    return tuple(
        Sample(
            record.partition,
            record.offset,
            record.time,
            masked_columns(event.columns),
            masked_header(event.columns[JSON_COLUMN], asked),
        )
        for record, event in found
    )


def remarks(question: Question) -> tuple[Remark, ...]:
    """What is certain about the filter without any event, alone and beside the others."""
    others = [compiled_of(other) for other in question.others]
    found = findings_of(compiled_of(question.declared), others)
    return tuple(Remark(one.kind, one.other, one.words) for one in found)


def concerns(question: Question, added: int, removed: int) -> tuple[Concern, ...]:
    """Who reads what this change writes, or no longer writes."""
    declared, deployed = question.declared, question.deployed
    here = {(declared.consumer_id, declared.output_topic): (added, removed)}
    if deployed is not None:
        place = (deployed.consumer_id, deployed.output_topic)
        here.setdefault(place, (0, removed))
    topics = {topic for _, topic in here}
    for other in question.others:
        if other.output_topic in topics:
            here.setdefault((other.consumer_id, other.output_topic), (added, removed))
    return tuple(
        Concern(consumer, topic, _writers(question, topic), *counts)
        for (consumer, topic), counts in here.items()
    )


def _writers(question: Question, topic: str) -> tuple[str, ...]:
    every = (*question.both, *question.others)
    return tuple(dict.fromkeys(one.id for one in every if one.output_topic == topic))
