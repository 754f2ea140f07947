"""Silver: bronze rows filtered, cast, renamed and deduplicated, as a batch or following bronze."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.core.engine.context import RunContext
from headgate.core.engine.progress import RunProgress
from headgate.core.lake.iceberg import ManagedTable, fence
from headgate.core.lake.jvm import IcebergTable
from headgate.core.lake.statements import create
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.store_model import ACTIVE, SNAPSHOT, Intent, Range, Run
from headgate.core.sql.compile_fragments import job_name
from headgate.errors import UnavailableError
from headgate.pipeline import declaration
from headgate.pipeline.columns import fit_silver
from headgate.pipeline.compile.compile_dataset import SILVER
from headgate.pipeline.silver_batch import SilverBatch, SilverTarget, silver_target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_SECONDS = 0.5


class EmptyBronzeError(UnavailableError):
    """There is nothing to make silver from; another try without bronze would not help."""

    code, retryable = "HG-8002", False


@dataclass(frozen=True)
class Next:
    """The rows that silver takes next; `words` say why it is made anew, where that is no matter of course."""

    range: Range
    words: str = ""


def run_silver(context: RunContext) -> None:
    """Bring silver up to bronze's current snapshot, once or whenever there is a new one."""
    silver = SilverRun(context)
    silver.finish_open_intents()
    if context.run.mode == "streaming":
        silver.follow()
    else:
        silver.catch_up(context.run.options.get("form", "auto"))


class SilverRun:
    """Takes the steps of one run, all under the run's revision."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._target = silver_target(context)
        # A session of its own: while a step is staged, every commit of its session is.
        self._session = context.session.newSession()
        script = self._target.scripts.of(context.run.revision, SILVER)
        create(self._session, script.named("table"))
        revision = declaration.fetch(context.store, context.run.revision)
        fit_silver(self._session, revision)
        self._protocol, self._progress = context.protocol(), RunProgress(context)
        self._steps = len(context.store.ledger(context.run.job))

    def finish_open_intents(self) -> None:
        """What a killed run announced is done first, unless its bronze or its revision is gone."""
        for intent in self._context.store.open_intents(self._target.job):
            revision = self._context.run.revision
            if not is_outdated(self._session, self._target, revision, intent) or not give_up(
                ManagedTable(self._session, self._target.silver), self._context.store, intent
            ):
                self._progress.batch(self._protocol.finish(intent, self._batch()))

    def catch_up(self, form: str) -> None:
        bronze = bronze_of(self._session, self._target)
        if bronze is None:
            raise EmptyBronzeError(
                f"{self._target.bronze} has no rows yet",
                fix="run bronze first: make process-bronze",
            )
        self._take(bronze, form)

    def follow(self) -> None:
        """One step for each new state of bronze, until the run is stopped."""
        stop, seen = self._context.stop, None
        while not stop.is_set():
            bronze = bronze_of(self._session, self._target)
            current = bronze.current() if bronze else None
            if bronze is None or current is None or current.id == seen:
                self._context.goes_on()
                stop.wait(POLL_SECONDS)
                continue
            seen = self._take(bronze, "auto").end[SNAPSHOT]
            # Under a steady load bronze is never seen unchanged: a step done is a sign as good.
            self._context.goes_on()

    def _take(self, bronze: IcebergTable, form: str) -> Range:
        """One step up to this state of bronze."""
        run = self._context.run
        found = next_range(self._session, self._target, bronze, run.revision, form)
        words = [found.words, bronze_behind(self._context.store, run)]
        self._progress.note("; ".join(part for part in words if part))
        self._steps += 1
        work = self._batch()
        self._progress.begin(work.rows(found.range))
        row = self._protocol.process(
            run.job, run.number, found.range, (run.revision,), self._steps, work
        )
        self._progress.batch(row)
        return found.range

    def _batch(self) -> SilverBatch:
        return SilverBatch(self._session, self._target, self._protocol)


def bronze_behind(store: OpsStore, run: Run) -> str:
    """That bronze still reads under another declaration: what is new in this one has no values yet."""
    bronze = store.latest(job_name("bronze", run.subject))
    if bronze is None or bronze.state not in ACTIVE or bronze.revision == run.revision:
        return ""
    return (
        f"{bronze.job} still reads under another revision, new columns stay NULL:"
        f" headgate job restart {bronze.job}"
    )


def bronze_of(session: SparkSession, target: SilverTarget) -> IcebergTable | None:
    """Bronze as it is now; None before its first row."""
    table = ManagedTable(session, target.bronze)
    bronze = table.look() if table.exists() else None
    return bronze if bronze and bronze.current() else None


def is_outdated(session: SparkSession, target: SilverTarget, revision: str, intent: Intent) -> bool:
    """Whether nothing of it is written and its bronze or its revision is no longer the present one."""
    if ManagedTable(session, target.silver).commit_of(intent) is not None:
        return False
    bronze = ManagedTable(session, target.bronze).look()
    known = {snapshot.id for snapshot in bronze.history()}
    wanted = {intent.range.start.get(SNAPSHOT), intent.range.end[SNAPSHOT]} - {None}
    same = bronze.uuid == intent.range.source_id and intent.revisions == (revision,)
    return not same or not wanted <= known


def give_up(silver: ManagedTable, store: OpsStore, intent: Intent) -> bool:
    """Withdraw an intent after the table has been made to refuse its commit; False if it stands."""
    fence(silver, intent)
    if silver.commit_of(intent) is not None:
        return False
    store.withdraw(intent)
    return True


def next_range(
    session: SparkSession, target: SilverTarget, bronze: IcebergTable, revision: str, form: str
) -> Next:
    """From the bronze snapshot that silver has seen to this one; all of it for a rebuild."""
    current = bronze.current()
    assert current is not None, "asked for only once bronze has rows"
    source, end = f"table:{target.bronze}", {SNAPSHOT: current.id}
    seen = _seen(ManagedTable(session, target.silver), bronze, target.job, revision)
    if form == "full" or isinstance(seen, str):
        words = "rebuilt as asked" if form == "full" else str(seen)
        return Next(Range(source, bronze.uuid, {}, end), words)
    return Next(Range(source, bronze.uuid, {SNAPSHOT: seen}, end))


def _seen(silver: ManagedTable, bronze: IcebergTable, job: str, revision: str) -> int | str:
    """The bronze snapshot that silver holds, or why it must be rebuilt ("" for its first time)."""
    committed = silver.committed(job)
    if committed is None:
        return ""
    if committed.marker.revisions != (revision,):
        return "rebuilt: the declaration has changed"
    if bronze.uuid != committed.marker.range.source_id:
        return "rebuilt: bronze is another table than before"
    seen = committed.marker.range.end[SNAPSHOT]
    if any(seen in (s.id, s.parent) for s in bronze.history()):
        return seen
    return "rebuilt: the bronze snapshot that silver had seen is no longer there"
