"""Nothing off the allow list comes through: not by any name, any syntax, or by chance."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from sqlglot import exp
from sqlglot.errors import ErrorLevel

from headgate.conditions.functions import FUNCTION_NAMES
from headgate.conditions.grammar import ExprError
from headgate.conditions.parser import parse_condition
from headgate.conditions.spark_sql import to_spark
from headgate.declarations.types import BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP

FUNCTIONS = Path(__file__).parents[2] / "fixtures" / "spark_functions.txt"
COLUMNS = {"a": INT, "s": STRING, "b": BOOLEAN, "d": DOUBLE, "day": DATE, "ts": TIMESTAMP}
SEED = 5
FUZZED = 1_500
MOST_SECONDS = 1.0
CALLS = (
    "{name}()",
    "{name}() = 1",
    "{name}(a) = 1",
    "{name}(s) = 'a'",
    "{name}(b)",
    "{name}(a, a) = 1",
    "{name}(s, 'a', 'b') = 's'",
    "{name}(*) > 1",
    "{name}(DISTINCT a) > 1",
    "{name}(a) OVER () > 1",
    "{name}(a) FILTER (WHERE b) > 1",
    "{name}(v -> v) = 1",
    "system.builtin.{name}(a) = 1",
    "a {name} 1",
)
# Names in the list of functions that are operators of the language: NOT(b) is NOT b.
OPERATORS = frozenset({"not", "!", "and", "or", "in", "like", "between", "case", "when"})
OUTSIDE = (
    "a = (SELECT 1)",
    "a IN (SELECT 1)",
    "a IN (SELECT a FROM t WHERE t.a = a)",
    "EXISTS (SELECT 1)",
    "NOT EXISTS (SELECT * FROM t)",
    "a = ANY (SELECT 1)",
    "a > ALL (SELECT 1)",
    "SELECT 1",
    "(SELECT b)",
    "b UNION SELECT b",
    "WITH t AS (SELECT 1) SELECT 1",
    "FROM t SELECT 1",
    "TABLE t",
    "VALUES (1)",
    "a = 1 FROM t",
    "a = 1 WHERE b",
    "a = 1 GROUP BY a",
    "a = 1 ORDER BY a",
    "a = 1 LIMIT 1",
    "row_number() OVER (ORDER BY a) = 1",
    "sum(a) OVER (PARTITION BY s) > 1",
    "lag(a) OVER w > 1",
    "exists(array(1), x -> x > 0)",
    "transform(s, (x, i) -> x) = 's'",
    "aggregate(s, 0, (x, y) -> x) = 1",
    "my_udf(a) = 1",
    "db.my_udf(a) = 1",
    "reflect('java.lang.System', 'exit', 1) = 1",
    "java_method('java.lang.Runtime', 'getRuntime') = 's'",
    "try_reflect('java.util.UUID', 'randomUUID') = 's'",
    "REFLECT('a', 'b') IS NULL",
    "`reflect`('a', 'b') IS NULL",
    "explode(array(1)) = 1",
    "posexplode(a) = 1",
    "inline(a) = 1",
    "stack(2, 1, 2) = 1",
    "LATERAL VIEW explode(a) t AS x",
    "CAST(s AS UUID) IS NULL",
    "CAST(s AS BINARY) IS NULL",
    "CAST(s AS ARRAY<INT>) IS NULL",
    "CAST(s AS MAP<INT, INT>) IS NULL",
    "CAST(s AS STRUCT<a: INT>) IS NULL",
    "CAST(s AS VARIANT) IS NULL",
    "CAST(s AS INTERVAL DAY) IS NULL",
    "CAST(s AS TIME) IS NULL",
    "CAST(s AS CHAR(3)) IS NULL",
    "CAST(s AS VARCHAR(3)) IS NULL",
    "CAST(s AS TINYINT) IS NULL",
    "CAST(s AS TIMESTAMPTZ) IS NULL",
    "CAST(s AS STRING COLLATE UNICODE) = 'a'",
    "CAST(s AS DECIMAL(39, 2)) IS NULL",
    "CAST(s AS DATE(3)) IS NULL",
    "uuid 'a' = s",
    "INT '1' = a",
    "INTERVAL 1 DAY > INTERVAL 1 HOUR",
    "X'1F' = s",
    "0x1F = a",
    "b'1' = a",
    "r'a' = s",
    "/*+ BROADCAST(t) */ a = 1",
    "a /* c */ = 1",
    "a = 1 -- c",
    "a = 1 # c",
    "session.x = 1",
    "system.session.x = 1",
    "@x = 1",
    "@@x = 1",
    ":p = a",
    "? = a",
    "$1 = a",
    "${x} = a",
    "{x} = a",
    "{fn now()} = ts",
    "{d '2024-01-01'} = day",
    "{{ x }} = a",
    "IDENTIFIER('a') = 1",
    "IDENTIFIER(:p) = 1",
    "t TIMESTAMP AS OF '2024-01-01'",
    "t VERSION AS OF 1",
    "a FOR SYSTEM_TIME AS OF 1",
    "a = 1;",
    "a = 1; DROP TABLE t",
    ";",
    "DROP TABLE t",
    "CREATE TABLE t (a INT)",
    "INSERT INTO t VALUES (1)",
    "UPDATE t SET a = 1",
    "DELETE FROM t",
    "MERGE INTO t USING u ON a = 1 WHEN MATCHED THEN DELETE",
    "TRUNCATE TABLE t",
    "ALTER TABLE t ADD COLUMN x INT",
    "COPY INTO t FROM 'x'",
    "LOAD DATA INPATH 'x' INTO TABLE t",
    "SET spark.sql.ansi.enabled = false",
    "SET VAR x = 1",
    "USE db",
    "SHOW TABLES",
    "DESCRIBE t",
    "EXPLAIN SELECT 1",
    "REFRESH TABLE t",
    "CACHE TABLE t",
    "ADD JAR 'x.jar'",
    "CALL lake.system.expire_snapshots('t')",
    "EXECUTE IMMEDIATE 'SELECT 1'",
    "DECLARE x INT",
    "BEGIN a = 1; END",
    "GRANT SELECT ON t TO u",
    "COMMENT ON TABLE t IS 'x'",
    "ANALYZE TABLE t COMPUTE STATISTICS",
    "t.a = 1",
    "db.t.a = 1",
    "s.field = 1",
    "s[0] = 1",
    "s['a'] = 1",
    "s:path = 1",
    "s:a.b::int = 1",
    "a.* = 1",
    "*",
    "count(*) > 1",
    "(a, a) = (1, 1)",
    "(a, a) IN ((1, 1))",
    "STRUCT(a) = STRUCT(1)",
    "ARRAY(a)[0] = 1",
    "MAP('a', 1)['a'] = 1",
    "named_struct('a', 1).a = 1",
    "a AS x",
    "a = 1 AS x",
    "s COLLATE UTF8_LCASE = 'a'",
    "s LIKE 'a' ESCAPE '!'",
    "s LIKE ANY ('a', 'b')",
    "s LIKE ALL ('a', 'b')",
    "s ILIKE 'a'",
    "s SIMILAR TO 'a'",
    "s RLIKE s",
    "s RLIKE '(a'",
    "s NOT RLIKE '(?i)a'",
    "s GLOB 'a'",
    "s ~ 'a'",
    "a DIV 2 = 1",
    "a & 1 = 1",
    "a | 1 = 1",
    "a ^ 1 = 1",
    "~a = 1",
    "a << 1 = 1",
    "a >> 1 = 1",
    "a ** 2 = 1",
    "a IS JSON",
    "a IS NAN",
    "a BETWEEN SYMMETRIC 1 AND 2",
    "(ts, ts) OVERLAPS (ts, ts)",
    "EXTRACT(YEAR FROM ts) = 1",
    "ts AT TIME ZONE 'UTC' = ts",
    "TRIM(BOTH 'a' FROM s) = 's'",
    "POSITION('a' IN s) = 1",
    "SUBSTRING(s FROM 1 FOR 2) = 's'",
    "OVERLAY(s PLACING 'a' FROM 1) = 's'",
    "CONVERT(a, CHAR) = 's'",
    "CURRENT_DATE = day",
    "CURRENT_TIMESTAMP = ts",
    "CURRENT_USER = s",
    "current_date() = day",
    "now() > ts",
    "rand() > 0.5",
    "uuid() = s",
    "monotonically_increasing_id() = 1",
    "input_file_name() = s",
    "spark_partition_id() = 1",
    "current_user() = s",
    "assert_true(b) IS NULL",
    "raise_error('x') IS NULL",
    "sleep(10) = 1",
    "from_json(s, 'a INT').a = 1",
    "ai_query('m', s) = 's'",
    "http_request(s) = 's'",
    "read_files('/etc/passwd') = s",
    "a = 1 AND",
    "AND b",
    "((b)",
    "b)",
    "a = ",
    "= 1",
    "CASE b END",
    "CASE WHEN b THEN a",
    "CAST(a)",
    "CAST(a AS)",
    "'unclosed",
    "`unclosed",
    "s = 'a' 'b'",
    "\\",
    "a = 1 \0",
    "a\u200b = 1",
    "a \u2264 1",
    "ａ = 1",
)


def refused(text: str) -> ExprError:
    with pytest.raises(ExprError) as caught:
        parse_condition(text, COLUMNS)
    return caught.value


def assert_refused_with_a_place(text: str) -> None:
    for fault in refused(text).faults:
        assert fault.position is not None, text
        assert 1 <= fault.position <= len(text) + 1, text
        assert fault.what, text
        assert fault.fix, text


def foreign_functions() -> list[str]:
    names = FUNCTIONS.read_text().split()
    return [name for name in names if name not in FUNCTION_NAMES and name.isidentifier()]


def test_the_list_of_functions_is_that_of_a_whole_spark() -> None:
    assert len(foreign_functions()) > 400
    assert {"reflect", "java_method", "try_reflect"} <= set(foreign_functions())


@pytest.mark.heavy
def test_no_function_of_spark_comes_through_that_is_not_ours() -> None:
    for name in foreign_functions():
        for form in CALLS:
            if name not in OPERATORS:
                assert_refused_with_a_place(form.format(name=name))


@pytest.mark.heavy
def test_a_function_is_not_known_by_another_case_or_in_backticks() -> None:
    for name in foreign_functions():
        if name not in OPERATORS:
            assert_refused_with_a_place(f"{name.upper()}(s) = 's'")
            assert_refused_with_a_place(f"`{name}`(s) = 's'")


@pytest.mark.parametrize("text", OUTSIDE)
def test_syntax_outside_the_language_is_refused_with_its_place(text: str) -> None:
    assert_refused_with_a_place(text)


@pytest.mark.heavy
def test_what_every_node_of_the_grammar_writes_is_refused_or_is_ours() -> None:
    """Each node of sqlglot as text: refused, or read as one of ours and written back the same."""
    tried = admitted = 0
    for text in node_texts():
        tried += 1
        admitted += is_safe(text)
    assert tried > 5_000
    assert admitted < tried / 5


def node_texts() -> Iterator[str]:
    fillings = (exp.column("a"), exp.column("s"), exp.Literal.string("a"))
    for kind in sorted(set(_kinds(exp.Expr)), key=lambda kind: kind.__name__):
        for filling in fillings:
            text = _written(kind, filling)
            if text is not None:
                yield from (text, f"{text} = 1", f"{text} = 'a'", f"{text} IS NULL")


def _kinds(kind: type[exp.Expr]) -> Iterator[type[exp.Expr]]:
    for below in kind.__subclasses__():
        yield below
        yield from _kinds(below)


def _written(kind: type[exp.Expr], filling: exp.Expr) -> str | None:
    arguments = {
        name: [filling.copy()] if name == "expressions" else filling.copy()
        for name, needed in kind.arg_types.items()
        if needed
    }
    try:
        return kind(**arguments).sql("spark", unsupported_level=ErrorLevel.IGNORE)
    except Exception:  # a node that makes no sense fails in ways of its own
        return None


def is_safe(text: str) -> bool:
    """Whether it is admitted; what is must be written back as the same tree."""
    began = time.thread_time()
    try:
        tree = parse_condition(text, COLUMNS)
    except ExprError:
        return False
    finally:
        assert time.thread_time() - began < MOST_SECONDS, text
    assert parse_condition(to_spark(tree), COLUMNS) == tree, text
    return True


@pytest.mark.heavy
def test_random_tokens_neither_crash_nor_hang_nor_come_through_changed() -> None:
    random = Random(SEED)
    print("seed", SEED)
    words = [*_WORDS, *random.sample(foreign_functions(), 40), *random.sample(FUNCTION_NAMES, 30)]
    admitted = sum(is_safe(_jumble(random, words)) for _ in range(FUZZED))
    assert admitted


@pytest.mark.heavy
def test_random_characters_neither_crash_nor_hang() -> None:
    random = Random(SEED)
    texts = (
        "".join(
            chr(random.choice((random.randrange(128), random.randrange(0xD7FF))))
            for _ in range(random.randint(1, 60))
        )
        for _ in range(FUZZED)
    )
    judged = [is_safe(text) for text in texts]
    assert len(judged) == FUZZED
    assert not all(judged)


@pytest.mark.heavy
def test_mutated_conditions_neither_crash_nor_come_through_changed() -> None:
    random, judged = Random(SEED), list[bool]()
    for _ in range(FUZZED):
        text = random.choice(
            (*OUTSIDE, "a = 1 AND s LIKE 'x%'", "CASE WHEN b THEN a ELSE 1 END > 0")
        )
        at = random.randrange(len(text) + 1)
        judged.append(
            is_safe(text[:at] + random.choice(_WORDS) + text[at + random.randint(0, 3) :])
        )
    assert set(judged) == {True, False}, "some come through, and as the same tree; others do not"


@pytest.mark.heavy
@pytest.mark.parametrize(
    "text", ["(" * 20_000, "NOT " * 20_000 + "b", "-" * 20_000 + "a", "a+" * 20_000]
)
def test_deep_texts_are_refused_soon(text: str) -> None:
    began = time.thread_time()
    refused(text)
    assert time.thread_time() - began < 10 * MOST_SECONDS


def _jumble(random: Random, words: list[str]) -> str:
    return " ".join(random.choices(words, k=random.randint(1, 9)))


_WORDS = (
    *("a", "s", "b", "d", "day", "ts", "1", "0", "1.5", "1e3", "'x'", "''", "NULL", "TRUE"),
    *("=", "<>", "<", ">", "<=>", "+", "-", "*", "/", "%", "||", "(", ")", ",", ".", "::"),
    *("AND", "OR", "NOT", "IS", "IN", "BETWEEN", "LIKE", "RLIKE", "CASE", "WHEN", "THEN", "ELSE"),
    *("END", "CAST", "AS", "INT", "STRING", "DATE", "SELECT", "FROM", "EXISTS", "OVER", "INTERVAL"),
    *("[", "]", "{", "}", ";", "?", ":", "@", "$", "\\", "`", '"', "--", "/*", "->", "=>", "#"),
)
