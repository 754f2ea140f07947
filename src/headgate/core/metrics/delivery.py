"""Delivery of closed windows and settled batches to every sink: their records, the protocol of a sink, the dispatcher.

The ops store is the queue: a record counts as sent by a sink only once that sink has it, so an outage or a
kill loses nothing. A sink that may repeat (Kafka, HTTP) sends ids; one that must not (UDP) is marked
before it sends. A record of a batch has what windows cannot count: records without key or event time, duplicates.
`in_background` runs the dispatcher's thread, asks it to stop and waits for it.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from headgate.core.ledger.model import (
    Dimensions,
    LedgerRow,
    RuleCount,
    SinkState,
    Unsent,
    canonical,
    fingerprint,
)
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.ranges import Range, stored_range
from headgate.core.metrics.names import (
    DEAD_OUTCOMES,
    DLQ_RECORDS,
    SEVERITY_TOTALS,
    counted_as,
    flat,
    namespaced,
)
from headgate.core.metrics.windows import (
    WindowRecord,
    dimensions_of,
    instant,
    messages,
    restored,
)
from headgate.errors import HeadgateError

STOP_SECONDS = 30.0


@contextmanager
def in_background(
    work: Callable[[threading.Event], None], name: str, seconds: float = STOP_SECONDS
) -> Generator[None]:
    """Have it done meanwhile; at the end it is told to stop and waited for, at most so long."""
    stop = threading.Event()
    thread = threading.Thread(target=work, args=(stop,), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(seconds)


_DIGITS = 16


@dataclass(frozen=True)
class BatchRecord:
    """The counters of one batch by their plain names; the id is that of its job and range.

    It is told once and never changes: there is no second sequence of it.
    """

    job: str
    table_name: str
    topic_name: str
    env: str
    dc: str
    namespace: str
    batch_time: datetime
    range: Range
    revision: str
    counters: Mapping[str, int]

    @property
    def id(self) -> str:
        """Another one where the same range is judged anew: the batch has another time."""
        where = canonical(stored_range(self.range))
        return f"{self.job}/{instant(self.batch_time)}/{fingerprint(where)[:_DIGITS]}"

    def counts(self) -> dict[str, int]:
        """By flat names: a rule may count rows under the same dotted one."""
        return {flat(name): n for name, n in self.counters.items()}


def batch_record(
    row: LedgerRow, counts: Iterable[RuleCount], dimensions: Dimensions
) -> BatchRecord | None:
    """What a batch has to tell beside its windows; None where that is nothing."""
    counters = _counters(row, counts)
    if not counters:
        return None
    return BatchRecord(
        job=row.job,
        table_name=dimensions.table,
        topic_name=dimensions.topic,
        env=dimensions.env,
        dc=dimensions.dc,
        namespace=dimensions.namespace,
        batch_time=row.batch_time,
        range=row.range,
        revision=",".join(row.revisions),
        counters=counters,
    )


def _counters(row: LedgerRow, counts: Iterable[RuleCount]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for count in counts:
        name = counted_as(count.rule, count.metric)
        if name is not None:
            found[name] += count.n
    found[DLQ_RECORDS] += sum(row.outcomes.get(outcome, 0) for outcome in DEAD_OUTCOMES)
    return {name: n for name, n in sorted(found.items()) if n}


def batch_fields(record: BatchRecord) -> dict[str, Any]:
    """A batch as JSON fields; a moment stands for its window, and no row is judged by it."""
    when = instant(record.batch_time)
    dotted = {namespaced(record.namespace, name): n for name, n in record.counters.items()}
    return {
        "window_start": when,
        "env": record.env,
        "dc": record.dc,
        "table_name": record.table_name,
        "topic_name": record.topic_name,
        **{total.name: 0 for total in SEVERITY_TOTALS.values()},
        **(dotted if record.namespace else {}),
        **record.counts(),
        "record": "batch",
        "window_end": when,
        "job": record.job,
        "sequence": 1,
        "again": False,
        "late": False,
        "revision": record.revision,
        "id": record.id,
    }


Record = WindowRecord | BatchRecord


def said(record: Record) -> tuple[dict[str, Any], ...]:
    """All messages of a record, for sinks that take JSON."""
    return (batch_fields(record),) if isinstance(record, BatchRecord) else messages(record)


AT_ONCE = 200
LOOK_SECONDS = 1.0
LONGEST_WAIT = 60.0


class Change(NamedTuple):
    """A closed window or a settled batch, and the counts that the sink has sent of it before."""

    record: Record
    before: Mapping[str, int]


class Sink(Protocol):
    """Takes closed windows and batches; raises a HeadgateError when it could not."""

    @property
    def name(self) -> str: ...

    @property
    def at_most_once(self) -> bool:
        """Whether nothing must ever be sent twice, even if it may then be lost."""
        ...

    def ready(self) -> None:
        """Raise when there is no point in trying."""
        ...

    def send(self, changes: Sequence[Change]) -> None: ...

    def close(self) -> None: ...


@dataclass
class _Wait:
    """When a sink that failed is tried again."""

    until: float = 0.0
    failures: int = 0

    def longer(self, now: float) -> None:
        self.failures += 1
        self.until = now + min(2.0 ** (self.failures - 1), LONGEST_WAIT)


class Deliverer:
    """Sends what each sink has not sent; one that fails is tried again later, alone."""

    def __init__(
        self,
        store: OpsStore,
        sinks: Sequence[Sink],
        monotonic: Callable[[], float] = time.monotonic,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._store, self._sinks, self._now, self._say = store, sinks, monotonic, say
        self._waits = {sink.name: _Wait() for sink in sinks}
        for sink in sinks:
            store.register_sink(sink.name)

    def deliver(self) -> int:
        """One round over the sinks that are not waiting; how many records were sent."""
        return sum(self._round(sink) for sink in self._sinks)

    def deliver_now(self) -> tuple[int, Mapping[str, HeadgateError]]:
        """Send all that waits, whatever failed before; what was sent, and what kept a sink back."""
        sent, errors = 0, dict[str, HeadgateError]()
        for sink in self._sinks:
            try:
                while some := self._some(sink):
                    sent += some
            except HeadgateError as error:
                self._store.sink_failed(sink.name, error.one_line)
                errors[sink.name] = error
        return sent, errors

    def run(self, stop: threading.Event) -> None:
        """Deliver until stopped, and once more then, so that a short run leaves nothing behind."""
        while not stop.wait(LOOK_SECONDS):
            self._safely()
        self._safely()

    def _safely(self) -> None:
        try:
            self.deliver()
        except Exception as error:  # the store was busy, or a fault of ours: the next round may do
            self._say(f"metrics were not sent: {type(error).__name__}")

    def close(self) -> None:
        for sink in self._sinks:
            sink.close()

    def _round(self, sink: Sink) -> int:
        wait = self._waits[sink.name]
        if self._now() < wait.until:
            return 0
        sent = 0
        try:
            while some := self._some(sink):
                sent += some
            wait.failures = 0
        except HeadgateError as error:
            wait.longer(self._now())
            self._store.sink_failed(sink.name, error.one_line)
        return sent

    def _some(self, sink: Sink) -> int:
        return self._some_windows(sink) or self._some_batches(sink)

    def _state(self, sink: Sink) -> SinkState:
        """Read, not written: this is asked every second, and the store has one writer at a time."""
        known = {state.name: state for state in self._store.sinks()}
        return known.get(sink.name) or self._store.register_sink(sink.name)

    def _some_batches(self, sink: Sink) -> int:
        """Those with nothing to tell are passed over, however many they are."""
        while True:
            state = self._state(sink)
            rows = self._store.ledger_after(state.ledger, AT_ONCE)
            if not rows:
                return 0
            sent = self._passed(sink, state, rows)
            if sent:
                return sent

    def _passed(self, sink: Sink, state: SinkState, rows: Sequence[LedgerRow]) -> int:
        until = rows[-1].id or 0
        changes = [Change(record, {}) for record in self._records(sink, state, rows)]
        if changes:
            sink.ready()
        if sink.at_most_once and not self._store.claim_batches(state, until, sent=bool(changes)):
            return 0
        if changes:
            sink.send(changes)
        if not sink.at_most_once:
            self._store.claim_batches(state, until, sent=bool(changes))
        return len(changes)

    def _records(
        self, sink: Sink, state: SinkState, rows: Sequence[LedgerRow]
    ) -> Iterator[BatchRecord]:
        counts = self._store.batch_counts(state.ledger, rows[-1].id or 0)
        known = self._store.dimensions()
        for row in rows:
            if sink.at_most_once and row.rebuilt:
                continue  # it may have been sent before its ledger was lost
            record = batch_record(row, counts.get(row.id or 0, ()), dimensions_of(row.job, known))
            if record is not None:
                yield record

    def _some_windows(self, sink: Sink) -> int:
        state = self._state(sink)
        found = self._store.unsent_windows(state, AT_ONCE)
        if not found:
            return 0
        changes = [(one, _change(one)) for one in found]
        counts = [(one, _counts(one, change)) for one, change in changes]
        sink.ready()
        if sink.at_most_once and not self._store.claim_windows(state, counts):
            return 0
        sink.send([change for _, change in changes if change is not None])
        if not sink.at_most_once:
            self._store.windows_sent(sink.name, counts)
        return len(found)


def _counts(one: Unsent, change: Change | None) -> Mapping[str, int]:
    return change.record.counts() if change else one.before


def _change(one: Unsent) -> Change | None:
    """None for a window whose record was let go of before this sink came to it."""
    kept = one.window.record
    return None if kept is None else Change(restored(kept), one.before)
