"""A dbt run is judged by what it did, and success over nothing is no success."""

from __future__ import annotations

import pytest

from headgate.errors import DifferenceError, OperationError
from headgate.pipeline.cli.dbt import as_text, reasons, tell
from headgate.pipeline.dbt.models import DbtReport, Manifest, RunResults, make_report

MANIFEST = Manifest.model_validate(
    {
        "nodes": {
            "model.p.facts": {
                "name": "facts",
                "resource_type": "model",
                "relation_name": '"marts"."core"."facts"',
            },
            "model.p.view": {
                "name": "view",
                "resource_type": "model",
                "relation_name": '"marts"."staging"."view"',
            },
            "test.p.unique": {
                "name": "unique",
                "resource_type": "test",
                "depends_on": {"nodes": ["model.p.facts"]},
            },
        }
    }
)


def report(
    command: str = "build", rows: int = 5, facts: str = "success", unique: str | None = "pass"
) -> DbtReport:
    results: list[dict[str, object]] = []
    if command == "build":
        results = [{"unique_id": "model.p.facts", "status": facts, "execution_time": 0.5}]
    if unique:
        results.append({"unique_id": "test.p.unique", "status": unique, "failures": 3})
    run = RunResults.model_validate({"results": results, "elapsed_time": 1.5})
    return make_report(command, run, MANIFEST, lambda _: rows)


def test_a_good_build_names_rows_and_verdicts() -> None:
    good = report()
    assert good.ok
    assert (good.passed, good.warned, good.failed) == (1, 0, 0)
    assert good.rows("facts") == 5
    assert good.models[0].schema == "core"
    assert "facts" in as_text(good)


def test_a_test_run_counts_the_rows_of_what_it_tested() -> None:
    tested = report("test")
    assert [(model.name, model.rows) for model in tested.models] == [("facts", 5)]


def test_an_empty_tested_model_is_a_failure() -> None:
    empty = report(rows=0)
    assert not empty.ok
    assert empty.empty == ("facts",)
    assert reasons(empty) == ["facts is tested but empty"]


def test_a_test_run_without_tests_is_a_failure() -> None:
    assert not report("test", unique=None).ok


@pytest.mark.parametrize("status", ["fail", "error", "skipped"])
def test_a_test_that_does_not_pass_is_a_difference(status: str) -> None:
    bad = report(unique=status)
    assert not bad.ok
    with pytest.raises(DifferenceError, match="difference"):
        tell(bad)


def test_a_warning_does_not_fail() -> None:
    warned = report(unique="warn")
    assert warned.ok
    assert warned.warned == 1


def test_a_model_that_cannot_be_built_is_a_failed_operation() -> None:
    broken = report(facts="error", unique="skipped")
    assert broken.rows("facts") is None
    with pytest.raises(OperationError, match="could not build 1 model"):
        tell(broken)
