"""The width of windows stays, once some are counted: two widths would be added up as one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.config.settings import Settings
from headgate.core.engine.submit import ask_for
from headgate.core.ledger.model import (
    Intent,
    Judged,
    LedgerRow,
    RunState,
    TouchedWindow,
)
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.ranges import TopicRange
from headgate.core.ledger.windows import JudgedRows
from headgate.errors import ConflictError
from headgate.quality.deploy import plan_deployment

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
JOB = "quality-one"
RULES = """
version: 2
metrics: {window: %s}
tables:
  - name: one
    pk: id
    sources:
      onprem: {%s: some.source, table: one_events, columns: {id: STRING, amount: DOUBLE}}
    rules:
      - {name: negative, when: "amount < 0"}
"""


def declare(root: Path, window: str, source: str = "topic") -> Settings:
    (root / "rules").mkdir(exist_ok=True)
    (root / "rules" / "one.yml").write_text(RULES % (window, source))
    return Settings(root=root, home=root, bootstrap_servers="nowhere:1")


def count_a_window(store: OpsStore) -> None:
    range_ = TopicRange("some.source", "t1", {"0": 0}, {"0": 1})
    intent = store.begin(Intent(None, JOB, 1, range_, ("r1",), NOON, 0))
    row = LedgerRow(None, JOB, 1, range_, ("r1",), NOON, 0, 1, 1, 0, {"accepted": 1}, {}, NOON)
    store.settle(intent, row, (JudgedRows(Judged((), (TouchedWindow(NOON, NOON),))),))


def run_once(settings: Settings, store: OpsStore) -> None:
    run = ask_for(settings, store, JOB, "batch")
    store.claim(run.job, run.number, "this test")
    count_a_window(store)
    store.move(run.job, run.number, RunState.FINISHED)


def test_another_width_is_refused_in_words_once_windows_are_counted(
    store: OpsStore, tmp_path: Path
) -> None:
    settings = declare(tmp_path, "10 SECONDS")
    run_once(settings, store)
    declare(tmp_path, "1 MINUTE")
    with pytest.raises(ConflictError, match="windows of 0:00:10") as refused:
        plan_deployment(settings, store, "one")
    assert "another name" in refused.value.fix
    with pytest.raises(ConflictError, match="cannot go on with 0:01:00"):
        ask_for(settings, store, JOB, "streaming")
    declare(tmp_path, "10 SECONDS")
    assert ask_for(settings, store, JOB, "streaming").number == 2


def test_before_the_first_window_any_width_will_do(store: OpsStore, tmp_path: Path) -> None:
    settings = declare(tmp_path, "10 SECONDS")
    run = ask_for(settings, store, JOB, "batch")
    store.move(run.job, run.number, RunState.CANCELED)
    declare(tmp_path, "1 MINUTE")
    assert plan_deployment(settings, store, "one").is_new
    assert ask_for(settings, store, JOB, "batch").number == 2


def test_evaluations_of_snapshots_may_change_their_width(store: OpsStore, tmp_path: Path) -> None:
    settings = declare(tmp_path, "10 SECONDS", "iceberg")
    run_once(settings, store)
    declare(tmp_path, "1 MINUTE", "iceberg")
    assert plan_deployment(settings, store, "one").is_new
