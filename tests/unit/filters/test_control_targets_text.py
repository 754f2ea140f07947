"""An approval is of the text that a target is sent, and a target that means something else is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.control_plane import (
    ANN,
    BOB,
    ENGINE,
    TOPIC_TARGET,
    ControlPlaneHarness,
    TopicTarget,
    filter_document,
)
from tests.support.ops_store import create_database

from headgate.errors import ConflictError
from headgate.filters.compile import flink
from headgate.filters.compile.flink import flink_faults, flink_sql
from headgate.filters.compile.spark_sql import alone_sql, compile_filter
from headgate.filters.control import revisions
from headgate.filters.control.service import FilterService
from headgate.filters.loader import parse_filter
from headgate.filters.store.model import Status
from headgate.filters.store.routing import RoutingStore
from headgate.filters.targets.deployment import EngineTarget

PATH, COLUMN = "header_data.a", "event_name"


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[ControlPlaneHarness]:
    """A control plane with two targets."""
    made = ControlPlaneHarness(create_database(tmp_path / "ops.db"))
    targets = {ENGINE: EngineTarget(made.store.part(RoutingStore)), TOPIC_TARGET: TopicTarget()}
    made.service = FilterService(made.store, None, targets)
    yield made
    made.store.close()


def condition(field: str, operator: str, **more: Any) -> dict[str, Any]:
    return {"field": field, "operator": operator, **more}


# Which conditions Flink judges as filters.md says; the others are refused there.
SAME = [
    condition(PATH, "equals", value="DEALER-001"),
    condition(PATH, "in", values=["x", "y"]),
    condition(PATH, "equals", value=5, valueType="number"),
    condition(PATH, "greaterThan", value=5, valueType="number"),
    condition(PATH, "between", min=1, max=2, valueType="number"),
    condition(PATH, "notIn", values=[1, 2], valueType="number"),
    condition(PATH, "equals", value=True, valueType="boolean"),
    condition(COLUMN, "equals", value="1000"),
    condition(COLUMN, "in", values=["1000"]),
    condition(COLUMN, "notIn", values=["x"]),
    condition(COLUMN, "greaterThan", value="a"),
    condition(COLUMN, "between", min="a", max="b"),
    condition(COLUMN, "matches", value="^Car"),
    condition(COLUMN, "isNull"),
    condition("header_data", "isNotNull"),
    condition("__ts_ms", "greaterThan", value=5),
    {"not": condition(COLUMN, "equals", value="x")},
]
OTHER = [
    condition(PATH, "isNull"),
    condition(PATH, "isNotNull"),
    condition(PATH, "equals", value="1000"),
    condition(PATH, "in", values=["x", "-1.50"]),
    condition(PATH, "in", values=["1e3"]),
    condition(PATH, "notIn", values=["x"]),
    condition(PATH, "greaterThan", value="x"),
    condition(PATH, "greaterThanOrEqual", value="x"),
    condition(PATH, "lessThan", value="x"),
    condition(PATH, "lessThanOrEqual", value="x"),
    condition(PATH, "between", min="a", max="b"),
    condition(PATH, "matches", value="^[0-9]+$"),
    {"not": condition(PATH, "equals", value="x")},
    condition(PATH, "equals", value="2025-01-15T10:00:00Z", valueType="timestamp"),
    condition("created_date", "lessThan", value="2025-01-15T10:00:00Z", valueType="timestamp"),
    {"any": [condition(COLUMN, "isNull"), {"all": [condition(PATH, "isNull")]}]},
]


@pytest.mark.parametrize("one", SAME, ids=str)
def test_what_flink_judges_alike_may_be_deployed_there(one: dict[str, Any]) -> None:
    assert flink_faults(parse_filter(filter_document(conditions=[one]))) == ()


@pytest.mark.parametrize("one", OTHER, ids=str)
def test_what_flink_judges_otherwise_is_refused_there_with_its_place(one: dict[str, Any]) -> None:
    (fault,) = flink_faults(parse_filter(filter_document(conditions=[one])))
    assert fault.field.startswith("/conditions/0")
    assert "Flink" in fault.what


def test_a_filter_that_means_something_else_at_a_target_runs_only_elsewhere(
    harness: ControlPlaneHarness,
) -> None:
    text = filter_document(conditions=[condition(PATH, "isNull")])
    record = harness.service.create(ANN, text)
    found = harness.service.validate("one")
    assert found.valid
    assert any(TOPIC_TARGET in words and "object or a list" in words for words in found.warnings)
    assert not harness.service.generate("one", TOPIC_TARGET).valid
    harness.service.approve(BOB, "one", record.revision)
    with pytest.raises(ConflictError, match="would mean something else at by-topic"):
        harness.service.deploy(ANN, "one", TOPIC_TARGET)
    assert harness.service.deploy(ANN, "one", ENGINE).target == ENGINE


def test_what_runs_at_a_target_is_not_replaced_by_what_cannot_run_there(
    harness: ControlPlaneHarness,
) -> None:
    record = harness.service.create(ANN, filter_document())
    harness.service.approve(BOB, "one", record.revision)
    harness.service.deploy(ANN, "one", TOPIC_TARGET)
    harness.reconciler = type(harness.reconciler)(harness.store, None, harness.service.targets)
    harness.reconciler.step()
    harness.reconciler.step()
    assert harness.service.get("one").status is Status.DEPLOYED
    changed = harness.service.update(
        ANN, "one", filter_document(conditions=[condition(PATH, "isNull")])
    )
    with pytest.raises(ConflictError, match="would mean something else at by-topic"):
        harness.service.approve(BOB, "one", changed.revision)


def test_an_approval_is_of_the_text_that_the_target_is_sent(
    harness: ControlPlaneHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = harness.service.create(ANN, filter_document())
    harness.service.approve(BOB, "one", record.revision)
    plain = flink.flink_statements
    monkeypatch.setattr(
        revisions, "flink_statements", lambda declared: (*plain(declared)[:1], "INSERT other")
    )
    with pytest.raises(ConflictError, match="no approval that holds for by-topic"):
        harness.service.deploy(ANN, "one", TOPIC_TARGET)
    assert harness.service.deploy(ANN, "one", ENGINE).version == 1


def test_an_approval_holds_for_no_target_that_came_later(harness: ControlPlaneHarness) -> None:
    record = harness.service.create(ANN, filter_document())
    both = harness.service.targets
    harness.service.targets = {ENGINE: both[ENGINE]}
    harness.service.approve(BOB, "one", record.revision)
    harness.service.targets = both
    with pytest.raises(ConflictError, match="no approval that holds for by-topic"):
        harness.service.deploy(ANN, "one", TOPIC_TARGET)


def test_what_is_shown_is_what_the_target_is_sent(harness: ControlPlaneHarness) -> None:
    harness.service.create(ANN, filter_document())
    declared = parse_filter(filter_document())
    assert harness.service.generate("one", TOPIC_TARGET).sql == flink_sql(declared)
    assert harness.service.generate("one").sql == compile_filter(declared).sql


def test_sql_that_is_held_against_a_filter_may_be_any_that_a_target_runs(
    harness: ControlPlaneHarness,
) -> None:
    harness.service.create(ANN, filter_document())
    compiled = compile_filter(parse_filter(filter_document()))
    file = alone_sql(compiled).replace("${BOOTSTRAP_SERVERS}", "broker-1:9092,broker-2:9092")
    for sql in (compiled.sql, file, flink_sql(parse_filter(filter_document()))):
        assert harness.service.validate("one", sql).valid
    for sql in (
        file.replace("DEALER-001", "DEALER-002"),
        f"{file}\nDROP TABLE x;",
        alone_sql(compiled).replace("${BOOTSTRAP_SERVERS}", "x' ; DROP TABLE x; --\n"),
        replace(compiled, sql="SELECT 1").sql,
    ):
        assert not harness.service.validate("one", sql).valid
