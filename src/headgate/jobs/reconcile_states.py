"""The state of a pair on Spark: the streaming aggregation, and its states made ready to be judged."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.compile.reconcile.limits import Limits
from headgate.compile.reconcile.tables import SIDES, STATE
from headgate.compile.rules.names import Names
from headgate.compile.script import Script, Step
from headgate.engine.followed import own_offsets
from headgate.engine.statements import sql
from headgate.store.model import Range

# What a batch counts while its states are made: messages, deletes, the earliest time of reading.
HINT = "headgate"
CLOCK = ("clock", "revision")
VIEWS = ("view", "verdict view")
TIMED, AGGREGATED, BOUND = "timed view", "states view", "bound states"


def streaming_states(
    session: SparkSession, script: Script, names: Names, limits: Limits
) -> DataFrame:
    """The states that each batch touches; the sources are bound to streams before.

    Time goes on by the records' timestamps, but never beyond the batch's own: one clock that runs
    ahead must not make all others late.
    """
    for statement in _until(script, TIMED):
        sql(session, statement)
    messages = session.table(names.messages)
    timed = messages.withColumn("seen_at", F.expr("least(read_at, current_timestamp())"))
    counted = timed.observe(
        HINT,
        F.count(F.lit(1)).alias("messages"),
        F.expr("count_if(action <=> 'DELETE')").alias("deletes"),
        F.expr("coalesce(min(unix_micros(seen_at)), 9223372036854775807L)").alias("earliest"),
    )
    watermarked = counted.withWatermark("seen_at", _interval(limits.wait))
    watermarked.createOrReplaceTempView(names.timed)
    sql(session, script.one(AGGREGATED))
    return session.table(names.batch_states)


def batch_states(session: SparkSession, script: Script, names: Names) -> DataFrame:
    """The states of these records alone; the sources are bound to a batch."""
    sql(session, script.one(TIMED))
    sql(session, script.one(AGGREGATED))
    return session.table(names.batch_states)


def bind_views(session: SparkSession, script: Script) -> None:
    """Every view of the file, whatever the views that they read are bound to."""
    for step in script.steps:
        if step.name in (*CLOCK, *VIEWS, TIMED, AGGREGATED, BOUND):
            sql(session, step.sql)


def _until(script: Script, name: str) -> list[str]:
    """What stands before a step: its clock and its views."""
    wanted: list[Step] = []
    for step in script.steps:
        if step.name == name:
            break
        if step.name in (*CLOCK, *VIEWS):
            wanted.append(step)
    return [step.sql for step in wanted]


def judged_states(states: DataFrame, range_: Range, limits: Limits, watermark: int) -> DataFrame:
    """States of a batch as verdicts ask for them.

    Their other half may stand in another window, so none is the whole of its key. A state has changed
    where a side's newest version came first in this batch; a record that comes again changes nothing.
    """
    late = _late(limits, watermark)
    return states.select(
        *STATE,
        F.expr("FALSE").alias("whole"),
        F.expr(changed(range_)).alias("changed"),
        F.expr(f"IF({late}, 'late', 'batch')").alias("origin"),
    )


def late_states(states: DataFrame, limits: Limits, watermark: int) -> DataFrame:
    """The states of windows that ended before the watermark: the stream has dropped them."""
    return states.where(_late(limits, watermark))


def _late(limits: Limits, watermark: int) -> str:
    """As Spark decides it: the window's end is not behind the watermark."""
    horizon = limits.horizon // timedelta(milliseconds=1)
    return f"unix_millis(window_start) + {horizon}L <= {watermark}L"


def has_late(earliest: int, limits: Limits, watermark: int) -> bool:
    """Whether the window of the earliest message, by its microseconds, ended by the watermark."""
    horizon = limits.horizon // timedelta(microseconds=1)
    return earliest - earliest % horizon + horizon <= watermark * 1000


def changed(range_: Range) -> str:
    return " OR ".join(f"({_side_changed(side, range_)})" for side in SIDES)


def _side_changed(side: str, range_: Range) -> str:
    first, newest = (inside(f"{side}{kind}", side, range_) for kind in ("_first", ""))
    conflict = f"{side}.version = {side}_first.version AND NOT ({side}.hash <=> {side}_first.hash)"
    return f"coalesce({first}, FALSE) OR coalesce({conflict} AND {newest}, FALSE)"


def inside(place: str, side: str, range_: Range) -> str:
    """Whether a place (a struct with partition and offset) is of this batch."""
    ends = own_offsets(range_.end, side)
    starts = own_offsets(range_.start, side)
    parts = (
        f"({place}.partition = {int(p)} AND {place}.offset >= {starts.get(p, 0)}"
        f" AND {place}.offset < {end})"
        for p, end in ends.items()
        if end > starts.get(p, 0)
    )
    return f"({' OR '.join(parts) or 'FALSE'})"


def bind_sources(frames: Mapping[str, DataFrame], views: Mapping[str, str]) -> None:
    """The records of each side under the name that the file reads."""
    for side, frame in frames.items():
        frame.createOrReplaceTempView(views[side])


def _interval(length: timedelta) -> str:
    return f"{length // timedelta(milliseconds=1)} milliseconds"
