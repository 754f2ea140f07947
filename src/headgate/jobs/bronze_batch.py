"""One bronze batch: accepted rows staged, the rest accounted for, then published."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from headgate.compile.evolution import Seen
from headgate.compile.fragments import DEAD_LETTERS
from headgate.compile.script import Script
from headgate.engine.dead_letters import send_dead_letters
from headgate.engine.faults import Point
from headgate.engine.iceberg import AlreadyPublishedError, ManagedTable, Staging, nothing
from headgate.engine.jvm import Snapshot
from headgate.engine.protocol import BatchProtocol, Result, span
from headgate.engine.reach import Reached, topic_reached
from headgate.engine.rest import Rest, rest_of
from headgate.engine.statements import sql
from headgate.errors import BatchRefusedError, OperationError
from headgate.expr.literals import spark_literal
from headgate.jobs import drift
from headgate.jobs.declaration import Scripts
from headgate.jobs.evolve import Evolution
from headgate.store.model import Intent

ACCEPTED, REFUSED, TOMBSTONE = "accepted", "refused", "tombstone"
TOMBSTONES = "value IS NULL"


@dataclass(frozen=True)
class BronzeTarget:
    """Where the batches of one run go."""

    job: str
    scripts: Scripts
    file: str
    view: str
    table: str
    dlq_topic: str
    bootstrap: str

    @property
    def drift_view(self) -> str:
        return f"{self.view.removesuffix('_source')}_drift"

    def script(self, revision: str) -> Script:
        return self.scripts.of(revision, self.file)


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
            self._account_for_rest(intent, staged)
        self._protocol.still_mine()
        self._table.publish(staged)
        self._protocol.faults.at(Point.AFTER_PUBLISH)
        result = self.account(intent)
        if result is None:
            raise OperationError(f"{self._table.name} lost the commit that was just published")
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

    def _account_for_rest(self, intent: Intent, staged: Snapshot) -> None:
        with rest_of(self._frame, intent.range, self._table, staged) as rest:
            outcomes = self._outcomes(intent, staged, rest)
            if set(outcomes) != {ACCEPTED}:
                script = self._bind(intent, rest.frame)
                self._refuse(intent, outcomes)
                self._note_refused(intent, script)

    def _note_refused(self, intent: Intent, script: Script) -> None:
        """An edited file may have no view of what deviates; then nothing is counted."""
        for statement in script.named("drift"):
            sql(self._session, statement)
            found = drift.refused_fields(self._session, self._target.drift_view)
            self._protocol.store.note_drift(intent, found)

    def _stage(self, intent: Intent) -> Snapshot:
        script = self._bind(intent, self._frame)
        staging = Staging(self._session, intent)
        self._protocol.faults.during(Point.MID_WRITE, self._write_begun)
        with staging.open():
            sql(self._session, script.one("accept"))
        staged = staging.staged(self._table)
        self._protocol.faults.at(Point.AFTER_STAGING)
        return staged

    def _bind(self, intent: Intent, records: DataFrame) -> Script:
        """The file's views over these records, and its clock at the batch's time."""
        script = self._target.script(intent.revisions[0])
        records.createOrReplaceTempView(self._target.view)
        for step in ("clock", "revision", "view"):
            for statement in script.named(step):
                sql(self._session, statement)
        now = intent.batch_time.isoformat()
        sql(self._session, f"SET VARIABLE batch_time = TIMESTAMP '{now}'")
        revision = spark_literal(intent.revisions[0])
        sql(self._session, f"SET VARIABLE batch_revision = {revision}")
        return script

    def _write_begun(self) -> Callable[[], bool]:
        """A look at the table's folder: true once a data file is there that was not before."""
        folder = Path(self._table.look().location.removeprefix("file:")) / "data"
        known = {file.name for file in folder.glob("*.parquet")}
        return lambda: any(file.name not in known for file in folder.glob("*.parquet"))

    def _outcomes(self, intent: Intent, staged: Snapshot, rest: Rest) -> Mapping[str, int]:
        """Outcomes of the whole batch; an offset without a record (a transaction's) has none."""
        records, tombstones = rest.counts(TOMBSTONES)
        refused = records - tombstones - rest.staged
        if refused < 0:
            raise OperationError(
                f"a batch of {intent.job} wrote more rows than it read",
                why=f"{records} records, {tombstones} tombstones, {rest.staged} rows staged",
            )
        found = {ACCEPTED: staged.added, REFUSED: refused, TOMBSTONE: tombstones}
        return {name: n for name, n in found.items() if n or name == ACCEPTED}

    def _refuse(self, intent: Intent, outcomes: Mapping[str, int]) -> None:
        """Dead letters first: once bronze is published, the batch is wholly accounted for."""
        staging = Staging(self._session, intent, outcomes)
        statement = self._target.script(intent.revisions[0]).one("refuse")
        with staging.open():
            # Without refused records the commit is empty: it carries the count of tombstones.
            sql(self._session, statement if outcomes.get(REFUSED) else nothing(DEAD_LETTERS))
        staged = staging.staged(self._dead_letters)
        if staged.added != outcomes.get(REFUSED, 0):
            raise OperationError(
                f"a batch of {intent.job} does not add up",
                why=f"{dict(outcomes)}, but {staged.added} dead letters",
            )
        with suppress(AlreadyPublishedError):  # by an earlier attempt at this very batch
            self._dead_letters.publish(staged)
        letters = self._dead_letters.commit_of(intent)
        if letters is None or letters.marker.revisions != intent.revisions:
            raise BatchRefusedError(
                f"dead letters of {intent.job} are already there for another form of this batch",
                why=f"a commit starts at {dict(intent.range.start)}, but with another end or revision",
                fix=f"run {intent.job} again: it goes on under the revision that wrote them",
            )
        self._protocol.faults.at(Point.AFTER_DEAD_LETTERS)
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
