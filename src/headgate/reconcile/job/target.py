"""The tables of a pair's job, and the counts of a batch: how they are taken and how its commits keep them.

Counts observed while the states were made are used only if they add up to the whole range; otherwise the records
are read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from headgate.conditions.literals import spark_literal
from headgate.config.settings import Settings
from headgate.core.engine.batch import Result, span
from headgate.core.engine.recovery import RecoveredRows, recover_target
from headgate.core.lake.spark import sql
from headgate.core.lake.table import Committed, ManagedTable
from headgate.core.ledger.model import Intent, Judged, LedgerExtra, RuleCount
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.ranges import PairRange, SweepRange
from headgate.core.ledger.windows import JudgedRows
from headgate.core.metrics.names import COUNTED, COUNTED_METRICS, LATE_ARRIVAL, LATE_VERDICTS
from headgate.core.sql.fragments import DEAD_LETTERS, job_name
from headgate.core.sql.script import Script
from headgate.quality.compile.tables import RECONCILE, Names
from headgate.quality.job.batch import ACCEPTED, REFUSED, TOMBSTONE, QualityTarget
from headgate.quality.revision import Revisions, dq_table
from headgate.quality.spec.loader import table_names
from headgate.quality.spec.rule_checks import VERDICT_PREFIX
from headgate.reconcile.compile.states import SIDES
from headgate.reconcile.decision_table import statuses
from headgate.reconcile.job.states import inside

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


VERDICTS = frozenset(f"{VERDICT_PREFIX}{status.lower()}" for status in statuses())
_LATE_BY_RULES = f"""
SELECT count(*) AS n
FROM {{results}}
WHERE {{own}} AND settled AND concat('{VERDICT_PREFIX}', lower(verdict)) IN {LATE_VERDICTS}
  AND NOT array_contains(dq_rules, concat('{VERDICT_PREFIX}', lower(verdict)))"""


class Hint(NamedTuple):
    """Messages, deletes among them, the earliest and latest time of reading in microseconds.

    `doubtful` is of how many touched states other windows may have more to say, `repeated` in how many
    a side has come several times.
    """

    messages: int
    deletes: int
    earliest: int
    latest: int
    doubtful: int
    repeated: int


class Seen(NamedTuple):
    """States, and how many sides of them came first in this batch."""

    states: int
    firsts: int


@dataclass(frozen=True)
class Counted:
    """Outcomes are disjoint and complete; a record may be in several of the counters."""

    outcomes: Mapping[str, int]
    counters: Mapping[str, int]

    def with_one(self, name: str, n: int) -> Counted:
        return Counted(self.outcomes, {**self.counters, name: n}) if n else self


@dataclass(frozen=True)
class Records:
    """The records of a batch, bound under the names that the file reads."""

    session: SparkSession
    script: Script
    names: Names
    range: PairRange
    frames: Sequence[DataFrame]

    def count(self, hint: Hint | None, seen: Seen, states: DataFrame) -> Counted:
        """By what was seen where it adds up; where each message is a first, none came twice."""
        total = span(self.range)
        if hint is None or hint.messages != total:
            return self._counted_again(states)
        tombstones = self._tombstones() if hint.deletes else 0
        counters = {"deletes": hint.deletes}
        if seen.firsts != hint.messages:
            counters |= {"duplicates": self._duplicates(states)}
        outcomes = {ACCEPTED: total - tombstones, TOMBSTONE: tombstones}
        return Counted(_some(outcomes), _some(counters, least=()))

    def _counted_again(self, states: DataFrame) -> Counted:
        outcomes: Counter[str] = Counter()
        counters: Counter[str] = Counter()
        for row in sql(self.session, self.script.one("outcomes")).collect():
            outcomes[str(row["outcome"])] += int(row["n"])
            if row["outcome"] == REFUSED and "reason" in row:
                counters[str(row["reason"])] += int(row["n"])
        for row in sql(self.session, self.script.one("counts")).collect():
            counters["deletes"] += int(row["deletes"] or 0)
        counters["duplicates"] = self._duplicates(states)
        return Counted(_some(outcomes), _some(counters, least=()))

    def _tombstones(self) -> int:
        return sum(frame.where("value IS NULL").count() for frame in self.frames)

    def _duplicates(self, states: DataFrame) -> int:
        """Records that say what another has said: within these, and before them of a key's newest."""
        from pyspark.sql import functions as F

        messages = self.session.table(self.names.messages)
        same = messages.groupBy("side", "pk", "version", "hash").agg(F.count("*").alias("n"))
        # Two counts are taken of it: without being kept, each would read both topics again.
        same = same.persist()
        try:
            found = same.alias("m").join(
                states.alias("s"), F.expr(f"m.pk = s.pk AND ({self._said_before()})"), "left_semi"
            )
            within = same.agg(F.sum(F.expr("n - 1")).alias("n")).first()
            return int((within["n"] if within else 0) or 0) + found.count()
        finally:
            same.unpersist()

    def _said_before(self) -> str:
        parts: list[str] = []
        for side in SIDES:
            for place in (f"s.{side}_first", f"s.{side}"):
                before = f"NOT {inside(place, side, self.range)}"
                same = f"s.{side}.version = m.version AND {place}.hash <=> m.hash"
                parts.append(f"(m.side = '{side}' AND {same} AND {before})")
        return " OR ".join(parts)


