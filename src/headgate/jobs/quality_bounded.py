"""Two sources, or a table, judged as a whole: read to their end, and all earlier results replaced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headgate.compile.fragments import DEAD_LETTERS
from headgate.compile.script import Script
from headgate.engine.conflicts import moved, until_unmoved, writing_to
from headgate.engine.context import RunContext
from headgate.engine.dead_letters import send_dead_letters
from headgate.engine.faults import Point
from headgate.engine.iceberg import ManagedTable, Staging
from headgate.engine.jvm import Snapshot
from headgate.engine.protocol import Result
from headgate.engine.reach import Reached
from headgate.engine.statements import create, sql
from headgate.errors import OperationError
from headgate.jobs.binding import bind
from headgate.jobs.progress import RunProgress
from headgate.jobs.quality_batch import bind_committed, kept, set_batch
from headgate.jobs.quality_letters import new_letters
from headgate.jobs.quality_marks import running_mark
from headgate.jobs.quality_sources import WholeSources
from headgate.jobs.quality_target import DEAD_LETTER, REFUSED, QualityTarget
from headgate.jobs.quality_topic import stop_if_held
from headgate.jobs.quality_windows import emitter_of
from headgate.jobs.refusals import publish_once, stage
from headgate.store.model import Intent, LedgerRow, Range


class WholeRun:
    """One evaluation: the ends are fixed in its intent, so that a replay reads the same records."""

    def __init__(self, context: RunContext, target: QualityTarget) -> None:
        self._context, self._target = context, target
        self._revision = context.run.revision
        self._rules = target.revisions.of(self._revision)
        self._sources = WholeSources(context.session, context.settings, self._rules)
        self._protocol, self._progress = context.protocol(), RunProgress(context)

    def evaluate(self) -> None:
        """What a killed run announced, then all that is there now, unless that is the same."""
        context, script = self._context, self._target.revisions.script(self._revision)
        self._sources.check()
        create(context.session, script.named("reading"))
        context.store.mark(running_mark(context.run.job), self._revision)
        done = self._finish_open_intent()
        range_ = self._sources.range()
        if done is None or done.range.end != range_.end:
            self._process(range_)
        emitter_of(context, self._rules).close_due(everything=True)

    def _finish_open_intent(self) -> LedgerRow | None:
        """Carry it out if its records are still there, under this very revision; else it is void."""
        store, done = self._context.store, None
        for found in store.open_intents(self._target.job):
            intent = replace(found, run=self._context.run.number)
            if not self._stands(found):
                store.withdraw(found)
                continue
            done = self._protocol.finish(intent, self._work())
            self._settled(done)
        return done

    def _stands(self, intent: Intent) -> bool:
        """Whether it is written, or can still be carried out as it was announced."""
        if intent.revisions == (self._revision,) and self._sources.has(intent.range):
            return True
        return self._target.account(self._context.session, intent) is not None

    def _process(self, range_: Range) -> None:
        run = self._context.run
        self._progress.begin(self._sources.records(range_))
        row = self._protocol.process(
            run.job, run.number, range_, (self._revision,), run.number, self._work()
        )
        self._settled(row)

    def _settled(self, row: LedgerRow | None) -> None:
        self._progress.batch(row)
        if row is not None:
            found = self._context.store.newest_rule_counts(row.job, 1).get(row.id or 0, ())
            held = {count.rule: count.held for count in found}
            emitter_of(self._context, self._rules).close_due(everything=True)
            stop_if_held(row.job, self._rules, held)

    def _work(self) -> WholeWork:
        return WholeWork(self._context, self._target, self._sources)


class WholeWork:
    """The work of one evaluation, as the protocol asks for it."""

    def __init__(self, context: RunContext, target: QualityTarget, sources: WholeSources) -> None:
        self._context, self._target, self._sources = context, target, sources
        self._session, self._protocol = context.session, context.protocol()
        self._results = ManagedTable(self._session, target.table)
        self._partials = ManagedTable(self._session, target.partials)

    def reached(self, intent: Intent) -> Reached | None:
        """It begins anew each time."""
        return None

    def account(self, intent: Intent) -> Result | None:
        return self._target.account(self._session, intent)

    def write(self, intent: Intent) -> Result:
        """Run again whole when a table moved under it."""
        return until_unmoved(lambda: self._write(intent))

    def _write(self, intent: Intent) -> Result:
        done = self.account(intent)
        if done is not None:
            return done
        rules = self._target.revisions.of(intent.revisions[0])
        script = self._target.revisions.script(intent.revisions[0])
        bind(self._session, script, self._sources.frames(intent.range), intent)
        set_batch(self._session, intent, None)
        with kept(self._session, rules):
            staged = self._replaced(self._results, intent, script.one("accept"))
            self._protocol.faults.at(Point.AFTER_STAGING)
            rows = self._session.read.format("iceberg").option("versionAsOf", str(staged.id))
            bind_committed(self._session, script, rules, rows.load(self._results.name))
            outcomes = self._outcomes(script)
            self._refuse(intent, script, outcomes)
            self._publish_partials(intent, script, outcomes)
        return self._protocol.published(self, intent, lambda: self._results.fast_forward(staged))

    def _replaced(
        self,
        table: ManagedTable,
        intent: Intent,
        statement: str,
        outcomes: Mapping[str, int] | None = None,
    ) -> Snapshot:
        """All rows of the table replaced by the statement's, not yet published."""
        current = table.look().current()
        staging = Staging(self._session, intent, outcomes)
        with staging.open(), writing_to(table.name):
            sql(self._session, statement.replace("INSERT INTO", "INSERT OVERWRITE", 1))
        staged = staging.staged(table)
        if staged.parent != (current.id if current else None):
            raise moved(table.name)
        return staged

    def _outcomes(self, script: Script) -> Mapping[str, int]:
        """What became of each record; a pair is no record, its two rows are."""
        found = {str(r[0]): int(r[1]) for r in sql(self._session, script.one("outcomes")).collect()}
        return {name: n for name, n in found.items() if n}

    def _publish_partials(
        self, intent: Intent, script: Script, outcomes: Mapping[str, int]
    ) -> None:
        if self._partials.commit_of(intent) is None:
            staged = self._replaced(self._partials, intent, script.one("partials"), outcomes)
            self._protocol.still_mine()
            self._partials.fast_forward(staged)
        self._protocol.faults.at(Point.AFTER_PARTIALS)

    def _refuse(self, intent: Intent, script: Script, outcomes: Mapping[str, int]) -> None:
        """Dead letters that were not written by an earlier evaluation: a record has one of a reason."""
        statement = new_letters(script.one("refuse"), intent.job)
        table = ManagedTable(self._session, DEAD_LETTERS)
        if table.commit_of(intent) is None:
            staged = stage(table, intent, statement)
            most = outcomes.get(REFUSED, 0) + outcomes.get(DEAD_LETTER, 0)
            if staged.added > most:
                why = f"{staged.added:,} letters, and only {most:,} records that can have one"
                raise OperationError(
                    f"{intent.job} made more dead letters than it refused", why=why
                )
            if not staged.added:
                return
            self._protocol.still_mine()
            publish_once(table, intent, staged)
        self._protocol.faults.at(Point.AFTER_DEAD_LETTERS)
        for topic, dlq_topic in self._sources.dlq_topics().items():
            send_dead_letters(self._session, intent, self._target.bootstrap, dlq_topic, topic)
