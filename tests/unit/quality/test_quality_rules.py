"""What a quality job decides from its revision alone: when it stops, what a deployment changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headgate.core.ledger.model import LedgerRow, Run, RunState
from headgate.core.ledger.ranges import TopicRange
from headgate.errors import ConflictError
from headgate.quality.deploy import changes, refuse_other_source
from headgate.quality.job.snapshot import new_dead_letters
from headgate.quality.job.topic import StoppedByRuleError, kept_for, stop_if_matched, was_told
from headgate.quality.revision import RuleRevision, RulesRevision, SourceRevision

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def source(
    topic: str | None = "t", side: str = "onprem", iceberg: str | None = None
) -> SourceRevision:
    return SourceRevision(
        side=side, view="v", topic=topic, iceberg=iceberg, dlq_topic=None, dc="here",
        watermark=timedelta(seconds=5),
    )  # fmt: skip


def rule(name: str, on_fail: str = "keep", horizon: timedelta | None = None) -> RuleRevision:
    given: dict[str, Any] = {"on_fail": on_fail, "horizon": horizon, "severity": "ERROR"}
    return RuleRevision(name=name, reason="why not", status="INVALID", metric=name, **given)


def revision(
    *rules: RuleRevision, sources: tuple[SourceRevision, ...] = (), **declared: Any
) -> RulesRevision:
    table = {"name": "x", "rules": [{"name": r.name, "on_fail": r.on_fail} for r in rules]}
    return RulesRevision(
        name="x", file="f", template="", engine="", sources=sources or (source(),), rules=rules,
        aggregates=(), window=timedelta(seconds=10), namespace="dq", env="test",
        declared={"version": 2, "tables": [table], **declared},
    )  # fmt: skip


def test_a_rule_that_matched_and_stops_is_told_with_its_rows_and_the_way_on() -> None:
    rules = revision(rule("a"), rule("b", "stop"))
    stop_if_matched("quality-x", rules, {"a": 3, "b": 0})
    with pytest.raises(StoppedByRuleError, match="b on 1,000 rows") as error:
        stop_if_matched("quality-x", rules, {"b": 1_000})
    assert "job start quality-x" in error.value.fix
    assert not error.value.retryable


def test_a_topic_is_followed_and_has_keys_and_a_table_is_judged_by_its_snapshot() -> None:
    hour = timedelta(hours=1)
    assert revision(rule("u", horizon=hour)).keys == "lake.dq.keys_x"
    assert revision(rule("a")).keys is None
    table = (source(None, iceberg="silver.x"),)
    assert not revision(rule("u", horizon=hour), sources=table).follows_a_topic
    assert revision(rule("u", horizon=hour), sources=table).keys is None


def test_a_dead_letter_topic_has_the_name_of_its_topic_unless_it_has_its_own() -> None:
    assert source().dlq_topic is None
    assert source().bound == "v_source"


def test_a_deployment_says_what_comes_goes_and_changes() -> None:
    before = revision(rule("a"), rule("b"), rule("c"))
    assert changes(None, revision(rule("a"))) == ["new rule a", "new table x"]
    assert changes(before, revision(rule("a"), rule("c", "stop"), rule("d"))) == [
        "new rule d",
        "gone rule b",
        "changed rule c",
    ]
    (order,) = changes(before, revision(rule("c"), rule("a"), rule("b")))
    assert "order" in order
    assert changes(before, before) == [
        "nothing of the rules themselves: the SQL is written otherwise"
    ]


def test_a_stream_cannot_change_its_topic_while_it_runs() -> None:
    run = Run("quality-x", 1, "quality", "x", "streaming", "r", {}, None, 0, None)  # type: ignore[arg-type]
    refuse_other_source(run, revision(rule("a")), revision(rule("b")))
    with pytest.raises(ConflictError, match="cannot go on") as error:
        refuse_other_source(run, revision(), revision(sources=(source("other"),)))
    assert "onprem t, now onprem other" in error.value.why
    assert "job stop quality-x" in error.value.fix


def test_a_letter_of_an_earlier_evaluation_is_not_written_again() -> None:
    found = new_dead_letters(
        "INSERT INTO lake.headgate.dead_letters BY NAME\nSELECT a\nFROM b", "quality-x"
    )
    assert found.startswith("INSERT INTO lake.headgate.dead_letters BY NAME\nSELECT found.*")
    assert "FROM (SELECT a\nFROM b) AS found" in found
    assert "earlier.job = 'quality-x'" in found


def test_keys_are_kept_so_long_that_a_row_a_horizon_late_meets_them() -> None:
    hour, wait = timedelta(hours=1), timedelta(seconds=5)
    assert kept_for(hour, wait) == timedelta(hours=2, seconds=5)


def test_a_stop_is_told_by_the_run_that_ended_with_it_and_by_nothing_else() -> None:
    range_ = TopicRange("t", "id", {"0": 0}, {"0": 1})
    row = LedgerRow(1, "quality-x", 3, range_, ("r",), NOON, 0, 1, 1, 0, {}, {}, NOON)

    def ended(number: int, code: str | None, at: datetime | None = None) -> Run:
        run = Run("quality-x", number, "quality", "x", "batch", "r", {}, RunState.FAILED, 0, NOON)
        return replace(run, error_code=code, ended_at=at)

    code = StoppedByRuleError.code
    assert not was_told(row, [])
    assert not was_told(row, [ended(3, "HG-1001"), ended(2, code, NOON - timedelta(seconds=1))])
    assert was_told(row, [ended(3, code)])
    assert was_told(row, [ended(4, code)]), "a later run was stopped for it"
    assert was_told(row, [ended(1, code, NOON)]), "the runs are numbered anew"
