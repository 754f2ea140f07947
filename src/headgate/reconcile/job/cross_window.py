"""Keys that have states in other windows than a batch's own: when a batch must merge with the table of states.

`Moment` is a batch's place in the stream: which windows were dropped, the watermark, the window at a restart. It
decides which keys are merged, and is kept in the commit of the states: if the checkpoint is lost after that commit,
the batch is judged again just as before, since its windows may be counted by then. `Ahead` finds keys whose
version lies beyond the end of their window, as of a clock that runs ahead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.conditions.literals import spark_literal
from headgate.core.engine.checkpoint import Start
from headgate.core.lake.spark import sql
from headgate.reconcile.compile.states import SIDES, STATE, merged_query
from headgate.reconcile.store import PairStore, RestartWindow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


DROPPED, WATERMARK, AMID = "dropped_by", "watermark", "amid"
# So many keys are asked for by name; where there are more, all are looked up.
MOST = 1_000
# A version from before the window in which it was read.
OLD = " OR ".join(f"coalesce({side}.version < window_start, FALSE)" for side in SIDES)
# Both sides are there, and something is not as it is in a match.
ODD = (
    "onprem IS NOT NULL AND cloud IS NOT NULL AND NOT (onprem.hash <=> cloud.hash"
    " AND onprem.hash IS NOT NULL AND onprem.hash_version <=> cloud.hash_version"
    " AND NOT onprem.action <=> 'DELETE' AND NOT cloud.action <=> 'DELETE')"
)
# A side has said more than one thing in the window: what comes again may come from before its first
# arrival, or say something else of the same version. What was told of the key before decides then.
REPEATED = "records > IF(onprem IS NULL, 0, 1) + IF(cloud IS NULL, 0, 1)"
MERGED = "dq_merged"


@dataclass(frozen=True)
class Moment:
    """Windows that ended by `dropped_by` were dropped; `watermark` is behind what earlier batches have read.

    Both are in milliseconds. Of windows up to the start of the one `amid` which the state began, in
    microseconds, the table knows more than the state.
    """

    dropped_by: int
    watermark: int
    amid: int | None = None

    @property
    def counters(self) -> dict[str, int]:
        """As a commit has it."""
        told = {DROPPED: self.dropped_by, WATERMARK: self.watermark}
        return told if self.amid is None else {**told, AMID: self.amid}


def moment_of(counters: Mapping[str, int] | None) -> Moment | None:
    """As a commit has it; None where it was made of records alone, or before it was told."""
    if counters is None or not {DROPPED, WATERMARK} <= counters.keys():
        return None
    return Moment(counters[DROPPED], counters[WATERMARK], counters.get(AMID))


class Ahead:
    """The keys of which earlier windows have a version from beyond their end, as of a clock that runs ahead.

    They are looked for once a window, and again behind a batch that had records of an earlier one: no
    other adds to those.
    """

    def __init__(self) -> None:
        self._window: int | None = None
        self._keys: Sequence[str] | None = None

    def of(self, states: DataFrame, newest: int, is_behind: bool) -> Sequence[str] | None:
        """The keys, or None where they are too many to name; `is_behind` says that this batch adds some."""
        if self._window != newest:
            self._keys = _found(states, newest)
        self._window = None if is_behind else newest
        return self._keys


def _found(states: DataFrame, newest: int) -> Sequence[str] | None:
    start = f"timestamp_micros({newest}L)"
    beyond = " OR ".join(f"{side}.version >= {start}" for side in SIDES)
    rows = states.where(f"window_start < {start} AND ({beyond})").select("pk").distinct()
    keys = sorted(str(row["pk"]) for row in rows.limit(MOST + 1).collect())
    return keys if len(keys) <= MOST else None


def find_restart_window(
    store: PairStore, job: str, start: Start | None, states: DataFrame
) -> int | None:
    """The last window that the table knew when this checkpoint began; None where it began with nothing.

    It is looked up once for each beginning, before the first batch adds to the table.
    """
    if start is None or not any(start.offsets.values()):
        return None
    offsets, restart = dict(start.offsets), store.restart_window(job)
    if restart is None or (restart.source_id, restart.start) != (start.topic_id, offsets):
        row = states.selectExpr("unix_micros(max(window_start)) AS newest").first()
        restart = RestartWindow(start.topic_id, offsets, row["newest"] if row else None)
        store.write_restart_window(job, restart)
    return restart.newest_window


@dataclass(frozen=True)
class Straddling:
    """Which states may have more in other windows, and where that stands.

    Of a version that is older than its window an earlier one may know, and of a window that is not the
    newest, a later one. Whatever the clocks say, a pair that does not plainly match is looked up too, and
    so are keys of which a side has come several times, and those that are `ahead`: earlier windows have
    versions of them from beyond their end.
    `newest` is the start of the newest window, in microseconds; None means of all.
    """

    others: DataFrame
    newest: int | None
    ahead: Sequence[str] = ()

    @property
    def condition(self) -> str:
        if self.newest is None:
            return "TRUE"
        apart = f"{OLD} OR ({ODD}) OR {REPEATED} OR unix_micros(window_start) < {self.newest}L"
        return f"{apart} OR {one_of(self.ahead)}" if self.ahead else apart

    def keys(self, states: DataFrame) -> DataFrame:
        return states.where(self.condition).select("pk").distinct()

    def with_others(self, states: DataFrame) -> DataFrame:
        """These states, and of the keys that straddle windows all rows of the table."""
        known = self.others.join(self.keys(states), "pk", "left_semi").select(*STATE)
        return states.select(*STATE).unionByName(known)

    def merged(self, states: DataFrame) -> DataFrame:
        """The whole of the keys that straddle windows: their rows in this batch and in the table."""
        own = states.join(self.keys(states), "pk", "left_semi")
        self.with_others(own).createOrReplaceTempView(MERGED)
        return sql(states.sparkSession, merged_query(MERGED))


def one_of(keys: Sequence[str]) -> str:
    return f"pk IN ({', '.join(map(spark_literal, keys))})"
