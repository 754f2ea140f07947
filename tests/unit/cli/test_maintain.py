"""`headgate maintain` asks before it deletes, and hands its run the options that were given."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner, Result

from headgate.cli import maintain
from headgate.errors import UsageError
from headgate.jobs.maintain_plan import ACTIONS, COMPACT, EXPIRE, TABLES, VACUUM, Plan, Wanted

NOTHING = Plan(job="maintain-x", run=1, made_at=datetime(2026, 3, 1, tzinfo=UTC), tables=())


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str | None, Wanted]]:
    """What would have been run."""
    found: list[tuple[str | None, Wanted]] = []

    def note(dataset: str | None, wanted: Wanted, *, show: bool = False) -> Plan:
        found.append((dataset, wanted))
        return NOTHING

    monkeypatch.setattr(maintain, "_carry_out", note)
    return found


def call(*words: str) -> Result:
    return CliRunner().invoke(maintain.group, words)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("compact", Wanted((COMPACT,))),
        ("compact --table bronze --min-files 2", Wanted((COMPACT,), ("bronze",), min_files=2)),
        ("expire --yes", Wanted((EXPIRE,))),
        (
            "expire --older-than 36h --keep 3 --dry-run",
            Wanted((EXPIRE,), older_than=timedelta(hours=36), keep=3, dry_run=True),
        ),
        (
            "vacuum --older-than 4d --table silver --yes",
            Wanted((VACUUM,), other_tables=("silver",), orphans_older_than=timedelta(days=4)),
        ),
        ("all --yes", Wanted(ACTIONS, TABLES)),
        ("all --skip vacuum --yes", Wanted((COMPACT, EXPIRE), TABLES)),
    ],
)
def test_the_run_gets_what_was_asked_for(
    asked: list[tuple[str | None, Wanted]], line: str, wanted: Wanted
) -> None:
    result = call(*line.split(), "--dataset", "x")
    assert result.exit_code == 0, result.output
    assert asked == [("x", wanted)]


@pytest.mark.parametrize("verb", ["expire", "vacuum", "all"])
def test_what_deletes_needs_a_yes_where_nobody_can_be_asked(
    asked: list[tuple[str | None, Wanted]], verb: str
) -> None:
    result = call(verb)
    assert isinstance(result.exception, UsageError)
    assert "--yes" in result.exception.fix
    assert asked == []


@pytest.mark.parametrize(
    ("line", "least"), [("expire --older-than 59m", "1h"), ("vacuum --older-than 23h", "1d")]
)
def test_ages_that_a_batch_under_way_may_have_are_refused(
    asked: list[tuple[str | None, Wanted]], line: str, least: str
) -> None:
    result = call(*line.split(), "--yes")
    assert isinstance(result.exception, UsageError)
    assert result.exception.fix == f"use {least} or more"
    assert asked == []


def test_to_skip_everything_is_a_mistake(asked: list[tuple[str | None, Wanted]]) -> None:
    result = call("all", "--yes", *(word for name in ACTIONS for word in ("--skip", name)))
    assert isinstance(result.exception, UsageError)
    assert asked == []
