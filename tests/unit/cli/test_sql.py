"""Which statements of a file are asked for their rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.cli.engine import TITLE, is_query, title
from headgate.config.settings import Settings
from headgate.core.engine import connect as connect_module
from headgate.core.engine.connect import connect
from headgate.errors import UnavailableError


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
