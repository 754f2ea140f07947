"""Which statements of a file are asked for their rows."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.errors import PySparkException

from headgate.cli.sql import TITLE, _run, is_query, title
from headgate.compile.script import parse_script
from headgate.engine import connect as connect_module
from headgate.engine.connect import connect
from headgate.errors import OperationError, UnavailableError
from headgate.settings import Settings

GONE = "<_MultiThreadedRendezvous of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE"


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1",
        "select *\nfrom x",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "(SELECT 1) UNION ALL (SELECT 2)",
        "SHOW VIEWS",
        "DESCRIBE TABLE x",
        "VALUES (1)",
        "CALL lake.system.ancestors_of('x')",
    ],
)
def test_what_is_asked_for_its_rows_is_a_query(statement: str) -> None:
    assert is_query(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO x SELECT 1",
        "CREATE OR REPLACE TEMPORARY VIEW x AS SELECT 1",
        "DECLARE OR REPLACE VARIABLE batch_time TIMESTAMP",
        "SET VAR x = 1",
        "DROP VIEW x",
        "  ",
    ],
)
def test_what_is_done_for_its_effect_prints_nothing(statement: str) -> None:
    assert not is_query(statement)


def test_a_statement_is_told_in_one_line_of_bounded_length() -> None:
    assert title("SELECT  a,\n   b\nFROM x") == "SELECT a, b FROM x"
    assert len(title("SELECT " + "x, " * 200)) == TITLE


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
    monkeypatch.setattr(connect_module, "SparkSession", SimpleNamespace(builder=builder))
    monkeypatch.setattr(
        connect_module.socket,
        "create_connection",
        lambda *_, **__: SimpleNamespace(close=lambda: None),
    )
    (step,) = parse_script("statement", "SELECT 1").steps
    with connect(settings) as session:
        _run(cast("Any", session), "statement", step, 10)


def test_an_engine_whose_port_is_closed_is_told_at_once(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(connect_module.socket, "create_connection", refuse)
    nobody = pytest.raises(UnavailableError, match="the engine does not answer")
    with nobody as caught, connect(settings):
        pytest.fail("nobody is there")
    assert "sc://localhost:15002" in caught.value.why
    assert "make up" in caught.value.fix


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
