"""Long lines of SQL are broken without a change of its meaning."""

from __future__ import annotations

import re
from random import Random

import pytest
from tests.support.hostile_texts import hostile_texts

from headgate.conditions.literals import spark_literal
from headgate.core.sql.fragments import LONGEST_LINE, fold_lines, split_literals

SEED = 23
WORDS = "AND ".join(f"column_{n} = 'a -- b `' " for n in range(12))


def test_a_long_line_is_broken_at_blanks_and_its_rest_indented() -> None:
    folded = fold_lines(f"SELECT *\n  {WORDS}AS whole,\n  b").split("\n")
    assert max(map(len, folded)) <= LONGEST_LINE
    assert (folded[0], folded[-1]) == ("SELECT *", "  b")
    assert [line.count("'") % 2 for line in folded] == [0] * len(folded)
    assert all(re.match(r" {6}\S", line) for line in folded[2:-1])
    assert " ".join(line.strip() for line in folded[1:-1]) == f"{WORDS}AS whole,"


@pytest.mark.parametrize("quoted", ["'{}'", "`{}`", "-- {}"])
def test_quoted_text_and_comments_are_not_broken(quoted: str) -> None:
    line = quoted.format("a word " * 30)
    assert fold_lines(line) == line


def test_a_literal_over_several_lines_stays_as_it_is() -> None:
    schema = "'" + ",\n ".join(f"column_{n} STRING" for n in range(20)) + "'"
    assert fold_lines(f"strict_json(value, {schema})") == f"strict_json(value, {schema})"


def test_the_parts_of_a_long_literal_are_the_literal() -> None:
    texts = hostile_texts(Random(SEED), 300)
    for text in [*texts, *(other * 40 for other in texts), "", "word " * 50, "x" * 300]:
        literal = spark_literal(text)
        parts = re.findall(r"'((?:\\.|[^'\\])*)'(?: |$)", split_literals(literal))
        assert "".join(parts) == literal[1:-1]
        assert max(map(len, parts)) <= LONGEST_LINE - 40
        escape = re.compile(r"(?:\\u[0-9A-F]{4}|\\U[0-9A-F]{8}|\\[^uU]|[^\\])*")
        assert all(escape.fullmatch(part) for part in parts)


def test_a_name_in_backticks_is_no_literal() -> None:
    name = "`" + "it's " * 50 + "`"
    assert split_literals(f"{name} = 'a'") == f"{name} = 'a'"
