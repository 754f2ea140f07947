"""`headgate maintain` shows its plan, asks before it deletes, and does what was asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner, Result

from headgate.errors import UsageError
from headgate.maintenance import cli as maintain
from headgate.maintenance import cli as maintain_run
from headgate.maintenance.plan import (
    ACTIONS,
    COMPACT,
    EXPIRE,
    TABLES,
    VACUUM,
    MaintenanceRunOptions,
    PartPlan,
    Plan,
    Report,
    Size,
    TablePlan,
    TableReport,
)
from headgate.terminal.console import console

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SIZE = Size(files=9, bytes=50, small_files=9, parts=1, manifests=3, snapshots=4, metadata_files=7)
TABLE = TablePlan(role="silver", table="lake.silver.x", uuid="u", snapshot=3, size=SIZE)
WORK = TABLE.model_copy(
    update={"compact": (PartPlan(name="2026-02-01", small_files=9, small_bytes=50),)}
)


@dataclass
class Engine:
    """Notes what would have been run, and what a person had been shown by then."""

    table: TablePlan = WORK
    asked: list[tuple[str | None, MaintenanceRunOptions]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    shown: list[tuple[str, ...]] = field(default_factory=list)

    def carry_out(
        self, dataset: str | None, options: MaintenanceRunOptions
    ) -> tuple[Plan, Report | None]:
        self.asked.append((dataset, options))
        self.shown.append(tuple(self.said))
        plan = Plan(job="maintain-x", run=len(self.asked), made_at=NOW, tables=(self.table,))
        after = SIZE.model_copy(update={"files": 1})
        done = TableReport(table="lake.silver.x", before=SIZE, after=after, parts_compacted=1)
        report = Report(job="maintain-x", run=plan.run, tables=(done,))
        return plan, None if options.dry_run else report


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    found, real = Engine(), console.say

    def say(words: str) -> None:
        found.said.append(words)
        real(words)

    monkeypatch.setattr(console, "say", say)
    monkeypatch.setattr(maintain_run, "carry_out", found.carry_out)
    return found


def call(*words: str) -> Result:
    return CliRunner().invoke(maintain.group, words)


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("compact", MaintenanceRunOptions(actions=(COMPACT,))),
        (
            "compact --table bronze --min-files 2",
            MaintenanceRunOptions(actions=(COMPACT,), compact_tables=("bronze",), min_files=2),
        ),
        ("expire --yes", MaintenanceRunOptions(actions=(EXPIRE,))),
        (
            "expire --older-than 36h --keep 3 --dry-run",
            MaintenanceRunOptions(
                actions=(EXPIRE,), older_than=timedelta(hours=36), keep=3, dry_run=True
            ),
        ),
        (
            "vacuum --older-than 4d --table silver --yes",
            MaintenanceRunOptions(
                actions=(VACUUM,), other_tables=("silver",), orphans_older_than=timedelta(days=4)
            ),
        ),
        ("all --yes", MaintenanceRunOptions(actions=ACTIONS, compact_tables=TABLES)),
        (
            "all --skip vacuum --yes",
            MaintenanceRunOptions(actions=(COMPACT, EXPIRE), compact_tables=TABLES),
        ),
    ],
)
def test_the_run_gets_what_was_asked_for(
    engine: Engine, line: str, options: MaintenanceRunOptions
) -> None:
    result = call(*line.split(), "--dataset", "x")
    assert result.exit_code == 0, result.output
    planned, *done = engine.asked
    assert planned == ("x", options.model_copy(update={"dry_run": True}))
    assert done == ([] if options.dry_run else [("x", options.model_copy(update={"plan_run": 1}))])


@pytest.mark.parametrize("line", ["compact", "expire --yes", "vacuum --yes", "all --yes"])
def test_the_plan_is_shown_before_anything_is_done(engine: Engine, line: str) -> None:
    result = call(*line.split())
    before_the_plan, before_the_work = engine.shown
    assert before_the_plan == ()
    assert "compact: 9 small files in 1 part" in before_the_work[0]
    assert result.stdout.startswith("Report of maintain-x run 2: 1 part compacted")


def test_a_dry_run_shows_its_plan_and_ends(engine: Engine) -> None:
    assert "compact: 9 small files in 1 part" in call("all", "--dry-run").stdout
    assert [options.dry_run for _, options in engine.asked] == [True]


def test_nothing_to_do_is_one_line_and_no_run(engine: Engine) -> None:
    engine.table = TABLE
    result = call("all", "--yes")
    assert result.output.splitlines() == ["✓ nothing to do for maintain-x: --dry-run says why"]
    assert [options.dry_run for _, options in engine.asked] == [True]


@pytest.mark.parametrize("verb", ["expire", "vacuum", "all"])
def test_what_deletes_needs_a_yes_where_nobody_can_be_asked(engine: Engine, verb: str) -> None:
    result = call(verb)
    assert isinstance(result.exception, UsageError)
    assert "--yes" in result.exception.fix
    assert engine.asked == []


@pytest.mark.parametrize(
    ("line", "least"), [("expire --older-than 59m", "1h"), ("vacuum --older-than 23h", "1d")]
)
def test_ages_that_a_batch_under_way_may_have_are_refused(
    engine: Engine, line: str, least: str
) -> None:
    result = call(*line.split(), "--yes")
    assert isinstance(result.exception, UsageError)
    assert result.exception.fix == f"use {least} or more"
    assert engine.asked == []


def test_to_skip_everything_is_a_mistake(engine: Engine) -> None:
    result = call("all", "--yes", *(word for name in ACTIONS for word in ("--skip", name)))
    assert isinstance(result.exception, UsageError)
    assert engine.asked == []
