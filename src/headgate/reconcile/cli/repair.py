"""`headgate reconcile repair`: send again what the cloud lacks or has wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from headgate.errors import (
    DifferenceError,
    InterruptedByUserError,
    SettingsError,
    UnavailableError,
    UsageError,
)
from headgate.terminal.console import as_table, confirm, console

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.quality.spec.rule_set import RuleTable
    from headgate.reconcile.repair.automatic import Repaired
    from headgate.reconcile.repair.plan import Broken, Followed, RepairPlan, RepairReport
    from headgate.reconcile.repair.run import RepairJournal
    from headgate.reconcile.repair.table_repairs import Repairs

STATUSES = ("MISSING_CLOUD", "MISMATCH", "LATE_MISMATCH", "ZOMBIE")
LIMIT, SHOWN = 10_000, 20


@click.command()
@click.argument("table")
@click.option("--status", multiple=True, type=click.Choice(STATUSES), help="Only these; else all.")
@click.option("--key", "keys", multiple=True, metavar="PK", help="Only these keys.")
@click.option("--limit", type=click.IntRange(1), default=LIMIT, show_default=True)
@click.option("--per-second", type=click.IntRange(1, 10_000), help="Default: as declared.")
@click.option("--dry-run", is_flag=True, help="Show the plan and write nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--wait", type=click.FloatRange(0), metavar="SECONDS", help="See verdicts follow.")
@click.option("--resume", is_flag=True, help="Go on with the repair that was interrupted.")
@click.option("--automatic", is_flag=True, help="Go on by itself over the declared statuses.")
@click.option("--every", type=click.FloatRange(0.1), default=10.0, show_default=True)
@click.option("--rounds", type=click.IntRange(1), help="With --automatic: stop after so many.")
def reconcile_repair(
    table: str,
    status: tuple[str, ...],
    keys: tuple[str, ...],
    limit: int,
    per_second: int | None,
    dry_run: bool,
    yes: bool,
    wait: float | None,
    resume: bool,
    automatic: bool,
    every: float,
    rounds: int | None,
) -> None:
    """Send rows of TABLE again whose verdict says that the cloud is wrong.

    The oldest source version comes first. Each row is written with the source's version as its
    timestamp, and a row of the cloud that is newer is left alone, so nothing newer is ever lost.
    Right before each batch everything is looked at again; what moved is skipped and said. The
    hasher is asked to read each key again, so that its verdict follows. With --wait that is
    waited for, and what became of the keys is told: exit code 5 if some are still wrong.

    A repair that was interrupted goes on with --resume. With --automatic the statuses declared in
    `repair: automatic:` are repaired round by round until it is stopped; while Cassandra, the broker
    or the lake is away it waits, and then ends what it had begun before it goes on.

    \b
    Examples:
      headgate reconcile repair business --dry-run
      headgate reconcile repair business --status MISSING_CLOUD --limit 1000 --yes
      headgate reconcile repair business --key 1234567 --yes --wait 60
      headgate reconcile repair business --resume --yes
      headgate reconcile repair business --automatic --per-second 20
    """
    if automatic and (resume or dry_run or keys or wait is not None):
        raise UsageError("--automatic goes with none of --resume, --dry-run, --wait and --key")
    if resume and keys:
        raise UsageError("--resume goes on with the keys of its plan: leave --key out")
    if automatic:
        _automatic(table, per_second, every, rounds, limit)
        return
    with _opened(*_declared(table)) as repairs:
        pace = per_second or repairs.declared.per_second
        if resume:
            _resumed(repairs, Way(pace, wait, dry_run, yes))
        else:
            _asked(repairs, status or STATUSES, keys, limit, Way(pace, wait, dry_run, yes))


@dataclass(frozen=True)
class Way:
    """How a repair goes: so many a second, waiting so long for its verdicts, shown or done."""

    per_second: int
    wait: float | None
    dry_run: bool
    yes: bool


def _declared(table: str) -> tuple[Settings, RuleTable]:
    from headgate.config.settings import load_settings
    from headgate.quality.compile.resolve import open_rules

    settings = load_settings()
    return settings, open_rules(settings, table).table


def _opened(settings: Settings, table: RuleTable) -> AbstractContextManager[Repairs]:
    from headgate.reconcile.repair.table_repairs import open_repairs

    return open_repairs(settings, table)


def _asked(
    repairs: Repairs,
    statuses: Sequence[str],
    keys: Sequence[str],
    limit: int,
    way: Way,
) -> None:
    from headgate.core.ledger.ops_store import utc_now

    plan = repairs.plan(repairs.broken(statuses, keys, limit))
    if way.dry_run or not plan.items:
        console.data(plan, text=plan_text(plan))
        return
    console.say(plan_text(plan))
    question = f"Send {len(plan.items):,} keys again to {plan.target}?"
    confirm(question, yes=way.yes, otherwise="repairing needs --yes here, or --dry-run to look")
    _carried_out(repairs, repairs.begin(plan, utc_now()), way)


def _resumed(repairs: Repairs, way: Way) -> None:
    from headgate.reconcile.repair.run import need_open_journal, report

    journal = need_open_journal(repairs.settings.home, repairs.table.name)
    if way.dry_run:
        console.data(report(journal), text=report_text(report(journal)))
        return
    question = f"Send the {len(journal.left):,} keys that are left to {journal.target}?"
    confirm(question, yes=way.yes, otherwise="resuming needs --yes here")
    _carried_out(repairs, journal, way)


def _carried_out(repairs: Repairs, journal: RepairJournal, way: Way) -> None:
    from headgate.core.runtime.journal import interruption

    words = f"keys of {journal.table} sent again"
    with interruption() as stopped:
        with console.progress(words, len(journal.items)) as bar:
            found = repairs.carry_out(journal, way.per_second, bar, stopped)
        if way.wait is not None and found.whole:
            console.say(f"waiting until their verdicts follow, at most {way.wait:g} s …")
            found = replace(found, followed=repairs.follow(journal, way.wait, stopped))
    console.data(found, text=report_text(found))
    _raise_unfinished(journal, found)


def _raise_unfinished(journal: RepairJournal, found: RepairReport) -> None:
    if found.followed and found.followed.wrong:
        raise DifferenceError(
            f"{len(found.followed.wrong):,} keys of {journal.table} are still wrong",
            why="their verdicts did not become valid in that time",
            fix="is `headgate reconcile hasher` running? `headgate reconcile why` tells what differs",
        )
    if found.left:
        raise InterruptedByUserError(
            f"{found.left:,} keys are left",
            why=f"stopped; the rest stands in {found.journal}",
            fix=f"headgate reconcile repair {journal.table} --resume --yes",
        )


def _automatic(
    name: str, per_second: int | None, every: float, rounds: int | None, limit: int
) -> None:
    from headgate.core.runtime.journal import interruption
    from headgate.reconcile.repair.automatic import Rounds, run_automatic
    from headgate.reconcile.repair.run import open_journal

    settings, table = _declared(name)
    with (
        interruption() as stopped,
        closing(_ByItself(lambda: _opened(settings, table), per_second, stopped)) as work,
    ):
        # Opened before the first round: what is wrong from the start is said and ends it.
        statuses = work.repairs.declared.automatic
        if not statuses:
            raise UsageError(
                f"no status of {name} is repaired by itself",
                why="`reconcile: repair: automatic:` is empty",
                fix="declare for example `automatic: [MISSING_CLOUD]`",
            )
        console.say(f"repairing {', '.join(statuses)} every {every:g} s; Ctrl-C stops")
        applied = run_automatic(Rounds(every, rounds, limit), work, stopped)
    console.data({"table": name, "applied": applied}, text=f"{applied:,} applied")
    if left := open_journal(settings.home, name):
        console.say(
            f"{len(left.left):,} keys are left in {left.file}: `--resume --yes` sends them,"
            " and so does the next --automatic"
        )


class _ByItself:
    """The work of the rounds; after an outage all is opened anew: a session or producer may be dead."""

    def __init__(
        self,
        opened: Callable[[], AbstractContextManager[Repairs]],
        per_second: int | None,
        stopped: Callable[[], bool],
    ) -> None:
        self._opened, self._per_second, self._stopped = opened, per_second, stopped
        self._stack = ExitStack()
        self._repairs: Repairs | None = None
        self._was_open = False

    @property
    def repairs(self) -> Repairs:
        if self._repairs is None:
            self._repairs = self._entered()
            self._was_open = True
        return self._repairs

    def _entered(self) -> Repairs:
        try:
            return self._stack.enter_context(self._opened())
        except SettingsError as error:
            if not self._was_open:
                raise
            # The settings held before: a name that cannot be resolved now is part of the outage.
            raise UnavailableError(error.what, why=error.why, fix=error.fix) from error

    def let_go(self) -> None:
        self._repairs = None
        self._stack.close()

    close = let_go

    def find(self, most: int) -> Sequence[Broken]:
        return self.repairs.broken(self.repairs.declared.automatic, limit=most)

    def repair(self, broken: Sequence[Broken]) -> Repaired:
        from headgate.core.ledger.ops_store import utc_now
        from headgate.reconcile.repair.automatic import Repaired
        from headgate.reconcile.repair.plan import nothing_sent

        plan = self.repairs.plan(broken)
        skipped = {each.pk for each in plan.skipped}
        if not plan.items:
            return Repaired(nothing_sent(plan), set(), skipped)
        done = self._carried_out(self.repairs.begin(plan, utc_now()))
        return replace(done, left_alone={*done.left_alone, *skipped})

    def finish(self) -> Repaired | None:
        from headgate.reconcile.repair.run import open_journal

        left = open_journal(self.repairs.settings.home, self.repairs.table.name)
        return self._carried_out(left) if left else None

    def tell(self, report: RepairReport) -> None:
        console.say(report_text(report))

    def say(self, words: str) -> None:
        console.say(words)

    def _carried_out(self, journal: RepairJournal) -> Repaired:
        from headgate.reconcile.repair.automatic import Repaired

        pace = self._per_second or self.repairs.declared.per_second
        found = self.repairs.carry_out(journal, pace, _Silent(), self._stopped)
        sent = {pk for pk, each in journal.outcomes.items() if each.result == "applied"}
        return Repaired(found, sent, journal.outcomes.keys() - sent)


class _Silent:
    def update(self, done: int) -> None: ...


def plan_text(plan: RepairPlan) -> str:
    """What would be sent, the first keys of it, and what is left alone from the start."""
    from headgate.reconcile.row_diff import shown_key

    if not plan.items and not plan.skipped:
        return f"nothing of {plan.table} needs a repair"
    counts = ", ".join(f"{n:,} {what}" for what, n in plan.actions.items()) or "nothing"
    rows = [
        {
            "key": shown_key(i.pk),
            "status": i.status,
            "action": i.action,
            "version": i.version.isoformat(),
        }
        for i in plan.items[:SHOWN]
    ]
    more = len(plan.items) - len(rows)
    parts = [f"to {plan.target}: {counts}", *([as_table(rows)] if rows else [])]
    parts += [f"and {more:,} more"] if more > 0 else []
    return "\n".join(
        [
            *parts,
            *(f"left alone: {shown_key(each.pk)}: {each.why}" for each in plan.skipped[:SHOWN]),
        ]
    )


def report_text(found: RepairReport) -> str:
    lines = [f"{found.applied:,} keys of {found.table} sent again to {found.target}"]
    lines += [f"  {n:,} left alone: {why}" for why, n in found.skipped.items()]
    lines += [f"  {found.left:,} still to send"] if found.left else []
    lines += followed_lines(found.followed) if found.followed else []
    return "\n".join([*lines, *([f"  journal: {found.journal}"] if found.journal else [])])


def followed_lines(followed: Followed) -> list[str]:
    """How they stand now, and the first of those that are still wrong."""
    from headgate.reconcile.row_diff import shown_key

    counts = ", ".join(f"{n:,} {status}" for status, n in sorted(followed.statuses.items()))
    lines = [f"  {followed.seconds:g} s later: {counts or 'nothing'}"]
    wrong = sorted(followed.wrong.items())[:SHOWN]
    return [*lines, *(f"  still {status}: {shown_key(pk)}" for pk, status in wrong)]
