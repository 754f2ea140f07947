"""The path of rules as steps: feed, judge, and hold every count against what was planted."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.demo.steps import Data, JobRun, Walk
from headgate.terminal.steps import Steps, command, reported, wait_for

if TYPE_CHECKING:
    from headgate.core.ledger.ops_store import OpsStore
    from headgate.demo.quality.comparison import Comparison
    from headgate.demo.quality.planted import Planted
    from headgate.demo.quality.quality_gather import Gathering, Sinks
    from headgate.quality.compile.model import JudgedTable
    from headgate.quality.spec.rule_set import RuleTable

NAME_WIDTH = 18


class Report(Data):
    html: str


class RuleProof(Data):
    checks: tuple[dict[str, object], ...]


class Proof(Data):
    rules: tuple[RuleProof, ...]


class QualityWalk(Walk):
    """The steps of `headgate demo quality`; what was planted is kept by table."""

    def __init__(self, steps: Steps, root: Path) -> None:
        super().__init__(steps, root)
        self.planted: dict[str, list[Planted]] = {}

    def rules(self, tables: tuple[JudgedTable, ...]) -> None:
        with self._steps.step("rules") as step:
            command("rules", "check")
            count = sum(len(table.rules) for table in tables)
            names = ", ".join(table.table.name for table in tables)
            step.words = f"{count} rules checked: {names}"

    def feed(
        self,
        table: JudgedTable,
        rows: int,
        seed: int,
        start: datetime | None = None,
        *,
        late: bool = False,
    ) -> None:
        """Send rows and keep what was planted in them."""
        from headgate.demo.quality.feed import fed

        name = table.table.name
        with self._steps.step(f"feed {name}") as step:
            done = fed(name, rows, seed, start=start)
            self.planted.setdefault(name, []).append(done.planted)
            bad = sum(defect.rows for defect in done.planted.defects)
            kinds = len(done.planted.defects)
            step.words = f"{done.sent:,} messages, {bad:,} with one of {kinds} defects"
            if late:
                step.words += ", for windows that are closed"

    def reconcile(self, table: JudgedTable) -> None:
        """Both topics to their end, waited for."""
        job = f"reconcile-{table.table.name}"
        with self._steps.step(f"reconcile {table.table.name}") as step:
            step.words = reported(JobRun, "job", "run", job).outcome

    def start(self, table: JudgedTable) -> None:
        with self._steps.step(f"start {table.table.name}") as step:
            command("job", "start", f"quality-{table.table.name}")
            step.words = "as a stream: it judges what comes from now on"

    def judged(self, table: JudgedTable, store: OpsStore) -> None:
        """Wait until the stream has settled all that was sent."""
        name = table.table.name
        sent = sum(sum(one.messages.values()) for one in self.planted[name])
        with self._steps.step(f"judge {name}") as step:
            wait_for(
                lambda: settled(store, name) >= sent,
                lambda: f"{settled(store, name):,} of {sent:,} records settled",
                step,
            )
            batches = len(store.ledger(f"quality-{name}"))
            step.words = f"{sent:,} records settled, {_plural(batches, 'batch', 'batches')} so far"

    def closed(self, store: OpsStore) -> None:
        """Wait until every window is closed, and every sink has its record."""
        with self._steps.step("windows") as step:
            wait_for(lambda: all_sent(store), lambda: windows_words(store), step)
            step.words = f"{windows_words(store)}; every sink has them"

    def stop(self, table: JudgedTable) -> None:
        with self._steps.step(f"stop {table.table.name}") as step:
            command("job", "stop", f"quality-{table.table.name}")
            step.words = "between two batches"

    def compare(self, tables: tuple[JudgedTable, ...], sinks: Sinks) -> tuple[Comparison, ...]:
        """Every count in every place against what was planted."""
        with self._steps.step("compare") as step, gathering_of(sinks) as gathering:
            found = tuple(
                gathering.compared(table, self.planted[table.table.name]) for table in tables
            )
            total = sum(comparison.compared for comparison in found)
            differing = sum(not line.holds for one in found for line in one.lines)
            step.words = (
                f"all {total} counts are what was planted"
                if not differing
                else f"{differing} lines differ from what was planted"
            )
            step.holds = not differing
        return found

    def prove(self, file: Path) -> None:
        """The ledger against tables, dead letters and windows, as for any data."""
        with self._steps.step("certify") as step:
            found = reported(Proof, "certify", "--all", "--out", str(file))
            statements = sum(len(account.checks) for account in found.rules)
            step.words = f"every record is accounted for: {statements} statements hold"

    def report(self, tables: tuple[JudgedTable, ...], folder: Path) -> tuple[str, ...]:
        """A page for each table."""
        with self._steps.step("report") as step:
            pages = tuple(page_of(table.table, folder) for table in tables)
            step.words = f"{len(pages)} pages with counts, trend and failing rows"
        return pages


def page_of(table: RuleTable, folder: Path) -> str:
    """The page that was written: of a pair what its keys are now, else what the run found."""
    kind = "reconcile" if table.is_pair else "rules"
    return reported(Report, kind, "report", table.name, "--out", str(folder / table.name)).html


@contextmanager
def gathering_of(sinks: Sinks) -> Generator[Gathering]:
    """One look at all places, with a session on the engine."""
    from headgate.core.engine.connect import connect
    from headgate.core.lake.statements import sql
    from headgate.demo.quality.quality_gather import Gathering
    from headgate.terminal.project import open_store

    settings, store = open_store()
    with store, connect(settings) as session:
        yield Gathering(
            settings,
            store,
            lambda query: [row.asDict() for row in sql(session, query).collect()],
            sinks,
        )


def settled(store: OpsStore, table: str) -> int:
    return sum(row.read for row in store.ledger(f"quality-{table}"))


def all_sent(store: OpsStore) -> bool:
    still_open = any(one[0] for one in store.window_counts().values())
    return not still_open and not any(store.waiting_windows(sink) for sink in store.sinks())


def windows_words(store: OpsStore) -> str:
    counts = list(store.window_counts().values())
    still_open, closed, late = (sum(one[at] for one in counts) for at in range(3))
    waiting = f"{still_open} open, " if still_open else ""
    return f"{waiting}{_plural(closed, 'window')} closed, {late} closed again for late rows"


def _plural(n: int, one: str, many: str = "") -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"
