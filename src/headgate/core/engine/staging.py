"""The steps of writing a batch: bind its records to a SQL file, count them, stage and publish dead letters.

Temporary views and the session variables `batch_time` and `batch_revision` are set from the intent.
Counts are observed while rows are written, or read again where an observation cannot be believed (a
task retry counts twice). Dead letters are published before the rows of their batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from headgate.conditions.literals import spark_literal
from headgate.core.engine.batch import BatchProtocol, Point
from headgate.core.lake.commits import AlreadyPublishedError
from headgate.core.lake.spark import Snapshot, session_id, sql
from headgate.core.lake.table import ManagedTable, Staging, nothing
from headgate.core.ledger.model import Intent
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.sql.fragments import DEAD_LETTERS
from headgate.core.sql.script import Script
from headgate.errors import BatchRefusedError, OperationError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation, SparkSession


STEPS = ("clock", "revision", "view")
# What the views of a session were last made for: they read others by name, so that most stay as
# they are when the records change.
BOUND = "headgate.bound."


def bind(
    session: SparkSession, script: Script, views: Mapping[str, DataFrame], intent: Intent
) -> None:
    """The records under the names that the file reads, then everything up to its statements."""
    put(views)
    for step in STEPS:
        for statement in script.named(step):
            sql(session, statement)
    set_clock(session, intent)


def bind_once(
    session: SparkSession, script: Script, views: Mapping[str, DataFrame], intent: Intent
) -> None:
    """The same for a file whose views the session may have from the batch before."""
    bound, made_for = f"{BOUND}{intent.job}", f"{intent.revisions[0]} {session_id(session)}"
    if session.conf.get(bound, "") == made_for:
        put(views)
        set_clock(session, intent)
    else:
        bind(session, script, views, intent)
        session.conf.set(bound, made_for)


def put(views: Mapping[str, DataFrame]) -> None:
    for name, records in views.items():
        records.createOrReplaceTempView(name)


def set_clock(session: SparkSession, intent: Intent) -> None:
    """Every "now" of the file, and the revision that its rows name."""
    now = intent.batch_time.isoformat()
    sql(session, f"SET VARIABLE batch_time = TIMESTAMP '{now}'")
    sql(session, f"SET VARIABLE batch_revision = {spark_literal(intent.revisions[0])}")


@dataclass(frozen=True)
class RecordCounts:
    """Records of a batch, tombstones among them; offsets without a record are in neither."""

    records: int
    tombstones: int


class RecordCounter:
    """Counts the records of a batch, while they are written if `observes`, else by a pass of their own.

    Observing costs every batch a little, and a second pass over the topic costs a batch with refused
    records much more: so a job observes where its batch before had some.
    """

    def __init__(self, records: DataFrame, observes: bool) -> None:
        self._records = records
        self.observes = observes
        self._observation: Observation | None = None

    @classmethod
    def of_job(cls, records: DataFrame, store: OpsStore, job: str) -> Self:
        """A counter that observes if the job's last batch had fewer rows than offsets."""
        last = store.newest_batches(job, 1)
        return cls(records, any(row.outcomes.get("accepted", 0) != row.span for row in last))

    def observed(self) -> DataFrame:
        """The records, to be written once: a second action on this frame would not be observed."""
        from pyspark.sql import Observation

        if not self.observes:
            return self._records
        observation = self._observation = Observation()
        return self._records.observe(observation, *_columns())

    def count(self, written: int, offsets: int) -> RecordCounts:
        """The counts, once `written` rows of these records are staged from a range of `offsets`.

        A retried task may be observed twice, so an observation that does not fit in between is not
        believed and the records are read again.
        """
        if self._observation is not None:
            counts = _counts(self._observation.get)
            if written + counts.tombstones <= counts.records <= offsets:
                return counts
        row = self._records.agg(*_columns()).first()
        return _counts(row.asDict() if row is not None else {})


def _columns() -> tuple[Column, Column]:
    from pyspark.sql import functions as F

    tombstones = F.count_if(F.col("value").isNull()).alias("tombstones")
    return F.count(F.lit(1)).alias("records"), tombstones


def _counts(row: dict[str, object]) -> RecordCounts:
    return RecordCounts(int(str(row.get("records") or 0)), int(str(row.get("tombstones") or 0)))


def stage(
    table: ManagedTable,
    intent: Intent,
    statement: str,
    outcomes: Mapping[str, int] | None = None,
    counters: Mapping[str, int] | None = None,
) -> Snapshot:
    """The statement's commit to this table, under the batch's marker and not yet published."""
    staging = Staging(table.session, intent, outcomes, counters)
    with staging.open():
        sql(table.session, statement)
    return staging.staged(table)


def publish_once(table: ManagedTable, intent: Intent, staged: Snapshot) -> None:
    """Publish what a batch writes beside its rows; an earlier attempt at the batch may have."""
    with suppress(AlreadyPublishedError):
        table.publish(staged)
    found = table.commit_of(intent)
    if found is None or found.marker.revisions != intent.revisions:
        raise BatchRefusedError(
            f"{table.name} already holds another form of this batch of {intent.job}",
            why=f"a commit starts at {dict(intent.range.start)}, but with another end or revision",
            fix=f"run {intent.job} again: it goes on under the revision that wrote it",
        )


def publish_letters(
    session: SparkSession,
    protocol: BatchProtocol,
    intent: Intent,
    statement: str,
    outcomes: Mapping[str, int],
    letters: int,
    counters: Mapping[str, int] | None = None,
) -> None:
    """So many dead letters; without one the commit is empty and only carries the outcomes."""
    table = ManagedTable(session, DEAD_LETTERS)
    statement = statement if letters else nothing(DEAD_LETTERS)
    staged = stage(table, intent, statement, outcomes, counters)
    if staged.added != letters:
        raise OperationError(
            f"a batch of {intent.job} does not add up",
            why=f"{dict(outcomes)}, but {staged.added} dead letters",
        )
    publish_once(table, intent, staged)
    protocol.faults.at(Point.AFTER_DEAD_LETTERS)
