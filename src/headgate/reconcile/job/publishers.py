"""Publishes what a pair's batches and sweeps found: changes of verdicts and status counts, retried until sent.

Changes go to the audit topic at least once: the last row of the ledger that was sent is noted after sending. The
headers have the id of a change and its time: a verdict that comes back at the same versions has its id again, so a
reader who keys on both sees each change once. Status counts go to gauges and, where declared, to a topic.
A stream whose topic is away goes on and tries again later; a batch run fails and the next run sends what is left.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

from headgate.conditions.literals import spark_literal
from headgate.core.engine.run import RunContext
from headgate.core.kafka.topics import Topics, TopicSpec
from headgate.core.lake.spark import sql
from headgate.core.lake.table import ManagedTable
from headgate.core.ledger.model import LedgerRow
from headgate.core.ledger.ops_store import utc_now
from headgate.core.ledger.ranges import SweepRange
from headgate.core.metrics import names
from headgate.core.metrics.windows import earlier
from headgate.errors import LeaseLostError, UnavailableError
from headgate.quality.compile.tables import VIEWS
from headgate.quality.compile.unique import TIME_FORMAT, TIME_OPTIONS
from headgate.quality.spec.reconcile_section import Reconcile
from headgate.quality.store import RuleStore
from headgate.reconcile.decision_table import statuses
from headgate.reconcile.job.sweep import sweep_job
from headgate.reconcile.job.target import COUNTED, ReconcileTarget
from headgate.reconcile.store import AuditProgress, PairStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


PARTITIONS, KEPT_DAYS = 3, 30
AT_ONCE, BATCH = 1_000, "batch"
MATCHED = "verdict_match"


class Aside(Protocol):
    """Called by the run, never while a batch is under way."""

    def tick(self) -> None:
        """Now and then between batches, about every second."""
        ...

    def settled(self, row: LedgerRow) -> None:
        """A batch has its outcome."""
        ...

    def ended(self) -> None:
        """A batch run has read all there was."""
        ...


class Hook(Aside, Protocol):
    """One that tells others."""

    @property
    def what(self) -> str:
        """In words, what it tells."""
        ...


def make_topic(bootstrap: str, topic: str, partitions: int) -> None:
    """A topic that is written to is made where it is missing."""
    Topics(bootstrap).create([TopicSpec(topic, partitions, KEPT_DAYS)])


class Audit:
    """Sends what batches and sweeps have settled; what a killed run left unsent is sent first."""

    what = "the changes of verdicts on the audit topic"

    def __init__(
        self, context: RunContext, target: ReconcileTarget, declared: Callable[[], Reconcile]
    ) -> None:
        self._context, self._target, self._declared = context, target, declared
        self._session: SparkSession = context.session.newSession()
        self._made: set[str] = set()
        self._last, self._owed = 0, -1

    def tick(self) -> None:
        if self._context.run.mode != BATCH and self._context.store.ledger_after(self._last, 1):
            self.send()

    def settled(self, row: LedgerRow) -> None:
        """It is in the ledger: the next look finds it there."""

    def ended(self) -> None:
        self.send()

    def send(self) -> int:
        """Send what the ledger has settled since; how many rows of it there were."""
        topic, pair = self._declared().audit.topic, self._target.name
        if topic is None:
            self._owe(0)
            return 0
        store = self._context.store.part(PairStore)
        progress = store.audit_progress(pair)
        rows, last = self._rows(progress.ledger)
        sent = done = 0
        try:
            for row in rows:
                if self._is_worth_telling(row, progress.has_sent):
                    self._send(row, topic, looks_back=progress.has_sent)
                    sent += 1
                self._context.still_mine()
                progress = AuditProgress(row.id or 0, progress.has_sent or sent > 0)
                store.write_audit_progress(pair, progress)
                done += 1
        finally:
            self._owe(len(rows) - done)
        self._last = last
        return sent

    def _owe(self, batches: int) -> None:
        if batches != self._owed:
            self._owed = batches
            self._context.store.write_gauge(names.AUDIT_BEHIND.name, self._target.job, batches)

    def _rows(self, last: int) -> tuple[list[LedgerRow], int]:
        """The rows of this pair since, and the last of all that were looked at."""
        jobs = (self._target.job, sweep_job(self._target.name))
        found: list[LedgerRow] = []
        while rows := self._context.store.ledger_after(last, AT_ONCE):
            found += [row for row in rows if row.job in jobs]
            last = rows[-1].id or 0
        return found, last

    def _is_worth_telling(self, row: LedgerRow, has_sent: bool) -> bool:
        """Nothing settled is nothing to tell; matches alone only where something worse was told."""
        last = row.id or 0
        counted = self._context.store.rule_counts_between(last - 1, last)
        settled = {count.rule for _, count in counted if not count.rule.startswith(COUNTED)}
        settled.discard("")
        if not settled - {MATCHED}:
            return bool(settled) and (self._declared().keep_matches or has_sent)
        return True

    def _send(self, row: LedgerRow, topic: str, *, looks_back: bool) -> None:
        if topic not in self._made:
            make_topic(self._target.bootstrap, topic, PARTITIONS)
            self._made.add(topic)
        query = changes_sql(self._target, row, self._declared().keep_matches, looks_back)
        sql(self._session, query).write.format("kafka").options(
            **{"kafka.bootstrap.servers": self._target.bootstrap, "topic": topic}
        ).save()


def changes_sql(
    target: ReconcileTarget, row: LedgerRow, keep_matches: bool, looks_back: bool
) -> str:
    """The changes of one batch or sweep as records, each with what was settled of its key before.

    Several pairs may tell on one topic, so each record names its pair. A match is told where it ends something else. Without a look back nothing was told before, and
    nothing is asked of it.
    """
    table, pair, at = target.table, spark_literal(target.name), spark_literal(row.batch_time)
    swept = "=" if isinstance(row.range, SweepRange) else "<>"
    wanted = "TRUE" if keep_matches else "dq_status <> 'MATCH' OR previous <> 'MATCH'"
    own = f"processing_time = {at} AND settled AND origin {swept} 'sweep'"
    earlier = f"settled AND processing_time < {at}" if looks_back else "FALSE"
    return f"""
