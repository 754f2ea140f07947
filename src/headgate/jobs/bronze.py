"""Bronze: a topic into an Iceberg table, raw and complete. What cannot be a row is a dead letter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from headgate.compile.dataset import BRONZE_BATCH, BRONZE_STREAMING
from headgate.compile.fragments import DEAD_LETTERS, table_name
from headgate.compile.script import Script
from headgate.engine.checkpoint import Checkpoint
from headgate.engine.context import RunContext
from headgate.engine.dead_letters import send_dead_letters
from headgate.engine.faults import Point
from headgate.engine.iceberg import AlreadyPublishedError, Committed, ManagedTable, Staging
from headgate.engine.jvm import Snapshot
from headgate.engine.observe import Counted
from headgate.engine.protocol import BatchProtocol, Result, span
from headgate.engine.statements import sql
from headgate.engine.stream import TopicQuery, read_range
from headgate.engine.topics import Topics, TopicState
from headgate.errors import OperationError, UnavailableError
from headgate.jobs import declaration
from headgate.jobs.progress import RunProgress
from headgate.jobs.resume import prepare_checkpoint
from headgate.store.model import Intent, Range

ACCEPTED, REFUSED, TOMBSTONE = "accepted", "refused", "tombstone"
TOMBSTONES = "value IS NULL"


@dataclass(frozen=True)
class BronzeTarget:
    """Where the batches of one run go."""

    job: str
    script: Script
    view: str
    table: str
    dlq_topic: str
    bootstrap: str


def run_bronze(context: RunContext) -> None:
    """Read the topic to its end, or for ever, batch by batch."""
    target, topic = _target(context)
    for statement in target.script.named("table"):
        sql(context.session, statement)
    table = ManagedTable(context.session, target.table)
    location = f"{context.settings.checkpoints.rstrip('/')}/{target.job}"
    checkpoint = Checkpoint(context.session, location, topic.name)
    prepare_checkpoint(checkpoint, topic, table.committed(target.job), target.job)
    bronze = _Bronze(context, target)
    bronze.finish_open_intents()
    query = TopicQuery(context.session, target.bootstrap, topic, checkpoint)
    query.run(bronze.handle, context.run.mode, context.stop)


def _target(context: RunContext) -> tuple[BronzeTarget, TopicState]:
    settings, run = context.settings, context.run
    revision = declaration.fetch(context.store, run.revision)
    name, dlq_topic = revision.topic_names(settings)
    bootstrap = settings.need("bootstrap_servers")
    topic = Topics(bootstrap).describe(name)
    if topic is None:
        raise UnavailableError(
            f"there is no topic {name}", why=f"asked {bootstrap}", fix="make create-topics"
        )
    file = BRONZE_BATCH if run.mode == "batch" else BRONZE_STREAMING
    script = revision.script(file, settings)
    table = table_name(revision.bronze_table)
    return BronzeTarget(
        run.job, script, f"{revision.name}_source", table, dlq_topic, bootstrap
    ), topic


class _Bronze:
    """Takes the micro-batches of one run through the protocol."""

    def __init__(self, context: RunContext, target: BronzeTarget) -> None:
        self._context = context
        self._target = target
        self._protocol = context.protocol()
        self._progress = RunProgress(context)

    def finish_open_intents(self) -> None:
        """What a killed run announced is done first, with exactly its range."""
        for intent in self._context.store.open_intents(self._target.job):
            frame = read_range(self._context.session, self._target.bootstrap, intent.range)
            mine = replace(intent, run=self._context.run.number)
            row = self._protocol.finish(mine, BronzeBatch(frame, self._target, self._protocol))
            self._progress.batch(row)

    def handle(self, frame: DataFrame, range_: Range, batch_id: int) -> None:
        run = self._context.run
        work = BronzeBatch(frame, self._target, self._protocol)
        revisions = (run.revision,)
        row = self._protocol.process(run.job, run.number, range_, revisions, batch_id, work)
        self._progress.batch(row)


class BronzeBatch:
    """One batch: accepted rows staged, the rest accounted for, then published."""

    def __init__(self, frame: DataFrame, target: BronzeTarget, protocol: BatchProtocol) -> None:
        self._session: SparkSession = frame.sparkSession
        self._target = target
        self._protocol = protocol
        self._source = Counted(frame, TOMBSTONES)
        self._table = ManagedTable(self._session, target.table)
        self._dead_letters = ManagedTable(self._session, DEAD_LETTERS)

    def committed(self, intent: Intent) -> Committed | None:
        return self._table.committed(intent.job)

    def account(self, intent: Intent) -> Result | None:
        return account_bronze(self._table, self._dead_letters, intent.job, intent.range)

    def write(self, intent: Intent) -> Result:
        staged = self._stage(intent)
        outcomes = self._outcomes(intent, staged)
        if set(outcomes) != {ACCEPTED}:
            self._refuse(intent, outcomes)
        self._protocol.still_mine()
        self._table.publish(staged)
        self._protocol.faults.at(Point.AFTER_PUBLISH)
        result = self.account(intent)
        if result is None:
            raise OperationError(f"{self._table.name} lost the commit that was just published")
        return result

    def _stage(self, intent: Intent) -> Snapshot:
        self._bind(intent)
        staging = Staging(self._session, intent)
        self._protocol.faults.during(Point.MID_WRITE, self._write_begun())
        with staging.open():
            sql(self._session, self._target.script.one("accept"))
        staged = staging.staged(self._table)
        self._protocol.faults.at(Point.AFTER_STAGING)
        return staged

    def _bind(self, intent: Intent) -> None:
        """The file's views over this batch's records, and its clock at the batch's time."""
        self._source.observed().createOrReplaceTempView(self._target.view)
        for statement in (*self._target.script.named("clock"), *self._target.script.named("view")):
            sql(self._session, statement)
        sql(self._session, f"SET VARIABLE batch_time = TIMESTAMP '{intent.batch_time.isoformat()}'")

    def _write_begun(self) -> Callable[[], bool]:
        folder = Path(self._table.look().location.removeprefix("file:")) / "data"
        known = {file.name for file in folder.glob("*.parquet")}
        return lambda: any(file.name not in known for file in folder.glob("*.parquet"))

    def _outcomes(self, intent: Intent, staged: Snapshot) -> Mapping[str, int]:
        read, tombstones = self._read(intent)
        refused = read - tombstones - staged.added
        if refused < 0:
            raise OperationError(
                f"a batch of {intent.job} wrote more rows than it read",
                why=f"{read} records read, {tombstones} tombstones, {staged.added} rows staged",
            )
        found = {ACCEPTED: staged.added, REFUSED: refused, TOMBSTONE: tombstones}
        return {name: n for name, n in found.items() if n or name == ACCEPTED}

    def _read(self, intent: Intent) -> tuple[int, int]:
        """Records and tombstones; on any doubt they are counted again."""
        seen = self._source.seen()
        return seen if seen and seen[0] == span(intent.range) else self._source.recount()

    def _refuse(self, intent: Intent, outcomes: Mapping[str, int]) -> None:
        """Dead letters first: once bronze is published, the batch is wholly accounted for."""
        staging = Staging(self._session, intent, outcomes)
        statement = self._target.script.one("refuse")
        with staging.open():
            # Without refused records the commit is empty: it carries the count of tombstones.
            sql(self._session, statement if outcomes.get(REFUSED) else _nothing(statement))
        staged = staging.staged(self._dead_letters)
        if staged.added != outcomes.get(REFUSED, 0):
            raise OperationError(
                f"a batch of {intent.job} does not add up",
                why=f"{dict(outcomes)}, but {staged.added} dead letters",
            )
        with suppress(AlreadyPublishedError):  # by an earlier attempt at this very batch
            self._dead_letters.publish(staged)
        self._protocol.faults.at(Point.AFTER_DEAD_LETTERS)
        send_dead_letters(self._session, intent, self._target.bootstrap, self._target.dlq_topic)


def account_bronze(
    table: ManagedTable, dead_letters: ManagedTable, job: str, range_: Range
) -> Result | None:
    """From the tables alone: a batch that was not wholly accepted says so in its dead letters."""
    commit = table.commit_of(job, range_)
    if commit is None:
        return None
    refusal = dead_letters.commit_of(job, range_)
    outcomes = (refusal.marker.outcomes if refusal else None) or {ACCEPTED: commit.snapshot.added}
    snapshots = {table.name: commit.snapshot.id}
    if refusal:
        snapshots[dead_letters.name] = refusal.snapshot.id
    return Result(sum(outcomes.values()), outcomes, snapshots)


def _nothing(insert: str) -> str:
    head = insert[: insert.index("SELECT")]
    return f"{head}SELECT * FROM {DEAD_LETTERS} WHERE FALSE"
