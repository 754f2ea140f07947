"""A SQL file is cut into steps where its statements end, and nowhere else."""

from __future__ import annotations

import pytest

from headgate.core.sql.script import parse_script
from headgate.errors import DeclarationError


def steps(text: str) -> list[tuple[str, str, int]]:
    return [(step.name, step.sql, step.line) for step in parse_script("f.sql", text).steps]


def test_a_statement_belongs_to_the_mark_above_it() -> None:
    text = "-- step: table\nA;\n\nB;\n-- words\n-- step: view\nC\n"
    assert steps(text) == [("table", "A", 2), ("table", "B", 4), ("view", "C", 7)]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT ';'",
        r"SELECT 'it\'s; fine'",
        'SELECT ";"',
        "SELECT `a;``b;`",
        "SELECT 1 -- not; the end\n + 2",
        "SELECT /* no; end */ 1",
        "SELECT 'two\nlines;\n-- step: other\n'",
        r"SELECT r'\\;'",
    ],
)
def test_a_semicolon_inside_quotes_or_comments_ends_nothing(statement: str) -> None:
    found = parse_script("f.sql", f"-- step: view\n{statement};\nSELECT 2").steps
    assert [step.sql for step in found] == [statement, "SELECT 2"]


def test_comments_between_statements_are_no_statements() -> None:
    assert [sql for _, sql, _ in steps("-- a\nA;\n-- b\n\n-- c\n")] == ["A"]


def test_a_step_that_is_missing_or_there_twice_is_refused_by_name() -> None:
    script = parse_script("f.sql", "-- step: accept\nA;\nB;")
    with pytest.raises(DeclarationError, match="one fault") as twice:
        script.one("accept")
    assert "has 2 steps `accept`" in twice.value.why
    with pytest.raises(DeclarationError) as missing:
        script.one("refuse")
    assert "has no step `refuse`" in missing.value.why
