"""The streaming aggregation of states by key and window, and the states of a batch prepared for judging.

Values that change with every batch are kept out of the code that Spark generates (`steady`, `now`, `listed`): a
number or a time in the text of a statement would make Spark compile the stage anew in every batch, while an array
is passed to the same generated code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from headgate.core.lake.spark import sql
from headgate.core.ledger.ranges import PairRange, side_offsets
from headgate.core.sql.script import Script
from headgate.quality.compile.tables import Names
from headgate.quality.spec.reconcile_checks import Limits
from headgate.reconcile.compile.states import SIDES, STATE
from headgate.reconcile.job.cross_window import ODD, OLD, REPEATED, Straddling
from headgate.reconcile.state import conflict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Always 0, but only a row can tell: so nothing is worked out beforehand.
_PLACE = "shiftright(octet_length(pk), 31)"


def steady(value: str) -> str:
    """The value, as SQL over rows that have a key."""
    return f"get(array({value}), {_PLACE})"


def now() -> str:
    """The time of a streaming query's batch, as SQL.

    Spark puts it in after it has optimized, so that an array alone would be filled by generated code.
    What is inside a lambda is not generated.
    """
    return "get(transform(array(current_timestamp()), at -> at), 0)"


def listed(values: Iterable[int]) -> str:
    """Whole numbers by their place, as SQL; there must be at least one."""
    return f"array({', '.join(f'{value}L' for value in values)})"


# What a batch counts of its messages and of its states, while the latter are made.
HINT, STATES_HINT = "headgate-messages", "headgate-states"
# Which of two rows of a key was told later; within a batch the newer versions count.
LAST = "processing_time, onprem_version, cloud_version, settled"
# What makes a row another verdict than the one told before: `id` is of the status and both versions.
VERDICT = ("id", "verdict", "hash_onprem", "hash_cloud")
AGGREGATED, CLOCK_AND_VIEWS = "states view", ("clock", "view")


def streaming_states(
    session: SparkSession, script: Script, names: Names, limits: Limits
) -> DataFrame:
    """The states that each batch touches; the sources are bound to streams before.

    Time goes on by the records' timestamps, but never beyond the batch's own: one clock that runs
    ahead must not make all others late.
    """
    from pyspark.sql import functions as F

    for statement in _until(script, names.timed):
        sql(session, statement)
    messages = session.table(names.messages)
    timed = messages.withColumn("seen_at", F.expr(f"least(read_at, {now()})"))
    counted = timed.observe(
        HINT,
        F.count(F.lit(1)).alias("messages"),
        F.expr("count_if(action <=> 'DELETE')").alias("deletes"),
        F.expr("coalesce(min(unix_micros(seen_at)), 9223372036854775807L)").alias("earliest"),
        F.expr("coalesce(max(unix_micros(seen_at)), 0L)").alias("latest"),
    )
    states = _window_states(
        session, script, names, limits, counted.withWatermark("seen_at", _interval(limits.wait))
    )
    return states.observe(
        STATES_HINT,
        F.expr(f"count_if({OLD} OR ({ODD}))").alias("doubtful"),
        F.expr(f"count_if({REPEATED})").alias("repeated"),
    )


def batch_states(session: SparkSession, script: Script, names: Names, limits: Limits) -> DataFrame:
    """The states of these records alone; the sources are bound to a batch."""
    sql(session, script.view(names.timed))
    return _window_states(session, script, names, limits, session.table(names.timed))


def _window_states(
    session: SparkSession, script: Script, names: Names, limits: Limits, timed: DataFrame
) -> DataFrame:
    """The aggregation of the file over these messages.

    Messages of one key are brought together before they become states: a state is several times as
    wide, and rows that are together already are sorted once less.
    """
    from pyspark.sql import functions as F

    window = F.window("seen_at", _interval(limits.horizon)).alias("window")
    together = timed.select("*", window).repartition("pk", "window")
    together.createOrReplaceTempView(names.timed)
    sql(session, script.view(names.message_states))
    sql(session, script.one(AGGREGATED))
    return session.table(names.window_states)


def bind_views(session: SparkSession, script: Script, names: Names) -> None:
    """The clock and every view of the file, whatever the views that they read are bound to.

    A view keeps the schema that it was made with: so those on the states are made over the table of states,
    whose fields may all be NULL, and not over those of messages.
    """
    states = script.view(names.states)
    for step in script.steps:
        if step.sql == states:
            bound = session.table(names.states_table).limit(0)
            _told(bound, PairRange({}), "FALSE", whole=False).createOrReplaceTempView(names.states)
        elif step.name in CLOCK_AND_VIEWS:
            sql(session, step.sql)


def _until(script: Script, name: str) -> list[str]:
    """The clock and the views that stand before the one of this name."""
    last = script.view(name)
    before = takewhile(lambda step: step.sql != last, script.steps)
    return [step.sql for step in before if step.name in CLOCK_AND_VIEWS]


class Spread(NamedTuple):
    """Times of the earliest and the latest window of a batch, and how many states are to be looked up.

    Of `doubtful` ones other windows may know more; of `repeated` ones a side has come several times.
    """

    earliest: int
    latest: int
    doubtful: int
    repeated: int


def spread_of(states: DataFrame) -> Spread:
    """What a batch observes while its states are made, of those states: by their windows' starts."""
    row = states.selectExpr(
        "coalesce(min(unix_micros(window_start)), 9223372036854775807L) AS earliest",
        "coalesce(max(unix_micros(window_start)), 0L) AS latest",
        f"count_if({OLD} OR ({ODD})) AS doubtful",
        f"count_if({REPEATED}) AS repeated",
    ).first()
    assert row is not None  # an aggregate without a key has one row
    return Spread(*(int(row[name]) for name in Spread._fields))


