"""What a statement says that fails on PySpark's client: its own fault, or an engine that is gone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.errors import PySparkException

from headgate.cli.engine import _run
from headgate.config.settings import Settings
from headgate.core.engine import connect as connect_module
from headgate.core.engine.connect import connect
from headgate.core.sql.script import parse_script
from headgate.errors import OperationError, UnavailableError

GONE = "<_MultiThreadedRendezvous of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        root=tmp_path, home=tmp_path, connect_url="sc://localhost:15002", connect_token="t"
    )


class Client:
    """A session of Spark Connect whose every statement fails with these words."""

    def __init__(self, words: str) -> None:
        self._words = words
        self.client = SimpleNamespace(set_retry_policies=self.note_policies)
        self.tries: list[int | None] = []

    def note_policies(self, policies: list[Any]) -> None:
        self.tries = [policy.max_retries for policy in policies]

    def sql(self, statement: str) -> object:
        raise PySparkException(self._words)

    def stop(self) -> None:
        raise PySparkException(GONE)


def ask(settings: Settings, monkeypatch: pytest.MonkeyPatch, client: Client) -> None:
    """`headgate sql "SELECT 1"` with this client in the place of PySpark's."""
    builder = SimpleNamespace(remote=lambda url: SimpleNamespace(create=lambda: client))
    monkeypatch.setattr("pyspark.sql.SparkSession", SimpleNamespace(builder=builder))
    monkeypatch.setattr(
        connect_module.socket,
        "create_connection",
        lambda *_, **__: SimpleNamespace(close=lambda: None),
    )
    (step,) = parse_script("statement", "SELECT 1").steps
    with connect(settings) as session:
        _run(cast("Any", session), "statement", step, 10)


def test_an_engine_that_goes_away_is_no_fault_of_the_statement(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(GONE)
    with pytest.raises(UnavailableError, match="the engine does not answer"):
        ask(settings, monkeypatch, client)
    assert client.tries == [connect_module.TRIES], "PySpark's own take ten minutes"


def test_a_wrong_statement_is_told_as_one(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(OperationError, match="SELECT 1") as caught:
        ask(settings, monkeypatch, Client("[PARSE_SYNTAX_ERROR] no"))
    assert "correct the statement" in caught.value.fix
