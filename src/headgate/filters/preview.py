"""Dry run of a filter over the last events of its topic, beside the revision that is deployed now.

Counts matches added, removed and kept; samples are masked; findings and affected consumers need no event.
Reads backwards from the topic's end without a consumer group. When the topic cannot be read, the answer says
why and has the rest. Conditions on masked fields are refused to callers who may not see these values, because
counts would tell them.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol

from headgate.core.identity.masking import is_tagged, masked_header, shortened
from headgate.core.identity.roles import OPERATIONS, Identity, may
from headgate.core.kafka.reader import Stretch, committed_records
from headgate.core.kafka.topics import Topics
from headgate.errors import DeclarationError, Fault, ForbiddenError, HeadgateError
from headgate.filters.compile.matcher import Event, Refused, event_of, findings_of, matcher
from headgate.filters.compile.spark_sql import CompiledFilter, compile_filter
from headgate.filters.control.model import Concern, Preview, Remark, Sample
from headgate.filters.loader import parse_text
from headgate.filters.spec import (
    JSON_COLUMN,
    AllOf,
    AnyCondition,
    AnyOf,
    Filter,
    NotOf,
    canonical,
)
from headgate.filters.store.model import TopicEnd

SECONDS = 20.0


@dataclass(frozen=True)
class Record:
    """One record where it stands; `at` is the broker's time in milliseconds, or negative."""

    partition: int
    offset: int
    at: int
    value: bytes | None

    @property
    def time(self) -> datetime | None:
        return datetime.fromtimestamp(self.at / 1000, UTC) if self.at >= 0 else None


@dataclass(frozen=True)
class Span:
    """Offsets by partition, from (inclusive) to (exclusive)."""

    ranges: Mapping[int, tuple[int, int]]


class Recent(Protocol):
    """Where the last records of a topic can be read."""

    def end(self, topic: str) -> TopicEnd: ...

    def span(self, topic: str, last: int) -> Span: ...

    def records(self, topic: str, span: Span) -> Generator[Record]: ...


class KafkaRecent:
    """From a broker; it ends after the span or with UnavailableError after some seconds."""

    def __init__(self, bootstrap: str, seconds: float = SECONDS) -> None:
        self._bootstrap, self._seconds = bootstrap, seconds

    def end(self, topic: str) -> TopicEnd:
        """Where the topic ends now; one that is not there yet has no offsets."""
        topics = Topics(self._bootstrap)
        topics.need()
        state = topics.describe(topic)
        if state is None:
            return TopicEnd(topic, "", {})
        return TopicEnd(topic, state.topic_id, {str(p): end for p, end in state.end.items()})

    def span(self, topic: str, last: int) -> Span:
        """The last offsets of all partitions, as evenly as they have records."""
        state = Topics(self._bootstrap).found(topic)
        held = {p: state.end[p] - state.begin[p] for p in state.end}
        shares = shared_out(held, last)
        return Span({p: (state.end[p] - shares[p], state.end[p]) for p in held if shares[p]})

    def records(self, topic: str, span: Span) -> Generator[Record]:
        begin = {partition: first for partition, (first, _) in span.ranges.items()}
        end = {partition: last for partition, (_, last) in span.ranges.items()}
        stretch = Stretch(topic, begin, end)
        # What expired meanwhile is left out: a preview looks at what is there.
        for found in committed_records(self._bootstrap, stretch, self._seconds, expired="earliest"):
            yield Record(found.partition, found.offset, found.millis, found.value)


def shared_out(held: Mapping[int, int], last: int) -> dict[int, int]:
    """How many each partition gives: evenly, and more where others have too few."""
    shares, left = dict.fromkeys(held, 0), last
    for place, partition in enumerate(sorted(held, key=lambda p: held[p])):
        shares[partition] = min(held[partition], -(-left // (len(held) - place)))
        left -= shares[partition]
    return shares


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


def asked_fields(filters: Iterable[Filter]) -> frozenset[str]:
    """The paths into header_data that the conditions ask about, without that word."""
    prefix = f"{JSON_COLUMN}."
    fields = (field for one in filters for part in one.conditions for field in _fields(part))
    return frozenset(field.removeprefix(prefix) for field in fields if field.startswith(prefix))


def masked_fields(filters: Iterable[Filter]) -> frozenset[str]:
    """The fields that conditions ask about and no sample shows: tagged ones, and header_data whole."""
    fields = (field for one in filters for part in one.conditions for field in _fields(part))
    return frozenset(field for field in fields if field == JSON_COLUMN or _is_masked(field))


def _is_masked(field: str) -> bool:
    # An object or a list has no text of its own, so that what is inside of it is asked for by name.
    column, *names = re.split(r"[.\[\]]", field)
    return column == JSON_COLUMN and any(is_tagged(name) for name in names)


def _fields(part: AnyCondition) -> Iterable[str]:
    match part:
        case AllOf():
            return [field for item in part.all for field in _fields(item)]
        case AnyOf():
            return [field for item in part.any for field in _fields(item)]
        case NotOf():
            return _fields(part.not_)
        case _:
            return [part.field]


def masked_columns(columns: Mapping[str, str | int | None]) -> dict[str, str | int | None]:
    """The plain columns; header_data is shown apart."""
    plain = {name: value for name, value in columns.items() if name != JSON_COLUMN}
    return {name: shortened(value) for name, value in plain.items()}