def judged_states(
    states: DataFrame, range_: PairRange, late: str, straddling: Straddling | None
) -> DataFrame:
    """States of a batch as verdicts ask for them.

    Their other half may stand in another window, so none is the whole of its key unless it is merged.
    A state has changed where a side's newest version came first in this batch, or has said several
    things, the last of them in this batch; `only_changes` leaves out what was told before.
    """
    if straddling is None:
        return _told(states, range_, late, whole=False)
    keys = straddling.keys(states)
    alone = _told(states.join(keys, "pk", "left_anti"), range_, late, whole=False)
    return alone.unionByName(_told(straddling.merged(states), range_, late, whole=True))


def last_told(results: DataFrame, keys: DataFrame, until: str) -> DataFrame:
    """What the table of results last told of each of these keys before a time."""
    from pyspark.sql import functions as F

    told = results.where(f"processing_time < {until}").join(keys, "pk", "left_semi")
    last = F.expr(f"max_by(struct({', '.join(VERDICT)}), struct({LAST}))").alias("_told")
    return told.groupBy("pk").agg(last)


def only_changes(verdicts: DataFrame, told: DataFrame) -> DataFrame:
    """The verdicts that differ from what was last told of their key.

    A duplicate may come from before the first arrival that was known, or repeat what stands of a
    version in conflict: its state is another then, its verdict may be the same.
    """
    from pyspark.sql import functions as F

    same = " AND ".join(f"_told.{name} <=> {name}" for name in VERDICT)
    is_same = F.expr(f"coalesce(_told IS NOT NULL AND {same}, FALSE)")
    return verdicts.join(told, "pk", "left").where(~is_same).select(*verdicts.columns)


def _told(states: DataFrame, range_: PairRange, late: str, *, whole: bool) -> DataFrame:
    from pyspark.sql import functions as F

    return states.select(
        *STATE,
        F.expr(str(whole)).alias("whole"),
        F.lit(False).alias("ended"),
        F.expr(changed(range_)).alias("changed"),
        F.expr(steady("session.batch_time")).alias("judged_at"),
        F.expr(f"IF({late}, 'late', 'batch')").alias("origin"),
    )


def late_states(states: DataFrame, limits: Limits, watermark: int) -> DataFrame:
    """The states of windows that ended before the watermark: the stream has dropped them."""
    return states.where(is_late(limits, watermark))


def is_late(limits: Limits, watermark: int) -> str:
    """As Spark decides it: the window's end is not behind the watermark."""
    horizon = limits.horizon // timedelta(milliseconds=1)
    return f"unix_millis(window_start) + {horizon}L <= {steady(f'{watermark}L')}"


def has_late(earliest: int, limits: Limits, watermark: int) -> bool:
    """Whether the window of the earliest message, by its microseconds, ended by the watermark."""
    horizon = limits.horizon // timedelta(microseconds=1)
    return window_of(earliest, limits) + horizon <= watermark * 1000


def window_of(micros: int, limits: Limits) -> int:
    """The start of the window of a time, both in microseconds."""
    return micros - micros % (limits.horizon // timedelta(microseconds=1))


def changed(range_: PairRange) -> str:
    return " OR ".join(f"({_first_came(s, range_)} OR {_again(s, range_)})" for s in SIDES)


def _first_came(side: str, range_: PairRange) -> str:
    return f"coalesce({inside(f'{side}_first', side, range_)}, FALSE)"


def _again(side: str, range_: PairRange) -> str:
    """The newest version has said several things, the last of them in this batch."""
    return f"coalesce({conflict(side)} AND {inside(side, side, range_)}, FALSE)"


def inside(place: str, side: str, range_: PairRange) -> str:
    """Whether a place (a struct with partition and offset) is of this batch."""
    starts, ends = (side_offsets(offsets, side) for offsets in (range_.start, range_.end))
    if all(starts.get(p, 0) == end for p, end in ends.items()):
        # Of a place at or behind an offset and before it too, Spark makes a condition that it fails to
        # hand on to the table.
        return "(FALSE)"
    partitions = [str(p) for p in range(1 + max(map(int, ends)))]
    first, behind = (
        f"get({listed(offsets.get(p, 0) for p in partitions)}, {place}.partition)"
        for offsets in (starts, ends)
    )
    return f"({place}.offset >= {first} AND {place}.offset < {behind})"


def bind_sources(frames: Mapping[str, DataFrame], views: Mapping[str, str]) -> None:
    """The records of each side under the name that the file reads."""
    for side, frame in frames.items():
        frame.createOrReplaceTempView(views[side])


def _interval(length: timedelta) -> str:
    return f"{length // timedelta(milliseconds=1)} milliseconds"
