from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.random_expressions import COLUMNS, HOSTILE_TEXTS, KINDS, random_expr

from headgate.conditions.ast import BatchTime, Compare, Literal, columns_of
from headgate.conditions.ast import Column as Of
from headgate.conditions.describe import describe_condition
from headgate.conditions.parser import parse_condition
from headgate.conditions.spark_sql import BATCH_TIME
from headgate.declarations.types import (
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    SqlType,
)

TYPES: dict[str, SqlType] = {
    "fare": DOUBLE,
    "tip": DOUBLE,
    "seats": INT,
    "status": STRING,
    "mail": STRING,
    "begun": TIMESTAMP,
    "ended": TIMESTAMP,
    "day": DATE,
}


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("fare < 0 OR fare IS NULL", "fare is below 0, or is missing"),
        ("fare < 0 OR tip IS NULL", "fare is below 0, or tip is missing"),
        ("NOT (fare >= 0 AND fare <= 10)", "fare is below 0, or is above 10"),
        ("fare NOT BETWEEN 0 AND 10", "fare is not between 0 and 10"),
        ("status = 'DELETE'", "status is 'DELETE'"),
        ("status <> 'DELETE'", "status is not 'DELETE'"),
        ("status IS NOT NULL", "status is present"),
        ("status NOT IN ('a', 'b', 'c')", "status is not one of 'a', 'b' or 'c'"),
        ("mail NOT LIKE '%@%'", "mail does not contain '@'"),
        ("mail LIKE 'a%'", "mail begins with 'a'"),
        ("mail LIKE 'a_%'", "mail has the form 'a_%'"),
        ("NOT regexp_like(mail, '^[a-z]+$')", "mail does not match '^[a-z]+$'"),
        ("ended < begun", "ended is before begun"),
        ("fare + tip > 2 * fare", "fare plus tip is above 2 times fare"),
        ("length(status) <> 64", "the length of status is not 64"),
        ("try_cast(status AS INT) IS NULL", "status is missing or not a whole number"),
        ("CAST(begun AS DATE) <> day", "the date of begun differs from day"),
        (
            "seats = 0 AND (fare > 1 OR tip > 1)",
            "seats is 0, and (fare is above 1, or tip is above 1)",
        ),
        ("seats % 2 = 1", "the remainder of seats divided by 2 is 1"),
        ("NOT startswith(mail, 'x')", "mail does not begin with 'x'"),
        ("status >= 'm'", "status is at least 'm' in the order of text"),
        ("fare > 123456789.25e0", "fare is above 123456789.25"),
        ("fare > 1e9", "fare is above 1000000000"),
        (r"status = 'a\', or mail is \'b'", "status is 'a'', or mail is ''b'"),
        (
            "try_cast(status AS TIMESTAMP) < begun",
            "status read as a time is before begun",
        ),
        ("try_cast(status AS TIMESTAMP) IS NULL", "status is missing or not a time"),
        (
            "CASE WHEN seats = 1 THEN fare ELSE tip END > 5",
            "(fare where seats is 1, else tip) is above 5",
        ),
    ],
)
def test_a_condition_reads_as_a_person_would_say_it(condition: str, words: str) -> None:
    assert describe_condition(parse_condition(condition, TYPES)) == words


def test_the_clock_of_a_rule_is_the_time_of_its_batch() -> None:
    tree = Compare("<", BatchTime(), Of("sent", TIMESTAMP_LTZ))
    assert describe_condition(tree) == "the time of the batch is before sent"


def test_a_length_of_time_is_told_in_its_largest_unit() -> None:
    tree = parse_condition("seconds_between(ended, begun) > 86400", TYPES)
    assert describe_condition(tree) == "the time from begun to ended is above 1 day"
    late = parse_condition(f"seconds_between({BATCH_TIME}, ended) > 90", TYPES, batch_time=True)
    assert (
        describe_condition(late)
        == "the time from ended to the time of the batch is above 90 seconds"
    )


def test_columns_of_two_sources_are_told_apart() -> None:
    tree = parse_condition(
        "t1.hash <> t2.hash", {"t1.hash": STRING, "t2.hash": STRING}, sources=("t1", "t2")
    )
    assert describe_condition(tree) == "t1.hash differs from t2.hash"


def test_a_long_list_is_cut_and_counted() -> None:
    many = ", ".join(f"'{n}'" for n in range(400))
    words = describe_condition(parse_condition(f"status IN ({many})", TYPES))
    assert words.startswith("status is one of '0', '1', ")
    assert words.endswith(" and 392 more")


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_no_constant_can_break_the_line_or_hide(text: str) -> None:
    words = describe_condition(Compare("=", Of("s", STRING), Literal(text, STRING)))
    assert words.isprintable()


@settings(max_examples=60, deadline=None, database=None)
@given(seed=st.integers(0, 2**32), kind=st.sampled_from(KINDS))
def test_everything_the_language_can_say_has_words_that_name_its_columns(
    seed: int, kind: SqlType
) -> None:
    tree = random_expr(Random(seed), kind, depth=4)
    words = describe_condition(tree)
    assert words.isprintable()
    assert all(name in words for name in columns_of(tree)), (words, columns_of(tree))
    assert set(columns_of(tree)) <= set(COLUMNS)
