"""One bronze batch: accepted rows staged, the rest accounted for, then published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from headgate.core.engine.binding import bind
from headgate.core.engine.faults import Point
from headgate.core.engine.protocol import BatchProtocol, Result, span
from headgate.core.engine.record_counts import RecordCounter
from headgate.core.engine.refusals import publish_letters, stage
from headgate.core.engine.topic_target import TopicTarget
from headgate.core.lake.dead_letters import send_dead_letters
from headgate.core.lake.iceberg import ManagedTable
from headgate.core.lake.jvm import Snapshot
from headgate.core.lake.reach import Reached, topic_reached
from headgate.core.lake.statements import sql
from headgate.core.ledger.store_model import Intent
from headgate.core.sql.compile_fragments import DEAD_LETTERS
from headgate.core.sql.compile_script import Script
from headgate.errors import BatchRefusedError, OperationError
from headgate.pipeline import jobs_drift as drift
from headgate.pipeline.compile.evolution import Seen
from headgate.pipeline.declaration import Scripts
from headgate.pipeline.evolve import Evolution

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
        evolution: Evolution,
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
