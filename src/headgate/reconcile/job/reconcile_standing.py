"""How a pair stands, told again and again: keys by status as gauges and on a topic, and who was in time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from headgate.conditions.expr_literals import spark_literal
from headgate.core.engine.context import RunContext
from headgate.core.lake.iceberg import ManagedTable
from headgate.core.lake.statements import sql
from headgate.core.ledger.ops_store import utc_now
from headgate.core.ledger.store_model import LedgerRow
from headgate.core.metrics import gauges
from headgate.core.metrics import metrics_names as names
from headgate.core.metrics.times import earlier
from headgate.quality.compile.names import VIEWS
from headgate.quality.revision import deployed
from headgate.quality.spec.reconcile_section import Reconcile
from headgate.reconcile.decisions import statuses
from headgate.reconcile.job.reconcile_audit import BATCH, make_topic
from headgate.reconcile.job.reconcile_sweep import sweep_job
from headgate.reconcile.job.reconcile_target import ReconcileTarget

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
        return deployed(store, name), *last

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
        self._keep(found)
        return found

    def _count(self, view: str) -> Counted:
        since = earlier(self._clock(), self._declared().slo.over)
        rows = sql(self._session, count_query(view, since)).collect()
        return Counted(
            {(str(row["dq_status"]), str(row["rollup"])): int(row["n"]) for row in rows},
            InTime(*(sum(int(row[name]) for row in rows) for name in ("settled", "within"))),
            InTime(*(sum(int(row[name]) for row in rows) for name in ("lately", "within_lately"))),
        )

    def _keep(self, found: Counted) -> None:
        store, job = self._context.store, self._target.job
        by_status = dict.fromkeys(statuses(), 0)
        for (status, _), n in found.keys.items():
            by_status[status] = by_status.get(status, 0) + n
        gauges.keep_labelled(store, names.KEYS, job, by_status)
        ever, lately = found.ever.share, found.share_lately
        if ever is not None and lately is not None:
            met = lately >= self._declared().slo.within_grace
            gauges.keep(store, names.WITHIN_GRACE, job, ever)
            gauges.keep(store, names.WITHIN_GRACE_LATELY, job, lately)
            gauges.keep(store, names.SLO_MET, job, int(met))

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