def late_by_rules(
    session: SparkSession, results: str, intent: Intent, counts: Sequence[RuleCount]
) -> int:
    """Pairs of a batch that came together late and whose status a rule gave: no verdict counts them.

    Where no rule gave a status, nothing is read.
    """
    if all(count.rule in VERDICTS for count in counts if count.n):
        return 0
    (found,) = sql(session, _LATE_BY_RULES.format(results=results, own=own_rows(intent))).collect()
    return int(found["n"])


def own_rows(intent: Intent) -> str:
    """Which rows of the results are of this batch or sweep, as SQL."""
    origin = "=" if isinstance(intent.range, SweepRange) else "<>"
    return f"processing_time = {spark_literal(intent.batch_time)} AND origin {origin} 'sweep'"


def _some(found: Mapping[str, int], least: Sequence[str] = (ACCEPTED,)) -> dict[str, int]:
    return {name: n for name, n in found.items() if n or name in least}


@dataclass(frozen=True)
class ReconcileTarget(QualityTarget):
    """`table` holds the changes of verdicts, and is published last; `states` what they rest on.

    `dlq_topics` says for each topic where its dead letters go, `state_shape` what the state looks like.
    """

    dlq_topics: Mapping[str, str] | None = None
    state_shape: str = ""

    @property
    def shape(self) -> str:
        return self.state_shape

    @property
    def states(self) -> str:
        return dq_table("states", self.name)

    @property
    def before(self) -> tuple[str, ...]:
        return (DEAD_LETTERS, self.states, self.partials)

    def account(self, session: SparkSession, intent: Intent, windows_of: str = "") -> Result | None:
        """The partials' commit says what became of the records; a gap has results alone.

        `windows_of` is the job whose metrics windows the counts belong to, where it is another one.
        """
        results = ManagedTable(session, self.table).commit_of(intent)
        if results is None:
            return None
        partials = ManagedTable(session, self.partials).commit_of(intent)
        outcomes = (partials.marker.outcomes if partials else None) or {ACCEPTED: 0}
        extras: tuple[LedgerExtra, ...] = ()
        if partials:
            judged = self._told(session, intent, partials)
            extras = (JudgedRows(replace(judged, windows_of=windows_of)),)
        return Result(
            sum(outcomes.values()),
            outcomes,
            self._snapshots(session, intent, results),
            results.marker.revisions,
            extras=extras,
        )

    def _told(self, session: SparkSession, intent: Intent, partials: Committed) -> Judged:
        """What the partials say of verdicts, and what was counted of records."""
        judged = self._judged(session, intent)
        late = late_by_rules(session, self.table, intent, judged.counts)
        counters = {**(partials.marker.counters or {}), LATE_ARRIVAL: late}
        counts = (_count(name, n) for name, n in sorted(counters.items()) if n)
        return replace(judged, counts=(*judged.counts, *counts))


def pair_target(
    session: SparkSession, settings: Settings, store: OpsStore, name: str
) -> ReconcileTarget | None:
    """The target of a pair's job as its tables tell it, without topics; None where there is no pair."""
    if not session.catalog.tableExists(dq_table("states", name)):
        return None
    job, table = job_name(RECONCILE, name), dq_table("results", name)
    return ReconcileTarget(job, table, "", "", name, Revisions(store, settings))


def recover_pairs(
    session: SparkSession, settings: Settings, store: OpsStore
) -> Iterator[RecoveredRows]:
    """The ledger rows of each declared pair that has a table of states."""
    for name in table_names(settings.root):
        target = pair_target(session, settings, store, name)
        if target is not None:
            yield recover_target(session, target)


def _count(name: str, n: int) -> RuleCount:
    metric = COUNTED_METRICS.get(name, name.removeprefix("dq_"))
    return RuleCount(f"{COUNTED}{name}", metric, "INFO", n, n)
