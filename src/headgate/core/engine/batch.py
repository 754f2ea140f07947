"""The batch protocol: announce the range, write, settle the outcome; with named points for fault tests.

    intent ──► stage ──► publish ──► outcome
      │  a crash: the next run finishes the same intent, under the same revisions
      └► what does not follow the table's last commit is refused (BatchRefusedError)

`Work` is what a job does with one batch, `Result` what became of its records, `TopicTarget` the tables it
goes to. `Faults` kills the engine at one point, once, when HEADGATE_FAULT names it.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from headgate.core.lake.commits import AlreadyPublishedError
from headgate.core.lake.table import Reached
from headgate.core.ledger.model import Intent, LedgerExtra, LedgerRow
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.ranges import OffsetRange, Range, is_rebuild
from headgate.core.sql.fragments import DEAD_LETTERS
from headgate.errors import BatchRefusedError, OperationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


VARIABLE = "HEADGATE_FAULT"


class Point(StrEnum):
    """Where a fault can strike, in the order of a batch."""

    FILTER_RAISES = "filter-raises"
    AFTER_INTENT = "after-intent"
    MID_WRITE = "mid-write"
    AFTER_STAGING = "after-staging"
    AFTER_ROUTING = "after-routing"
    AFTER_DEAD_LETTERS = "after-dead-letters"
    AFTER_STATES = "after-states"
    AFTER_PARTIALS = "after-partials"
    AFTER_KEYS = "after-keys"
    AFTER_PUBLISH = "after-publish"
    BEFORE_OUTCOME = "before-outcome"


class Faults:
    """Strikes at one point, once: `HEADGATE_FAULT=after-intent:/path/of/witness`.

    `after-intent@2` strikes the second time. The witness file is written first, so that a test can
    tell that the fault was really met. `filter-raises@dealer-001` kills nothing: that filter raises on
    every record that it matches.
    """

    def __init__(self, text: str = "") -> None:
        where, _, self._witness = text.partition(":")
        name, _, count = where.partition("@")
        self._point = Point(name) if name else None
        self._filter = count if self._point is Point.FILTER_RAISES else ""
        self._left = 0 if self._filter else int(count or 1)

    @classmethod
    def from_environment(cls) -> Faults:
        return cls(os.environ.get(VARIABLE, ""))

    def at(self, point: Point) -> None:
        if self._due(point):
            self._strike()

    def raising_filter(self) -> str:
        """The filter that is made to raise; empty when none is."""
        return self._filter

    def witness(self) -> None:
        """A fault that kills nothing was met."""
        if self._witness:
            Path(self._witness).write_text(str(self._point))

    def during(self, point: Point, watcher: Callable[[], Callable[[], bool]]) -> None:
        """Strike from the side as soon as the watcher sees that the step is under way."""
        if self._due(point):
            threading.Thread(target=self._watch, args=(watcher(),), daemon=True).start()

    def _due(self, point: Point) -> bool:
        if point is not self._point:
            return False
        self._left -= 1
        return self._left == 0

    def _watch(self, begun: Callable[[], bool]) -> None:
        for _ in range(20_000):
            if begun():
                break
            time.sleep(0.005)
        self._strike()

    def _strike(self) -> None:
        self.witness()
        # The whole group: the JVM must die with its driver, as it does when a machine does.
        os.killpg(os.getpgid(0), signal.SIGKILL)


@dataclass(frozen=True)
class Result:
    """What became of a batch's records, and the snapshots that hold them.

    `committed_at` is when the table took them, where that must be told apart from now; `net` how
    many rows it has gained, where the outcomes do not tell; `amended` the intent that was carried
    out, where the work amended the one it was given; `extras` are written with its ledger row.
    """

    read: int
    outcomes: Mapping[str, int]
    snapshots: Mapping[str, int]
    revisions: tuple[str, ...]
    committed_at: datetime | None = None
    net: int = 0
    amended: Intent | None = None
    extras: tuple[LedgerExtra, ...] = ()


class Work(Protocol):
    """What a job does with one batch."""

    def reached(self, intent: Intent) -> Reached | None:
        """How far the job's table has come; None before its first batch."""
        ...

    def write(self, intent: Intent) -> Result:
        """Write the batch, publish it, and say what became of its records."""
        ...

    def account(self, intent: Intent) -> Result | None:
        """The same from a commit that is already there; None when there is none of this range."""
        ...


