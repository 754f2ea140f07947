"""`headgate metrics`: names, values, windows and what waits, from the store alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.support.metric_windows import JOB, NOW, SHAPE, event_time, settle_batch

from headgate.cli.main import cli
from headgate.core.ledger.model import RuleCount
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.metrics.windows import Emitter, WindowSums
from headgate.errors import UsageError

Run = Callable[..., Result]


@pytest.fixture
def run(store: OpsStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command on a store with one closed window of ten rows, three of them wrong."""
    monkeypatch.setenv("HEADGATE_HOME", str(tmp_path))
    counts = (RuleCount("amount", "negative", "ERROR", 3, 5),)
    sums = WindowSums(10, {"negative": 3}, {"ERROR": 3}, (), "r1")
    store.register_sink("http")
    settle_batch(store, 0, {0: event_time(0), 20: event_time(20)}, counts, rows=10)
    Emitter(store, SHAPE, lambda s: dict.fromkeys(s, sums), lambda: NOW).close_due()
    return lambda *words: CliRunner().invoke(cli, ["-o", "json", "metrics", *words])


def items(result: Result) -> list[dict[str, Any]]:
    assert result.exception is None, result.output
    return json.loads(result.stdout)["items"]


def test_every_name_is_listed(run: Run) -> None:
    found = {row["name"]: row for row in items(run("list"))}
    assert found["dq_error_total"]["labels"] == "env dc table topic"


def test_a_tables_rules_are_listed_with_their_three_names(run: Run) -> None:
    found = {row["rule"]: row for row in items(run("list", "--table", "customer"))}
    assert found["hash_mismatch"] == {
        "rule": "hash_mismatch",
        "severity": "ERROR",
        "dotted": "dq.cassandra.hash_mismatch",
        "flat": "dq_hash_mismatch",
        "prometheus": "dq_hash_mismatch_total",
    }


def test_the_counters_of_a_pair_are_listed(run: Run) -> None:
    named = ("hash_match", "hash_mismatch", "missing_cloud", "missing_onprem", "invalid_hash")
    counted = ("delete_count", "duplicates", "late_arrival", "missing_pk")
    every = {row["name"] for row in items(run("list"))}
    table = {row["flat"] for row in items(run("list", "--table", "business"))}
    assert {f"dq_{name}_total" for name in (*named, *counted)} <= every
    assert {f"dq_{name}" for name in (*named, *counted)} <= table


def test_values_are_shown_without_an_engine(run: Run) -> None:
    found = {row["name"]: row["value"] for row in items(run("show", "dq_"))}
    assert found["dq_rows_total"] == 10
    assert found["dq_negative_total"] == 3
    assert all(name.startswith("dq_") for name in found)


def test_values_are_shown_as_prometheus_reads_them(run: Run) -> None:
    result = CliRunner().invoke(cli, ["metrics", "show", "dq_clean", "--prometheus"])
    assert result.stdout.splitlines()[-1] == (
        'dq_clean_total{env="prod",dc="onprem",table="orders_onprem",topic="orders.events"} 7'
    )


def test_windows_are_shown_with_their_state(run: Run) -> None:
    closed, still_open = items(run("windows", JOB))
    assert (closed["state"], closed["rows"], closed["error"], closed["sent"]) == (
        "closed",
        10,
        3,
        "",
    )
    assert (still_open["state"], still_open["rows"]) == ("open", None)


def test_what_waits_is_said_and_stays(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METRICS_PUSH_URL", "http://127.0.0.1:9/")
    for _ in range(2):
        (waits,) = items(run("send", "--dry-run", "--sink", "http"))
        assert (waits["sink"], waits["waiting"]) == ("http", 1)


def test_a_sink_that_is_not_set_up_is_refused(run: Run) -> None:
    error = run("send", "--sink", "dogstatsd").exception
    assert isinstance(error, UsageError)
    assert "DOGSTATSD_ADDRESS" in error.fix
