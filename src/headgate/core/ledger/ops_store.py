"""`OpsStore`: leases, runs, intents, ledger, counts, windows, revisions and gauges; every method is one transaction.

Safe to use from threads. `open` creates or migrates the store when needed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Self, TypeVar

from sqlalchemy import Engine, delete, insert, select

from headgate.core.ledger import batches, counts, runs, windows
from headgate.core.ledger.database import connect, replace_row, writing
from headgate.core.ledger.model import (
    Closing,
    Dimensions,
    Drifted,
    FieldDrift,
    Intent,
    JobSpec,
    Lease,
    LedgerExtra,
    LedgerRow,
    Progress,
    Revision,
    RuleCount,
    Run,
    RunState,
    SinkState,
    Unsent,
    Window,
    canonical,
    fingerprint,
)
from headgate.core.ledger.ranges import Range
from headgate.core.ledger.tables import dimensions as dimension_table
from headgate.core.ledger.tables import gauges as gauge_table
from headgate.core.ledger.tables import revisions as revision_table
from headgate.core.ledger.tables import services_ready

Part = TypeVar("Part")


def utc_now() -> datetime:
    return datetime.now(UTC)


class OpsStore:
    """Leases, runs, intents, the ledger, windows, revisions; every method is one transaction."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime] = utc_now) -> None:
        self._engine = engine
        self._clock = clock

    @classmethod
    def open(cls, url: str, clock: Callable[[], datetime] = utc_now) -> Self:
        """Open the store at this URL, creating or migrating it when needed."""
        return cls(connect(url), clock)

    def part(self, kind: Callable[[Engine, Callable[[], datetime]], Part]) -> Part:
        """Tables of one concern over the same database and clock: `store.part(KeyStore)`."""
        return kind(self._engine, self._clock)

    def close(self) -> None:
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Leases

    def acquire(self, name: str, holder: str, ttl_seconds: float) -> Lease | None:
        """The lease, or None while another holder's has not run out."""
        now = self._clock()
        with writing(self._engine) as db:
            return runs.acquire(db, name, holder, now, now + timedelta(seconds=ttl_seconds))

    def renew(self, lease: Lease, ttl_seconds: float) -> Lease:
        """The lease with a later end; LeaseLostError once someone else has taken it."""
        with writing(self._engine) as db:
            return runs.renew(db, lease, self._clock() + timedelta(seconds=ttl_seconds))

    def release(self, lease: Lease) -> None:
        with writing(self._engine) as db:
            runs.release(db, lease, self._clock())

    def lease(self, name: str) -> Lease | None:
        """Who holds the lease now, if anyone does."""
        with self._engine.connect() as db:
            held = runs.find_lease(db, name)
        return held if held and held.holder and held.expires_at > self._clock() else None

    # Runs

    def submit(self, spec: JobSpec) -> Run:
        """A new SUBMITTED run; ConflictError while the job has one that has not ended."""
        with writing(self._engine) as db:
            return runs.submit(db, spec, self._clock())

    def run(self, job: str, number: int) -> Run:
        with self._engine.connect() as db:
            return runs.get(db, job, number)

    def latest(self, job: str) -> Run | None:
        found = self.runs(job, limit=1)
        return found[0] if found else None

    def runs(
        self,
        job: str | None = None,
        since: datetime | None = None,
        states: Collection[RunState] | None = None,
        limit: int | None = None,
    ) -> tuple[Run, ...]:
        """Runs, newest first."""
        with self._engine.connect() as db:
            return runs.find(db, job, since, states, limit)

    def move(
        self,
        job: str,
        number: int,
        state: RunState,
        error_code: str | None = None,
        error_text: str | None = None,
        engine: str | None = None,
    ) -> Run:
        """The run in its next state; ConflictError when that is not a legal transition."""
        with writing(self._engine) as db:
            return runs.move(db, job, number, state, self._clock(), error_code, error_text, engine)

    def count_restart(self, job: str, number: int, reason: str = "") -> Run:
        """Count a restart, and note when and why it was."""
        with writing(self._engine) as db:
            return runs.count_restart(db, job, number, reason, self._clock())

    def trouble(self, job: str, number: int, code: str | None, text: str | None) -> None:
        """Note what keeps a run from going on, or that nothing does any more."""
        now = self.run(job, number)
        if (now.error_code, now.error_text) != (code, text):
            with writing(self._engine) as db:
                runs.trouble(db, job, number, code, text)

    def count_loss(self, job: str, number: int) -> int:
        """Count that the driver was lost under this run; how often, since it last settled a batch."""
        with writing(self._engine) as db:
            return runs.count_loss(db, job, number)

    def report(self, job: str, number: int, progress: Progress) -> None:
        with writing(self._engine) as db:
            runs.report(db, job, number, progress)

    def request_stop(self, job: str, number: int) -> Run:
        with writing(self._engine) as db:
            return runs.request_stop(db, job, number)

    def claim(self, job: str, number: int, engine: str) -> Run:
        """The run, carried out by this engine from now on."""
        with writing(self._engine) as db:
            return runs.claim(db, job, number, engine, self._clock())

    def let_go(self, job: str, number: int) -> None:
        """The run has no engine for now, but stays wanted."""
        with writing(self._engine) as db:
            runs.let_go(db, job, number)

    # Intents

    def begin(self, intent: Intent) -> Intent:
        """The intent to obey: the one already stored for this start, else this one, now stored."""
        with writing(self._engine) as db:
            return batches.begin(db, intent)

    def amend(self, intent: Intent, revisions: Sequence[str]) -> Intent:
        """The same offsets under another set of revisions."""
        with writing(self._engine) as db:
            return batches.amend(db, intent, revisions)

    def withdraw(self, intent: Intent) -> None:
        """Give up a batch that can no longer be carried out and of which nothing is written."""
        with writing(self._engine) as db:
            batches.withdraw(db, intent)

    def open_intents(self, job: str) -> tuple[Intent, ...]:
        with self._engine.connect() as db:
            return batches.open_of(db, job)

    def unsettled_intents(self) -> tuple[Intent, ...]:
        """Batches of all jobs that are under way or were given up: no ledger row is of them."""
        with self._engine.connect() as db:
            return batches.unsettled(db)

    def intent_at(self, job: str, start: Mapping[str, int]) -> Intent | None:
        """The newest open or settled intent with this start."""
        with self._engine.connect() as db:
            return batches.at(db, job, start)

    # Ledger

    def settle(
        self, intent: Intent, row: LedgerRow, extras: Sequence[LedgerExtra] = ()
    ) -> LedgerRow:
        """Write the outcome and close the intent; BatchRefusedError when it does not add up.

        The extra rows are written in the same transaction, unless the range was settled before.
        """
        with writing(self._engine) as db:
            return batches.settle(db, intent, row, extras)

    def ledger(self, job: str | None = None) -> tuple[LedgerRow, ...]:
        """Ledger rows in the order they were committed."""
        with self._engine.connect() as db:
            return batches.find(db, job)

    def newest_batches(self, job: str, limit: int) -> tuple[LedgerRow, ...]:
        """The last rows of a job, in the order they were committed."""
        with self._engine.connect() as db:
            return batches.newest(db, job, limit)

    def ledger_after(self, row: int, limit: int) -> tuple[LedgerRow, ...]:
        """Rows of all jobs that were written after this one, in that order."""
        with self._engine.connect() as db:
            return batches.after(db, row, limit)

    def last_batch_time(self, job: str) -> datetime | None:
        """The time of the batch that was settled last; None before the first one."""
        with self._engine.connect() as db:
            return batches.last_batch_time(db, job)

    def coverage(self, job: str) -> Mapping[str, int]:
        """Where the job's next batch must start: the end of each partition, or the snapshot."""
        with self._engine.connect() as db:
            return batches.coverage(db, job)

    def settled_range(self, job: str) -> Range | None:
        """The newest source of the job and how far it is settled; None before the first batch."""
        with self._engine.connect() as db:
            return batches.settled_range(db, job)

    def rebuild(self, rows: Iterable[tuple[LedgerRow, Sequence[LedgerExtra]]]) -> int:
        """Add the rows that are missing, with their extra rows; how many they were."""
        with writing(self._engine) as db:
            return batches.rebuild(db, rows)

    # Drift

    def note_drift(self, intent: Intent, found: Iterable[FieldDrift]) -> None:
        """Keep which fields of a batch deviated, before the batch is published."""
        with writing(self._engine) as db:
            counts.note_drift(db, intent, found)

    def drift(self, job: str) -> tuple[Drifted, ...]:
        """Every field of the job's records that ever deviated from its declaration."""
        with self._engine.connect() as db:
            return counts.find(db, job)

    # Rules and windows of metrics

    def rule_counts(self, job: str) -> tuple[RuleCount, ...]:
        """What each rule of the job found, over all its batches."""
        with self._engine.connect() as db:
            return counts.sums(db, job)

    def rule_counts_between(self, after: int, until: int) -> tuple[tuple[str, RuleCount], ...]:
        """What each rule of each job found in the batches of these rows of the ledger.

        Counts without a rule are of all rows that were judged.
        """
        with self._engine.connect() as db:
            return counts.sums_between(db, after, until)

    def batch_counts(self, after: int, until: int) -> Mapping[int, tuple[RuleCount, ...]]:
        """The same batch by batch, by the number of its ledger row; without counts of all rows."""
        with self._engine.connect() as db:
            return counts.by_batch(db, after, until)

    def newest_rule_counts(self, job: str, limit: int) -> Mapping[int, tuple[RuleCount, ...]]:
        """The counts of the job's last batches, by the number of their ledger row."""
        with self._engine.connect() as db:
            return counts.newest(db, job, limit)

    def judged_rows(self, job: str) -> Mapping[int, int]:
        """How many rows each batch of the job judged, by the number of its ledger row."""
        with self._engine.connect() as db:
            return counts.judged_rows(db, job)

    def pending_windows(
        self, job: str, before: datetime | None = None, limit: int = 1000
    ) -> tuple[Window, ...]:
        """Windows with something new in them that begin before a time, the oldest first."""
        with self._engine.connect() as db:
            return windows.pending(db, job, before, limit)

    def greatest_event_time(self, job: str, until: datetime | None = None) -> datetime | None:
        """How far event time has come by a time, or by now; rows from the future say nothing."""
        with self._engine.connect() as db:
            return windows.greatest_event_time(db, job, until or self._clock())

    def last_closed_window(self, job: str, until: datetime) -> datetime | None:
        """The start of the last closed window, of those that begin by a time."""
        with self._engine.connect() as db:
            return windows.last_closed(db, job, until)

    def jobs_with_pending_windows(self) -> tuple[str, ...]:
        with self._engine.connect() as db:
            return windows.jobs_with_pending(db)

    def last_record_at(self, job: str) -> datetime | None:
        """When the job's last batch was committed; None while one is under way."""
        with self._engine.connect() as db:
            return windows.last_record_at(db, job)

    def close_windows(self, closings: Sequence[Closing]) -> int:
        """Keep what was found of windows; how many have a new record."""
        with writing(self._engine) as db:
            return windows.close(db, closings, self._clock())

    def forget_records(self, job: str) -> None:
        """Let go of the text of the job's oldest records."""
        with writing(self._engine) as db:
            windows.forget(db, job)

    def windows(self, job: str | None = None, limit: int = 1000) -> tuple[Window, ...]:
        """The newest windows, in the order of their times."""
        with self._engine.connect() as db:
            return windows.find(db, job, limit)

    def window_counts(self) -> Mapping[str, tuple[int, int, int]]:
        """Per job: windows with something new in them, closed ones, and closings again."""
        with self._engine.connect() as db:
            return windows.counts(db)

    # Sinks of metrics

    def register_sink(self, name: str) -> SinkState:
        """The sink's state; a new one begins with what closes and is settled from now on."""
        with writing(self._engine) as db:
            return windows.register(db, name, self._clock())

    def sinks(self) -> tuple[SinkState, ...]:
        with self._engine.connect() as db:
            return windows.every(db)

    def waiting_windows(self, sink: SinkState) -> int:
        """How many closed windows the sink has still to send."""
        with self._engine.connect() as db:
            return windows.waiting(db, sink)

    def unsent_windows(self, sink: SinkState, limit: int) -> tuple[Unsent, ...]:
        """The next windows for this sink, in the order they were closed."""
        with self._engine.connect() as db:
            return windows.unsent(db, sink, limit)

    def windows_sent(self, sink: str, found: Sequence[tuple[Unsent, Mapping[str, int]]]) -> None:
        with writing(self._engine) as db:
            windows.sent(db, sink, found, self._clock())

    def claim_windows(
        self, sink: SinkState, found: Sequence[tuple[Unsent, Mapping[str, int]]]
    ) -> bool:
        """Mark windows as sent before they are; False when another process was quicker."""
        with writing(self._engine) as db:
            return windows.claim(db, sink, found, self._clock())

    def claim_batches(self, sink: SinkState, until: int, *, sent: bool) -> bool:
        """Let the sink go on behind this ledger row; False when another process was quicker."""
        with writing(self._engine) as db:
            return windows.claim_batches(db, sink, until, self._clock(), sent=sent)

    def rewind_sink(self, sink: str, *, batches: bool) -> None:
        """Let the sink begin again with the first window that is kept, and with old batches."""
        with writing(self._engine) as db:
            windows.rewind(db, sink, batches=batches)

    def sink_failed(self, sink: str, words: str) -> None:
        with writing(self._engine) as db:
            windows.failed(db, sink, words)

    def sent_windows(
        self, job: str, starts: Sequence[datetime]
    ) -> Mapping[datetime, Mapping[str, int]]:
        """Per window: the sequence that each sink has sent."""
        with self._engine.connect() as db:
            return windows.sent_of(db, job, starts)

    # Revisions

    def keep_revision(self, kind: str, name: str, content: object, hash: str | None = None) -> str:
        """Store a declaration's content (text, or a JSON value) under its hash, or the one it has."""
        words = content if isinstance(content, str) else canonical(content)
        revision = Revision(hash or fingerprint(words), kind, name, words, self._clock())
        if self.revision(revision.hash) is None:
            with writing(self._engine) as db:
                db.execute(delete(revision_table).where(revision_table.c.hash == revision.hash))
                db.execute(insert(revision_table).values(**vars(revision)))
        return revision.hash

    def revision(self, hash: str) -> Revision | None:
        query = select(revision_table).where(revision_table.c.hash == hash)
        with self._engine.connect() as db:
            row = db.execute(query).one_or_none()
        return Revision(*row) if row else None

    # Gauges and dimensions of jobs

    def write_gauge(self, metric: str, job: str, value: float, label: str = "") -> None:
        """Keep a value that only the running job can measure, until it measures it again."""
        row = {"metric": metric, "job": job, "label": label, "value": value, "at": self._clock()}
        with writing(self._engine) as db:
            replace_row(db, gauge_table, **row)

    def gauges(self, metric: str) -> Mapping[tuple[str, ...], float]:
        """The last value of each job; of each job and label, where the metric has one more label."""
        query = select(gauge_table).where(gauge_table.c.metric == metric)
        with self._engine.connect() as db:
            rows = db.execute(query).all()
        return {(row.job, row.label) if row.label else (row.job,): row.value for row in rows}

    def write_dimensions(self, job: str, dimensions: Dimensions) -> None:
        with writing(self._engine) as db:
            replace_row(db, dimension_table, job=job, **vars(dimensions))

    def dimensions(self) -> Mapping[str, Dimensions]:
        """The dimensions of every job that has any."""
        with self._engine.connect() as db:
            rows = db.execute(select(dimension_table)).all()
        return {job: Dimensions(*values) for job, *values in rows}

    # Services

    def note_services_ready(self) -> None:
        with writing(self._engine) as db:
            replace_row(db, services_ready, id=1, at=self._clock())

    def services_ready_at(self) -> datetime | None:
        """When `local up` last found all services ready."""
        with self._engine.connect() as db:
            return db.scalar(select(services_ready.c.at))

    def probe_write(self, lock_seconds: float) -> None:
        """Write a lease of nobody's; a DBAPIError when the store takes no writes, or is locked for so long."""
        now = self._clock()
        with writing(self._engine, lock_seconds) as db:
            runs.acquire(db, "probe", runs.NOBODY, now, now)
