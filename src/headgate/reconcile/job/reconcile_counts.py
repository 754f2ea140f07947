"""What became of the records of a batch, and what else is counted of them.

What the batch has observed while its states were made is only a hint: it counts where it adds up to
the whole range. On any doubt the records are read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from headgate.conditions.expr_literals import spark_literal
from headgate.core.engine.protocol import span
from headgate.core.lake.statements import sql
from headgate.core.ledger.store_model import Intent, Range, RuleCount
from headgate.core.metrics.metrics_names import LATE_VERDICTS
from headgate.core.sql.compile_script import Script
from headgate.quality.compile.names import Names
from headgate.quality.compile.verdicts import PREFIX
from headgate.quality.job.quality_target import ACCEPTED, REFUSED, TOMBSTONE
from headgate.reconcile.compile.tables import SIDES
from headgate.reconcile.decisions import statuses
from headgate.reconcile.job.reconcile_states import inside

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VERDICTS = frozenset(f"{PREFIX}{status.lower()}" for status in statuses())
_LATE_BY_RULES = f"""
SELECT count(*) AS n
FROM {{results}}
WHERE {{own}} AND settled AND concat('{PREFIX}', lower(verdict)) IN {LATE_VERDICTS}
  AND NOT array_contains(dq_rules, concat('{PREFIX}', lower(verdict)))"""


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
    range: Range
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
    origin = "=" if intent.range.is_table else "<>"
    return f"processing_time = {spark_literal(intent.batch_time)} AND origin {origin} 'sweep'"


def _some(found: Mapping[str, int], least: Sequence[str] = (ACCEPTED,)) -> dict[str, int]:
    return {name: n for name, n in found.items() if n or name in least}