class BatchProtocol:
    """Takes each batch of one run from intent to outcome."""

    def __init__(
        self, store: OpsStore, faults: Faults, still_mine: Callable[[], None] = lambda: None
    ) -> None:
        self.store = store
        self.faults = faults
        self.still_mine = still_mine

    def process(
        self,
        job: str,
        run: int,
        range_: Range,
        revisions: tuple[str, ...],
        batch_id: int,
        work: Work,
        after: datetime | None = None,
    ) -> LedgerRow | None:
        """Bring a batch to its outcome; None when it had one already or has no record.

        Its time is behind that of the job's last batch, and behind `after` where that is given.
        """
        if span(range_) == 0:
            return None
        known = (at for at in (self.store.last_batch_time(job), after) if at is not None)
        now = later_than(max(known, default=None), datetime.now(UTC))
        draft = Intent(None, job, run, range_, revisions, now, batch_id)
        intent = self.store.begin(draft)
        if intent.range.end != range_.end:
            raise _cut_differently(intent, range_)
        if self._settled(intent):
            refuse_unless_held(intent, work.reached(intent))
            return None
        return self.finish(replace(intent, run=run), work)

    def finish(self, intent: Intent, work: Work) -> LedgerRow:
        """Carry out an open intent, whoever announced it."""
        self.faults.at(Point.AFTER_INTENT)
        self.still_mine()
        result = work.account(intent) or self._written(intent, work)
        self.faults.at(Point.BEFORE_OUTCOME)
        done = result.amended or self._as_it_stands(intent)
        row = ledger_row(done, result)
        return self.store.settle(done, row, result.extras)

    def published(self, work: Work, intent: Intent, publish: Callable[[], object]) -> Result:
        """Publish what is staged while the batch is still this run's, and account for it."""
        self.still_mine()
        publish()
        self.faults.at(Point.AFTER_PUBLISH)
        result = work.account(intent)
        if result is None:
            raise OperationError(f"the commit that {intent.job} has just published is lost")
        return result

    def _written(self, intent: Intent, work: Work) -> Result:
        refuse_unless_next(intent, work.reached(intent))
        try:
            return work.write(intent)
        except AlreadyPublishedError:
            # Another run of this job was quicker; its commit counts if it is of the same range.
            result = work.account(intent)
            if result is None:
                raise
            return result

    def _as_it_stands(self, intent: Intent) -> Intent:
        """The open intent of this batch: it may have been amended before its commit was found."""
        found = (o for o in self.store.open_intents(intent.job) if o.range == intent.range)
        return replace(next(found, intent), run=intent.run)

    def _settled(self, intent: Intent) -> bool:
        return intent.id not in {open_.id for open_ in self.store.open_intents(intent.job)}


def later_than(last: datetime | None, now: datetime) -> datetime:
    """The time of the next batch: they rise, even where the clock was set back."""
    return now if last is None else max(now, last + timedelta(microseconds=1))


def refuse_unless_held(intent: Intent, reached: Reached | None) -> None:
    """A batch that the ledger calls settled must stand in the table."""
    if not isinstance(intent.range, OffsetRange):
        return
    end: Mapping[str, int] = {}
    if reached is not None and reached.source_id == intent.range.source_id:
        end = reached.end
    if any(end.get(key, 0) < offset for key, offset in intent.range.end.items()):
        raise BatchRefusedError(
            f"a settled batch of {intent.job} is not in its table",
            why=f"the table ends at {dict(end)}, the batch at {dict(intent.range.end)}",
            fix="restore the table, or begin anew with an empty HEADGATE_HOME",
        )


def refuse_unless_next(intent: Intent, reached: Reached | None) -> None:
    """A batch must start where the table's last commit of this job ended."""
    if reached is None or reached.source_id != intent.range.source_id or not intent.range.start:
        return
    end, start = reached.end, intent.range.start
    # A partition that the table has never seen may begin anywhere.
    if any(start.get(key, 0) != offset for key, offset in end.items()):
        raise BatchRefusedError(
            f"a batch of {intent.job} does not follow what its table has committed",
            why=f"the table ends at {dict(end)}, the batch starts at {dict(start)}",
            fix=f"headgate job repair {intent.job}",
        )


def span(range_: Range) -> int:
    """Offsets between start and end; a table's range counts as one step when its end is new."""
    if not isinstance(range_, OffsetRange):
        return int(is_rebuild(range_) or range_.start != range_.end)
    return sum(end - range_.start.get(key, 0) for key, end in range_.end.items())


def ledger_row(intent: Intent, result: Result) -> LedgerRow:
    """The ledger's row for a batch that was carried out."""
    width = span(intent.range) if isinstance(intent.range, OffsetRange) else result.read
    return LedgerRow(
        id=None,
        job=intent.job,
        run=intent.run,
        range=intent.range,
        revisions=result.revisions,
        batch_time=intent.batch_time,
        batch_id=intent.batch_id,
        read=result.read,
        span=width,
        gaps=width - result.read,
        outcomes=result.outcomes,
        snapshots=result.snapshots,
        committed_at=result.committed_at or datetime.now(UTC),
        net=result.net,
    )


def _cut_differently(intent: Intent, range_: Range) -> BatchRefusedError:
    return BatchRefusedError(
        f"a batch of {intent.job} is cut differently from its intent",
        why=f"announced up to {dict(intent.range.end)}, now up to {dict(range_.end)}",
        fix=f"headgate job repair {intent.job}",
    )


@dataclass(frozen=True)
class TopicTarget(ABC):
    """`table` is published last: a batch that it holds is wholly written."""

    job: str
    table: str
    dlq_topic: str
    bootstrap: str

    @property
    def before(self) -> tuple[str, ...]:
        """The tables that a batch is published to before it is in `table`."""
        return (DEAD_LETTERS,)

    @property
    def shape(self) -> str:
        """The shape of the state that its query keeps; most keep none."""
        return ""

    @abstractmethod
    def account(self, session: SparkSession, intent: Intent) -> Result | None:
        """What became of a batch, from the tables alone; None when `table` has no commit of it."""