SELECT
  CAST(pk AS BINARY) AS key,
  CAST(to_json(struct(
    id, {pair} AS table, pk, hash_onprem AS onprem_hash, hash_cloud AS cloud_hash, dq_status AS status, previous,
    dq_reason AS reason, rollup, onprem_version, cloud_version, late, stale, conflict,
    processing_time AS audit_ts
  ), {TIME_OPTIONS}) AS BINARY) AS value,
  array(
    struct('headgate.id' AS key, CAST(id AS BINARY) AS value),
    struct('headgate.audit_ts' AS key, CAST(date_format(processing_time, '{TIME_FORMAT}') AS BINARY) AS value),
    struct('headgate.table' AS key, CAST({pair} AS BINARY) AS value),
    struct('headgate.revision' AS key, CAST(revision AS BINARY) AS value)
  ) AS headers
FROM (
  SELECT told.*, earlier.previous
  FROM (SELECT * FROM {table} WHERE {own}) AS told
  LEFT JOIN (
    SELECT pk, max_by(dq_status, struct(processing_time, onprem_version, cloud_version)) AS previous
    FROM {table}
    WHERE {earlier} AND pk IN (SELECT pk FROM {table} WHERE {own})
    GROUP BY pk
  ) AS earlier
    ON earlier.pk = told.pk
)
WHERE {wanted}"""


SECONDS = 10.0
# Counting merges all states: of many it may take a hundredth of the time, of few a tenth.
FEW_STATES, SHARE_OF_FEW, SHARE = 500_000, 10, 100
# What was settled lately changes by time alone, so it is counted again also while nothing comes.
IDLE_SECONDS = 60.0


class InTime(NamedTuple):
    """Settled keys, and how many of them were in time."""

    settled: int
    within: int

    @property
    def share(self) -> float | None:
        return self.within / self.settled if self.settled else None


@dataclass(frozen=True)
class Counted:
    """Keys by status and roll-up; which were in time, of all of them and of those settled lately."""

    keys: Mapping[tuple[str, str], int]
    ever: InTime
    lately: InTime

    @property
    def share_lately(self) -> float | None:
        """Where none was settled lately, all count: what is silent has not become worse."""
        return self.ever.share if self.lately.share is None else self.lately.share


def pause(took: float, states: int) -> float:
    """Seconds until the keys are counted again at the earliest."""
    return max(SECONDS, took * (SHARE_OF_FEW if states <= FEW_STATES else SHARE))


def count_query(view: str, since: datetime) -> str:
    """Keys by status; a key was settled by its deadline where it waited for it, else on arrival."""
    lately = f"event_time >= {spark_literal(since)}"
    return (
        "SELECT dq_status, rollup, count(*) AS n,"
        " count_if(settled) AS settled, count_if(within_grace) AS within,"
        f" count_if(settled AND {lately}) AS lately,"
        f" count_if(within_grace AND {lately}) AS within_lately"
        f" FROM {view} GROUP BY dq_status, rollup"
    )


class StandingHook:
    """Counts the keys of a pair where a batch or a sweep has changed something, and at the end.

    While nothing comes, they are counted once a minute: an objective over the last day is met, or missed,
    by time alone. The more keys there are, the less often: no batch goes on meanwhile.
    """

    what = "how its keys stand"

    def __init__(
        self,
        context: RunContext,
        target: ReconcileTarget,
        declared: Callable[[], Reconcile],
        clock: Callable[[], datetime] = utc_now,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._context, self._target, self._declared = context, target, declared
        self._session: SparkSession = context.session.newSession()
        self._clock, self._monotonic = clock, monotonic
        self._next, self._next_idle = float("-inf"), float("-inf")
        self._made: set[str] = set()
        self._counted: tuple[object, ...] = ()

    def settled(self, row: LedgerRow) -> None:
        """It is in the ledger: the next look finds it there."""

    def tick(self) -> None:
        begun = self._monotonic()
        if begun < self._next or self._context.run.mode == BATCH:
            return
        if self._stands() != self._counted:
            self.tell()
        elif begun >= self._next_idle:
            self._keep_gauges()
        else:
            return
        ended = self._monotonic()
        self._next = ended + pause(ended - begun, self._states())
        self._next_idle = max(self._next, ended + IDLE_SECONDS)

    def _stands(self) -> tuple[object, ...]:
        """What another count would be of: the last batch, the last sweep, and who judges.

        A key that waits for its deadline changes without a record, but not without a sweep.
        """
        store, name = self._context.store, self._target.name
        jobs = (self._target.job, sweep_job(name))
        last = (row.id for job in jobs for row in store.newest_batches(job, 1))
        return store.part(RuleStore).deployed_revision(name), *last

    def _states(self) -> int:
        current = ManagedTable(self._session, self._target.states).look().current()
        return current.total if current is not None else 0

    def ended(self) -> None:
        self.tell()

    def tell(self) -> None:
        """Count, keep the gauges, and send the counts where a topic is declared for them."""
        stands = self._stands()
        found = self._keep_gauges()
        if found is None:
            return
        self._counted = stands
        topic = self._declared().status_topic
        if topic is not None:
            self._send(found, topic)

    def _keep_gauges(self) -> Counted | None:
        """Count the keys and keep the gauges; None before the first verdict."""
        view = f"{VIEWS}.dq_results_{self._target.name}"
        if not self._session.catalog.tableExists(view):
            return None
        found = self._count(view)
        self._write_gauges(found)
        return found

    def _count(self, view: str) -> Counted:
        since = earlier(self._clock(), self._declared().slo.over)
        rows = sql(self._session, count_query(view, since)).collect()
        return Counted(
            {(str(row["dq_status"]), str(row["rollup"])): int(row["n"]) for row in rows},
            InTime(*(sum(int(row[name]) for row in rows) for name in ("settled", "within"))),
            InTime(*(sum(int(row[name]) for row in rows) for name in ("lately", "within_lately"))),
        )

    def _write_gauges(self, counted: Counted) -> None:
        store, job = self._context.store, self._target.job
        by_status = dict.fromkeys(statuses(), 0)
        for (status, _), n in counted.keys.items():
            by_status[status] = by_status.get(status, 0) + n
        for status, n in by_status.items():
            store.write_gauge(names.KEYS.name, job, n, status)
        ever, lately = counted.ever.share, counted.share_lately
        if ever is not None and lately is not None:
            met = lately >= self._declared().slo.within_grace
            # Six digits of a share are published: more would change with every key.
            store.write_gauge(names.WITHIN_GRACE.name, job, float(f"{ever:g}"))
            store.write_gauge(names.WITHIN_GRACE_LATELY.name, job, float(f"{lately:g}"))
            store.write_gauge(names.SLO_MET.name, job, int(met))

    def _send(self, found: Counted, topic: str) -> None:
        """Every status, as the documents' sink has it: dq_status and cnt, and what else helps.

        One without a key is told too, so that what was last told of a status is how it is.
        """
        none = {(status, said.rollup): 0 for status, said in statuses().items()}
        rows = ", ".join(
            f"({spark_literal(status)}, {n}L, {spark_literal(rollup)})"
            for (status, rollup), n in sorted({**none, **found.keys}.items())
        )
        if topic not in self._made:
            make_topic(self._target.bootstrap, topic, 1)
            self._made.add(topic)
        about = [("table", self._target.name), ("at", self._clock().isoformat())]
        more = ", ".join(f"{spark_literal(value)} AS {name}" for name, value in about)
        frame = sql(
            self._session,
            "SELECT CAST(dq_status AS BINARY) AS key,"
            f" CAST(to_json(struct(dq_status, cnt, rollup, {more})) AS BINARY) AS value"
            f" FROM VALUES {rows} AS counts (dq_status, cnt, rollup)",
        )
        frame.coalesce(1).write.format("kafka").options(
            **{"kafka.bootstrap.servers": self._target.bootstrap, "topic": topic}
        ).save()


FIRST_PAUSE, LONGEST_PAUSE = 2.0, 60.0


def hooks(context: RunContext, target: ReconcileTarget) -> tuple[Aside, ...]:
    """All that tells others beside the batches of this run."""
    declared = Declared(context, target)
    others = (Audit(context, target, declared), StandingHook(context, target, declared))
    return tuple(Telling(context, hook) for hook in others)


class Declared:
    """What is declared beside the rules, as it is deployed now: a run takes it over between batches."""

    def __init__(self, context: RunContext, target: ReconcileTarget) -> None:
        self._context, self._target = context, target
        self._known: tuple[str, Reconcile] | None = None

    def __call__(self) -> Reconcile:
        context, target = self._context, self._target
        deployed = context.store.part(RuleStore).deployed_revision(target.name)
        revision = deployed or context.run.revision
        if self._known is None or self._known[0] != revision:
            table = target.revisions.of(revision).rule_set.table(target.name)
            self._known = revision, table.reconcile or Reconcile()
        return self._known[1]


class Telling:
    """A hook that tells others what was found: if it cannot, the run says so and asks it again later.

    A stream waits the longer, the more often it failed. A batch run has no later: it fails, and what it
    owes is told by the next run.
    """

    def __init__(
        self, context: RunContext, hook: Hook, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._context, self._hook, self._clock = context, hook, clock
        self._failures, self._next = 0, float("-inf")

    def tick(self) -> None:
        if self._clock() >= self._next:
            self._tried(self._hook.tick)

    def settled(self, row: LedgerRow) -> None:
        if self._clock() >= self._next:
            self._tried(lambda: self._hook.settled(row))

    def ended(self) -> None:
        try:
            self._hook.ended()
        except LeaseLostError:
            raise
        except Exception as error:
            raise self._untold(error) from error

    def _tried(self, tell: Callable[[], None]) -> None:
        try:
            tell()
        except LeaseLostError:
            raise
        except Exception as error:  # a topic may be away; batches go on all the same
            self._wait(self._untold(error))
        else:
            self._go_on()

    def _wait(self, trouble: UnavailableError) -> None:
        self._next = self._clock() + min(FIRST_PAUSE * 2**self._failures, LONGEST_PAUSE)
        self._failures += 1
        self._context.waits(trouble)
        logging.getLogger("headgate").warning("%s", trouble.one_line)

    def _go_on(self) -> None:
        if self._failures:
            self._failures, self._next = 0, float("-inf")
            self._context.goes_on()

    def _untold(self, error: Exception) -> UnavailableError:
        job = self._context.run.job
        return UnavailableError(
            f"{job} cannot tell {self._hook.what}",
            why=str(error).partition("\n")[0],
            fix=f"see that its topic can be written; {job} tells what it owes by itself, or when it"
            " runs next",
        )
