"""What the condition language admits, how it is rendered, and what it refuses with which words."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.random_expressions import COLUMNS

from headgate.conditions.ast import columns_of
from headgate.conditions.grammar import ExprError
from headgate.conditions.literals import spark_literal
from headgate.conditions.parser import parse_condition, parse_value
from headgate.conditions.spark_sql import to_spark
from headgate.conditions.type_coercion import FORMS
from headgate.declarations.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    decimal,
)
from headgate.pipeline.loader import load_dataset

ROOT = Path(__file__).parents[3]


def formed_text(kind: str) -> str:
    return f"CASE WHEN regexp_like(s, {spark_literal(FORMS[kind].pattern)}) THEN s END"


ADMITTED = {
    "i = 1": "i = 1",
    "i != 1": "i <> 1",
    "i == 1 and (n = 2 or flag)": "i = 1 AND (n = 2 OR flag)",
    "(i = 1 and n = 2) or flag": "i = 1 AND n = 2 OR flag",
    "not (flag and i = 1)": "NOT (flag AND i = 1)",
    "not flag": "NOT flag",
    "flag is true": "flag <=> TRUE",
    "i is distinct from n": "NOT (i <=> n)",
    "i is not null": "i IS NOT NULL",
    "s not in ('a', \"b\")": "s NOT IN ('a', 'b')",
    "d not between 1 and 2.5": "d NOT BETWEEN 1 AND 2.5",
    "s not like '50\\\\%'": "s NOT LIKE '50\\\\%'",
    "s like '%a%' and s like 'a%b%' and s like '%%a_'": (
        "s LIKE '%a%' AND s LIKE 'a%b%' AND s LIKE '%%a_'"
    ),
    "i + 1 > j * 2": "try_add(i, 1) > try_multiply(j, 2)",
    "d + e * 2 - 1 > 0": "d + e * 2 - 1 > 0",
    "d - (e - 1) > 0": "d - (e - 1) > 0",
    "(d + e) * 2 > 0": "(d + e) * 2 > 0",
    "d / e > 0.2": "try_divide(d, e) > 0.2",
    "m / i > 1": "try_divide(CAST(m AS DOUBLE), i) > 1",
    "m * 2 > 1.5": "m * 2BD > 1.5",
    "i % 2 = 0": "try_mod(i, 2) = 0",
    "-i < -5": "try_subtract(0, i) < -5",
    "f > 1": "CAST(f AS DOUBLE) > 1",
    "abs(d) > 1": "abs(d) > 1",
    "abs(i) > 1": "CASE WHEN i < 0 THEN try_subtract(0, i) ELSE i END > 1",
    "if(flag, i, n) = 1": "CASE WHEN flag THEN i ELSE n END = 1",
    "case s when 'a' then 1 else 2 end = 1": "CASE WHEN s = 'a' THEN 1 ELSE 2 END = 1",
    "nvl(s, 'x') = 'x'": "coalesce(s, 'x') = 'x'",
    "lower(upper(lower(s))) = 'a'": "lower(s) = 'a'",
    "s || t = 'ab'": "concat(s, t) = 'ab'",
    "CAST(ts AS DATE) < DATE '2024-02-01'": "CAST(ts AS DATE) < DATE '2024-02-01'",
    "cast(s as int) = 1": "try_cast(s AS INT) = 1",
    "cast(n as int) = 1": "try_cast(n AS INT) = 1",
    "cast(p as int) = 1": "try_cast(try_cast(p AS BIGINT) AS INT) = 1",
    "cast(i as bigint) = 1": "CAST(i AS BIGINT) = 1",
    "s::date = '2024-01-31'": "try_cast(s AS DATE) = DATE '2024-01-31'",
    "cast(s as timestamp) = ts": f"try_cast({formed_text('TIMESTAMP')} AS TIMESTAMP_NTZ) = ts",
    "cast(s as decimal(9, 2)) = m": f"try_cast({formed_text('DECIMAL')} AS DECIMAL(9, 2)) = m",
    "ts >= '2024-01-01'": "ts >= TIMESTAMP_NTZ '2024-01-01 00:00:00'",
    "ts >= DATE '2024-01-01'": "ts >= TIMESTAMP_NTZ '2024-01-01 00:00:00'",
    "tz < '2024-01-01T10:00:00+02:00'": "tz < TIMESTAMP_LTZ '2024-01-01 08:00:00Z'",
    "tz < '2024-01-01'": "tz < TIMESTAMP_LTZ '2024-01-01 00:00:00Z'",
    "'2024-01-31' in ('2024-01-31')": "'2024-01-31' IN ('2024-01-31')",
    "day in ('2024-01-31')": "day IN (DATE '2024-01-31')",
    "`Mixed Case` = 'x' or `date` < '2024-01-01'": (
        "`Mixed Case` = 'x' OR `date` < DATE '2024-01-01'"
    ),
    "s = 'a\\'b\\\\c\\u0041'": "s = 'a\\'b\\\\cA'",
    f"w = -{'9' * 36}.99": f"w = -{'9' * 36}.99",
    "n > 3000000000": "n > 3000000000L",
    "(i is null) = flag": "(i IS NULL) = flag",
}

REFUSED = {
    "I = 1": "Did you mean `i`?",
    "nope = 1": "Known columns",
    "i": "not a condition",
    "i = '5'": "without quotes: 5",
    "i = 'x'": "Write a number",
    "s = 5": "in quotes: '5'",
    "s > i": "try_cast(s AS INT)",
    "flag = 1": "TRUE or FALSE",
    "flag < true": "no order",
    "day = ts": "CAST(ts AS DATE)",
    "ts = tz": "same type",
    "day < '2024-13-01'": "not a date",
    "day < 'today'": "not a date",
    "ts < 'now'": "not a time",
    "ts > '2024-01-01 10:00:00Z'": "time zone",
    "i = NULL": "IS NULL",
    "i in (1, null)": "NULL",
    "i in (n)": "constants only",
    "w = 0.0001": "40 digits",
    "w + 1 > 0": "39 digits",
    "w % p > 0": "48 digits",
    "abs(w) > 0": "at most 34 digits",
    "d + s > 0": "needs numbers",
    "s + t = 'x'": "concat",
    "s like t": "not a constant",
    "s like 'a\\\\b'": "backslash",
    "s like '%a%b'": "every pair",
    "s like 'a%b%c'": "every pair",
    "replace(s, 'a', 'bb') = s": "longer",
    "replace(s, '', 'b') = s": "not empty",
    "regexp_extract(s, 'a') = 'b'": "regular expression",
    "s rlike '(?=a)b'": "looks ahead",
    "s rlike s": "not a constant",
    "s ilike 'a'": "lower",
    "s like 'a' escape '!'": "ESCAPE",
    "cast(d as decimal(16, 2)) = m": "at most 15 digits",
    "cast(d as string) = 'x'": "DECIMAL first",
    "cast(day as timestamp) = ts": "Compare dates",
    "cast(i as date) = day": "cannot be cast",
    "cast(s as array<int>) is null": "not a type",
    "substring(s, i, 1) = 'a'": "whole number written out",
    "lower(i) = 'a'": "must be text",
    "lower(s, t) = 'a'": "It takes 1",
    "lowr(s) = 'a'": "Did you mean `lower`?",
    "reflect('java.lang.Runtime', 'getRuntime') = 'x'": "arbitrary code",
    "java_method('a', 'b') = 'x'": "arbitrary code",
    "my_udf(i) = 1": "not part of the condition language",
    "`reflect`('a') = 'b'": "not part of the condition language",
    "a.reflect('a') = 'b'": "not part of the condition language",
    "now() > tz": "replay",
    "current_timestamp > tz": "replay",
    "current_date() > day": "replay",
    "unix_timestamp() > n": "It takes 1",
    "unix_timestamp(s) > n": "must be a time",
    "cast(tz as timestamp) = ts": "cannot be cast",
    "rand() < 0.5": "every call",
    "uuid() = 'x'": "every call",
    "count(*) > 1": "one row",
    "sum(i) over (partition by s) > 1": "one row",
    "max(i) > 1": "one row",
    "i = (select 1)": "subquery",
    "i in (select 1)": "subquery",
    "exists (select 1)": "subquery",
    "exists(s, x -> x = 1)": "",
    "transform(s, x -> x) is null": "not part of",
    "i = ?": "parameter",
    "i = :x": "parameter",
    "i = ${x}": "",
    "{t1}.i = 1": "path",
    "t1.i = 1": "Write the column alone: i.",
    "s[0] = 'a'": "index",
    "i & 1 = 1": "not part of",
    "i div 2 = 1": "DIV",
    "(i, n) = (1, 2)": "tuple",
    "day + interval 1 day > day": "interval",
    "i = 1 -- rest": "comment",
    "i /*+ BROADCAST(x) */ = 1": "comment",
    "i = 1 /* c */": "comment",
    "i = 1;": "semicolon",
    "i = 1; drop table x": "semicolon",
    "i = 1 as x": "alias",
    "i = 1 x": "alias",
    "i =": "something is missing",
    "i = 1)": "cannot be read",
    "(i = 1": "cannot be read",
    "i = 'open": "cannot be read",
    "select 1": "subquery",
    "drop table x": "",
    "": "empty",
    "  ": "empty",
    "*": "`*`",
    "s = 'it''s'": "side by side",
    "s = 'a' 'b'": "side by side",
    "s = '\\x41'": "`\\x`",
    "s = '\\101'": "`\\1`",
    "s = r'a'": "raw text",
    "s = X'1F'": "hexadecimal",
    "s = 'a' collate UTF8_LCASE": "COLLATE",
    "i between symmetric 1 and 2": "not part of",
    "count(distinct i) > 1": "one row",
    "try_cast(s as int format 'x') = 1": "not part of",
    "d = 1e400": "too large",
    "i = 5F": "cannot be cast",
    "-flag = true": "needs numbers",
    "abs(" * 40 + "i" + ")" * 40 + " = 1": "too large",
    "(" * 300 + "flag" + ")" * 300: "too deeply",
}


@pytest.mark.parametrize("text", ADMITTED)
def test_a_condition_is_admitted_and_rendered(text: str) -> None:
    assert to_spark(parse_condition(text, COLUMNS)) == ADMITTED[text]


@pytest.mark.parametrize("text", REFUSED)
def test_anything_else_is_refused_with_words(text: str) -> None:
    with pytest.raises(ExprError) as caught:
        parse_condition(text, COLUMNS)
    assert REFUSED[text] in str(caught.value)
    assert all(fault.what and fault.fix for fault in caught.value.faults)


PAIR = {"t1.action": STRING, "t2.action": STRING, "t1.date": DATE, "t1.x.y": INT, "_extra": STRING}


@pytest.mark.parametrize(
    ("text", "rendered", "columns"),
    [
        ("t1.action = t2.action", "t1.action = t2.action", ("t1.action", "t2.action")),
        ("`t1`.`action` = 'a'", "t1.action = 'a'", ("t1.action",)),
        ("t1.date is null", "t1.`date` IS NULL", ("t1.date",)),
        ("t1.`x.y` = 1", "t1.`x.y` = 1", ("t1.x.y",)),
        ("_extra is null", "_extra IS NULL", ("_extra",)),
    ],
)
def test_with_two_sources_a_column_has_its_source_before_it(
    text: str, rendered: str, columns: tuple[str, ...]
) -> None:
    tree = parse_condition(text, PAIR, sources=("t1", "t2"))
    assert to_spark(tree) == rendered
    assert columns_of(tree) == columns
    assert parse_condition(rendered, PAIR, sources=("t1", "t2")) == tree


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("action = 'a'", "Write t1.action or t2.action."),
        ("`t1.action` = 'a'", "Write t1.action."),
        ("t2.actoin = 'a'", "Did you mean `t2.action`?"),
        ("t3.action = 'a'", "names a table"),
        ("x.t1.action = 'a'", "names a table"),
        ("T1.action = 'a'", "Did you mean `t1.action`?"),
        ("session.batch_time is null", "names a table"),
    ],
)
def test_a_column_of_no_known_source_is_refused(text: str, words: str) -> None:
    with pytest.raises(ExprError) as caught:
        parse_condition(text, PAIR, sources=("t1", "t2"))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("tz < session.batch_time", "tz < session.batch_time"),
        ("ts < session.batch_time", "ts < try_cast(session.batch_time AS TIMESTAMP_NTZ)"),
        ("day = date(session.batch_time)", "day = CAST(session.batch_time AS DATE)"),
        (
            "session.batch_time > '2024-01-01'",
            "session.batch_time > TIMESTAMP_LTZ '2024-01-01 00:00:00Z'",
        ),
        (
            "seconds_between(session.batch_time, ts) > 60",
            "try_subtract(unix_timestamp(session.batch_time), unix_timestamp(ts)) > 60",
        ),
    ],
)
def test_the_time_of_the_batch_stands_beside_dates_and_times(text: str, rendered: str) -> None:
    tree = parse_condition(text, COLUMNS, batch_time=True)
    assert to_spark(tree) == rendered
    assert parse_condition(rendered, COLUMNS, batch_time=True) == tree


def test_the_time_of_the_batch_is_unknown_unless_said_so_and_is_not_hidden() -> None:
    with pytest.raises(ExprError, match="names a table"):
        parse_condition("tz < session.batch_time", COLUMNS)
    with pytest.raises(ExprError, match="Write CAST"):
        parse_condition("day < session.batch_time", COLUMNS, batch_time=True)
    for hiding in ({"Session": STRING}, {"t1.session": STRING}):
        with pytest.raises(ExprError, match="hides"):
            parse_condition("session.batch_time is null", hiding, batch_time=True)


def test_a_dot_in_a_plain_name_is_no_source() -> None:
    columns = {"a.b": INT}
    assert to_spark(parse_condition("`a.b` = 1", columns)) == "`a.b` = 1"
    with pytest.raises(ExprError, match="names a table"):
        parse_condition("a.b = 1", columns)


def test_all_faults_of_a_text_come_at_once_with_their_places() -> None:
    text = "nope = 1 AND s = 5 AND now() > tz"
    with pytest.raises(ExprError) as caught:
        parse_condition(text, COLUMNS)
    assert [fault.position for fault in caught.value.faults] == [1, 14, 24]


def test_a_long_chain_is_flat() -> None:
    chain = " OR ".join(["i = 1"] * 200)
    assert to_spark(parse_condition(chain, COLUMNS)) == chain


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("i + j", INT),
        ("i + n", BIGINT),
        ("i / j", DOUBLE),
        ("m / m", DOUBLE),
        ("m + m", decimal(11, 2)),
        ("m * m", decimal(21, 4)),
        ("m % 3", decimal(3, 2)),
        ("m + i", decimal(13, 2)),
        ("floor(m)", decimal(9, 0)),
        ("round(p, 2)", decimal(11, 2)),
        ("round(m, 5)", decimal(11, 2)),
        ("floor(d)", BIGINT),
        ("coalesce(i, m)", decimal(12, 2)),
        ("length(s)", INT),
        ("date_add(ts, 1)", DATE),
        ("greatest(ts, '2024-01-01')", TIMESTAMP),
        ("s = t", BOOLEAN),
        ("trim(s)", STRING),
    ],
)
def test_a_value_has_the_type_that_spark_gives_it(text: str, kind: object) -> None:
    assert parse_value(text, COLUMNS).type == kind


def test_a_value_can_be_held_to_a_type() -> None:
    assert parse_value("CAST(ts AS DATE)", COLUMNS, DATE).type == DATE
    with pytest.raises(ExprError, match="this is TIMESTAMP"):
        parse_value("ts", COLUMNS, DATE)


def test_the_columns_are_found() -> None:
    tree = parse_condition("s = 'i' AND CASE WHEN flag THEN d ELSE e END > d", COLUMNS)
    assert columns_of(tree) == ("s", "flag", "d", "e")


@pytest.mark.parametrize("path", sorted(ROOT.glob("datasets/*/dataset.yml")), ids=str)
def test_every_filter_of_a_shipped_dataset_is_admitted_as_written(path: Path) -> None:
    dataset = load_dataset(path, {"TOPIC": "a", "DLQ_TOPIC": "b"}).value
    for text in dataset.quality_filters:
        assert to_spark(parse_condition(text, dataset.bronze_types)) == text
    assert parse_value(dataset.partition_date_expr, dataset.bronze_types, DATE)
