"""One run of a job: what it is given, and what it reports.

A run is given session, store and settings; it reports progress from its ledger rows, and
copies settled offsets to a consumer group, whose failure never fails a batch.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from headgate.config.settings import Settings
from headgate.core.engine.batch import BatchProtocol, Faults, TopicTarget
from headgate.core.kafka.offsets import Followed, GroupOffsets, group_of
from headgate.core.ledger.model import LedgerRow, Progress, Run
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.ranges import Range, TopicRange, topic_ranges
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class RunContext:
    """One run of one job on this driver; `failures` counts its attempts that failed by its own fault."""

    run: Run
    settings: Settings
    session: SparkSession
    store: OpsStore
    still_mine: Callable[[], None]
    stop: threading.Event = field(default_factory=threading.Event)
    faults: Faults = field(default_factory=Faults.from_environment)
    failures: int = 0

    def protocol(self) -> BatchProtocol:
        return BatchProtocol(self.store, self.faults, self.still_mine)

    def report(self, progress: Progress) -> None:
        self.store.report(self.run.job, self.run.number, progress)

    def waits(self, error: HeadgateError) -> None:
        """Something needed is away; the run goes on by itself once it is back."""
        self.store.trouble(self.run.job, self.run.number, error.code, error.one_line)

    def goes_on(self) -> None:
        """Nothing keeps the run waiting any more."""
        self.store.trouble(self.run.job, self.run.number, None, None)


class Job(Protocol):
    """A kind of job: it works until it is done or asked to stop."""

    def __call__(self, context: RunContext) -> None: ...


class RunProgress:
    """Adds up the batches of one run and reports the sum."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._started = time.monotonic()
        # A run that is taken up again goes on counting.
        before = context.store.run(context.run.job, context.run.number).progress
        self._batches, self._records = before.batches, before.records
        self._outcomes = dict(before.outcomes)
        self._before = before.records
        self._note = ""

    def note(self, words: str) -> None:
        """Something that whoever reads the outcome should know."""
        self._note = words

    def begin(self, records: int) -> None:
        """A batch of this many records is under way."""
        total = self._records + records
        self._report(total, f"{self._words()}; {records:,} under way".removeprefix("; "))

    def batch(self, row: LedgerRow | None) -> None:
        """A batch has its outcome; the note on it is told with it, not with the next one."""
        if row is not None:
            self._batches += 1
            self._records += row.read
            for name, n in row.outcomes.items():
                self._outcomes[name] = self._outcomes.get(name, 0) + n
        self._report(self._records, self._words())
        self._note = ""

    def _words(self) -> str:
        counts = ", ".join(f"{n:,} {name}" for name, n in self._outcomes.items() if n)
        return "; ".join(part for part in (counts, self._note) if part)

    def _report(self, total: int, words: str) -> None:
        own = self._records - self._before
        rate = own / max(time.monotonic() - self._started, 1e-3)
        self._context.report(
            Progress(self._batches, self._records, total, rate, words, self._outcomes)
        )


# A group that cannot be written holds a batch for seconds: so long it is then left alone.
PAUSE_SECONDS = 60.0


class GroupOffsetsOf:
    """Follows the settled ranges of one run."""

    def __init__(
        self,
        context: RunContext,
        target: TopicTarget,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._context, self._target, self._clock = context, target, clock
        self._groups: dict[str, GroupOffsets] = {}
        self._failing = False
        self._not_before = 0.0

    def catch_up(self, topic: Followed) -> None:
        """As far as this topic is settled; offsets of one that was made again say nothing of it."""
        settled = self._context.store.settled_range(self._target.job)
        if settled is not None and settled.source_id == topic.topic_id:
            self.follow(settled)

    def follow(self, range_: Range) -> None:
        """The group's offsets become the end of this range, unless that failed just now."""
        if self._clock() < self._not_before:
            return
        try:
            for own in topic_ranges(range_).values():
                self._of(own).write(own.end)
        except HeadgateError as error:
            self._note_failure(error.one_line)
        except Exception as error:  # others read these offsets, we do not
            self._note_failure(str(error) or repr(error))
        else:
            self._failing = False

    def close(self) -> None:
        while self._groups:
            self._groups.popitem()[1].close()

    def _of(self, range_: TopicRange) -> GroupOffsets:
        topic = range_.topic
        if topic not in self._groups:
            group = group_of(self._target.job)
            self._groups[topic] = GroupOffsets(self._target.bootstrap, group, topic)
        return self._groups[topic]

    def _note_failure(self, failure: str) -> None:
        """Log the first of several failures in a row, and leave the group alone for a while."""
        self._not_before = self._clock() + PAUSE_SECONDS
        if not self._failing:
            logging.getLogger("headgate").warning("%s: %s", self._target.job, failure)
        self._failing = True
