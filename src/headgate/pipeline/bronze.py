"""Job kind `bronze`: write a topic's records to an Iceberg table; what cannot be a row becomes a dead letter.

`BronzeBatch` stages, counts and publishes one micro-batch; `run_bronze` follows the topic; `repair_bronze`
begins a new checkpoint behind what the table has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headgate.config.settings import Settings
from headgate.core.engine.batch import BatchProtocol, Point, Result, TopicTarget, span
from headgate.core.engine.recovery import Place, Repaired, repaired
from headgate.core.engine.run import RunContext
from headgate.core.engine.run_options import TopicRunForm, TopicRunOptions
from headgate.core.engine.staging import RecordCounter, bind, publish_letters, stage
from headgate.core.engine.topic_run import TopicRun
from headgate.core.kafka.offsets import Followed
from headgate.core.kafka.topics import Topics
from headgate.core.lake.dead_letters import send_dead_letters
from headgate.core.lake.spark import Snapshot, create, sql
from headgate.core.lake.table import ManagedTable, Reached, topic_reached
from headgate.core.ledger.model import Intent, Progress
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.sql.fragments import DEAD_LETTERS, job_name, table_name, view_stem
from headgate.core.sql.script import Script
from headgate.errors import BatchRefusedError, OperationError
from headgate.pipeline import drift
from headgate.pipeline.compile.dataset import BRONZE_BATCH, BRONZE_STREAMING
from headgate.pipeline.compile.evolution import Seen
from headgate.pipeline.revision import Scripts, declared_revision, fetch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ACCEPTED, REFUSED, TOMBSTONE = "accepted", "refused", "tombstone"


@dataclass(frozen=True)
class BronzeTarget(TopicTarget):
    """Where the batches of one run go."""

    scripts: Scripts
    file: str
    view: str

    @property
    def drift_view(self) -> str:
        return f"{self.view.removesuffix('_source')}_drift"

    def script(self, revision: str) -> Script:
        return self.scripts.of(revision, self.file)

    def account(self, session: SparkSession, intent: Intent) -> Result | None:
        table, letters = ManagedTable(session, self.table), ManagedTable(session, DEAD_LETTERS)
        return account_bronze(table, letters, intent)


class BronzeBatch:
    """The work of one batch, as the protocol asks for it."""

    def __init__(
        self,
        frame: DataFrame,
        target: BronzeTarget,
        protocol: BatchProtocol,
        evolution: drift.Evolution,
    ) -> None:
        self._session: SparkSession = frame.sparkSession
        self._target = target
        self._protocol = protocol
        self._evolution = evolution
        self._frame = frame
        self._counter = RecordCounter.of_job(frame, protocol.store, target.job)
        self._table = ManagedTable(self._session, target.table)
        self._dead_letters = ManagedTable(self._session, DEAD_LETTERS)

    def reached(self, intent: Intent) -> Reached | None:
        return topic_reached(self._table, self._protocol.store, intent.job)

    def account(self, intent: Intent) -> Result | None:
        return account_bronze(self._table, self._dead_letters, intent)

    def write(self, intent: Intent) -> Result:
        intent, staged = self._stage_evolved(intent)
        # A row stands for one record, so as many rows as offsets mean that all were accepted.
        if staged.added != span(intent.range):
            self._account_for_others(intent, staged)
        result = self._protocol.published(self, intent, lambda: self._table.publish(staged))
        return replace(result, amended=intent)

    def _stage_evolved(self, intent: Intent) -> tuple[Intent, Snapshot]:
        """The rows staged; once more when the table got columns for fields that it had not."""
        staged = self._stage(intent)
        seen = drift.unknown_fields(self._table, staged)
        if seen:
            # Before the table changes: afterwards nobody could tell that these were unknown.
            self._protocol.store.note_drift(intent, drift.counts(seen))
            amended = self._evolved(intent, seen)
            if amended is not None:
                intent, staged = self._stage_again(intent, amended, staged.added)
        missing = drift.missing_fields(self._table, staged)
        if missing:
            self._protocol.store.note_drift(intent, missing)
        return intent, staged

    def _stage_again(
        self, intent: Intent, amended: Intent, accepted: int
    ) -> tuple[Intent, Snapshot]:
        """The rows with their new columns, unless those would refuse what is sound without them."""
        staged = self._stage(amended)
        if staged.added >= accepted:
            return amended, staged
        self._protocol.still_mine()
        before = self._evolution.take_back(amended, intent.revisions)
        return before, self._stage(before)

    def _evolved(self, intent: Intent, seen: Sequence[Seen]) -> Intent | None:
        """The intent with new columns, unless part of the batch is already written without them."""
        if self._dead_letters.commit_of(intent) is not None:
            return None
        self._protocol.still_mine()
        return self._evolution.evolve(intent, seen, self._frame)

    def _account_for_others(self, intent: Intent, staged: Snapshot) -> None:
        """Count the records that are not staged, and write those that are refused as dead letters."""
        outcomes = self._outcomes(intent, staged)
        if set(outcomes) != {ACCEPTED}:
            script = self._bind(intent, self._frame)
            self._refuse(intent, outcomes)
            self._note_refused(intent, script)

    def _note_refused(self, intent: Intent, script: Script) -> None:
        """An edited file may have no view of what deviates; then nothing is counted."""
        for statement in script.named("drift"):
            sql(self._session, statement)
            found = drift.refused_fields(self._session, self._target.drift_view)
            self._protocol.store.note_drift(intent, found)

    def _stage(self, intent: Intent) -> Snapshot:
        script = self._bind(intent, self._counter.observed())
        self._protocol.faults.during(Point.MID_WRITE, self._table.write_begun)
        staged = stage(self._table, intent, script.one("accept"))
        self._protocol.faults.at(Point.AFTER_STAGING)
        return staged

    def _bind(self, intent: Intent, records: DataFrame) -> Script:
        script = self._target.script(intent.revisions[0])
        bind(self._session, script, {self._target.view: records}, intent)
        return script

    def _outcomes(self, intent: Intent, staged: Snapshot) -> Mapping[str, int]:
        """Outcomes of the whole batch; an offset without a record (a transaction's) has none."""
        counts = self._counter.count(staged.added, span(intent.range))
        refused = counts.records - counts.tombstones - staged.added
        if refused < 0:
            raise OperationError(
                f"a batch of {intent.job} wrote more rows than it read",
                why=f"{counts.records} records, {counts.tombstones} tombstones, {staged.added} rows staged",
            )
        outcomes = {ACCEPTED: staged.added, REFUSED: refused, TOMBSTONE: counts.tombstones}
        return {name: n for name, n in outcomes.items() if n or name == ACCEPTED}

    def _refuse(self, intent: Intent, outcomes: Mapping[str, int]) -> None:
        """Dead letters first: once bronze is published, the batch is wholly accounted for."""
        statement = self._target.script(intent.revisions[0]).one("refuse")
        # Without refused records the commit is empty: it carries the count of tombstones.
        letters = outcomes.get(REFUSED, 0)
        publish_letters(self._session, self._protocol, intent, statement, outcomes, letters)
        send_dead_letters(self._session, intent, self._target.bootstrap, self._target.dlq_topic)


def account_bronze(
    table: ManagedTable, dead_letters: ManagedTable, intent: Intent
) -> Result | None:
    """From the tables alone: a batch that was not wholly accepted says so in its dead letters."""
    commit = table.commit_of(intent)
    if commit is None:
        return None
    refusal = dead_letters.commit_of(intent)
    outcomes = (refusal.marker.outcomes if refusal else None) or {ACCEPTED: commit.snapshot.added}
    if outcomes.get(ACCEPTED) != commit.snapshot.added:
        raise BatchRefusedError(
            f"a batch of {intent.job} does not add up",
            why=f"{commit.snapshot.added} rows in {table.name}, but {dict(outcomes)} with its dead letters",
            fix="compare the two commits: headgate ledger show",
        )
    snapshots = {table.name: commit.snapshot.id}
    if refusal:
        snapshots[dead_letters.name] = refusal.snapshot.id
    return Result(sum(outcomes.values()), outcomes, snapshots, commit.marker.revisions)


def run_bronze(context: RunContext) -> None:
    """Read the topic to its end, or for ever, batch by batch."""
    # A session of its own: while a batch is staged, every commit of its session is.
    context = replace(context, session=context.session.newSession())
    if TopicRunOptions.of(context.run).form is TopicRunForm.REPAIR:
        run_repair(context)
        return
    target, topic = bronze_target(context)
    create(context.session, target.script(context.run.revision).named("table"))
    BronzeRun(context, target).follow(topic)


def bronze_target(context: RunContext) -> tuple[BronzeTarget, Followed]:
    """Where this run reads and writes."""
    settings, run = context.settings, context.run
    revision = fetch(context.store, run.revision)
    options = TopicRunOptions.of(run)
    bootstrap = settings.need("bootstrap_servers")
    topic = Followed.one(Topics(bootstrap).found(options.topic))
    target = BronzeTarget(
        job=run.job,
        scripts=Scripts(context.store, settings),
        file=BRONZE_BATCH if run.mode == "batch" else BRONZE_STREAMING,
        view=f"{view_stem(revision.name)}_source",
        table=table_name(revision.bronze_table),
        dlq_topic=options.dlq_topic,
        bootstrap=bootstrap,
    )
    return target, topic


class BronzeRun(TopicRun):
    """Takes the micro-batches of one run through the protocol."""

    def __init__(self, context: RunContext, target: BronzeTarget) -> None:
        super().__init__(context, target, TopicRunOptions.of(context.run))
        self._bronze = target
        self._evolution = drift.Evolution(
            context.session, context.store, target.table, context.run.revision
        )

    @property
    def revision(self) -> str:
        return self._evolution.revision

    def _batch(self, frame: DataFrame) -> BronzeBatch:
        return BronzeBatch(frame, self._bronze, self._protocol, self._evolution)


def run_repair(context: RunContext) -> None:
    """A run of the job that reads nothing: while it lasts, no other run of the job can begin."""
    run, settings = context.run, context.settings
    topic = TopicRunOptions.of(run).topic
    done = repair_bronze(context.session, settings, context.store, run.subject, topic)
    words = f"goes on at {dict(done.offsets)}; the old checkpoint is {done.aside}"
    context.report(Progress(words=words))


def repair_bronze(
    session: SparkSession,
    settings: Settings,
    store: OpsStore,
    dataset: str,
    name: str | None = None,
) -> Repaired:
    """Begin a new checkpoint at the table's committed end, on this topic or the declared one."""
    revision = declared_revision(settings, dataset)
    name = name or revision.topic_names(settings)[0]
    topic = Followed.one(Topics(settings.need("bootstrap_servers")).found(name))
    table = ManagedTable(session, table_name(revision.bronze_table))
    letters = ManagedTable(session, DEAD_LETTERS)
    place = Place(session, settings, store, job_name("bronze", dataset))
    return repaired(place, table, topic, lambda intent: account_bronze(table, letters, intent))
