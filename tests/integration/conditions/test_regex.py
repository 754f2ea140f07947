"""Accepted patterns in Java: the same answers as in Python, soon, and without a deep stack."""

from __future__ import annotations

import time
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.random_regexes import STRANGE, accepted_patterns, hostile_texts, short_texts
from tests.support.regex_patterns import ACCEPTED

from headgate.conditions.ast import Column, Literal
from headgate.conditions.functions import call
from headgate.conditions.literals import spark_literal
from headgate.conditions.regex.pattern import canonical, compiled
from headgate.conditions.spark_sql import to_spark
from headgate.declarations.types import STRING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# py4j closes the sockets of `collect` only when they are garbage.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SEED = 20
QUICK, FULL = 120, 2_000
MOST_SECONDS = 0.050
WORTH_A_LOOK = 0.010
LONG = 100_000
MANY = 200
IN_SQL = 40


@dataclass
class Java:
    """Java's patterns, and the processor time of the thread that answers us."""

    pattern: Any
    threads: Any

    def find(self, asked: Any, text: str) -> tuple[bool, float]:
        matcher = asked.matcher(text)
        began = time.perf_counter()
        found = matcher.find()
        spent = time.perf_counter() - began
        # The clock on the wall also counts the way there and what else the machine does.
        return found, self._exactly(matcher) if spent > WORTH_A_LOOK else spent

    def _exactly(self, matcher: Any) -> float:
        began = self.threads.getCurrentThreadCpuTime()
        matcher.reset().find()
        return (self.threads.getCurrentThreadCpuTime() - began) / 1e9


@pytest.fixture(scope="module")
def java(spark: SparkSession) -> Java:
    """Warm: the time in which Java's classes are loaded is no pattern's."""
    jvm: Any = spark.sparkContext._jvm
    made = Java(
        jvm.java.util.regex.Pattern,
        jvm.java.lang.management.ManagementFactory.getThreadMXBean(),
    )
    for text in ACCEPTED:
        made.find(made.pattern.compile(canonical(text)), "a" * 100)
    return made


def test_java_answers_as_python_does_and_in_time(java: Java) -> None:
    differing, longest = _compared(java, Random(SEED), QUICK)
    assert not differing
    assert longest <= MOST_SECONDS


@pytest.mark.slow
def test_java_answers_two_thousand_patterns_as_python_does_and_in_time(java: Java) -> None:
    differing, longest = _compared(java, Random(SEED + 1), FULL)
    assert not differing
    assert longest <= MOST_SECONDS


def _compared(java: Java, random: Random, count: int) -> tuple[list[tuple[str, str]], float]:
    """Where the answers differ, and the seconds of the longest one."""
    print("seed", SEED)
    patterns = [*ACCEPTED, *accepted_patterns(random, count)]
    differing, times = [], []
    for pattern in patterns:
        asked = java.pattern.compile(canonical(pattern))
        for text in (*hostile_texts(random, pattern), *random.sample(STRANGE, 2)):
            expected, python = _search(pattern, text)
            found, spent = java.find(asked, text)
            times.append((max(spent, python), spent, python, pattern))
            if found != expected:
                differing.append((pattern, text))
    times.sort(reverse=True)
    print(len(patterns), "patterns; longest, of them Java, Python:", times[:3])
    return differing, times[0][0]


def _search(pattern: str, text: str) -> tuple[bool, float]:
    search = compiled(pattern).search
    began = time.process_time()
    found = search(text) is not None
    return found, time.process_time() - began


def test_a_long_text_neither_exhausts_the_stack_nor_takes_long(java: Java) -> None:
    repeated = [p for p in ACCEPTED if ")*+" in canonical(p) or ")++" in canonical(p)]
    assert repeated
    assert _wrong_or_slow(java, repeated) == []


@pytest.mark.slow
def test_no_pattern_needs_a_deep_stack_or_long_for_a_long_text(java: Java) -> None:
    assert _wrong_or_slow(java, [*ACCEPTED, *accepted_patterns(Random(SEED), MANY)]) == []


def _wrong_or_slow(java: Java, patterns: list[str]) -> list[str]:
    """The patterns that Java answers otherwise than Python, or too late, on long texts."""
    random, found_bad = Random(SEED), []
    for pattern in patterns:
        asked = java.pattern.compile(canonical(pattern))
        for text in hostile_texts(random, pattern, LONG)[:2]:
            found, spent = java.find(asked, text)
            right = found == (compiled(pattern).search(text) is not None)
            if not right or spent >= MOST_SECONDS * LONG / 1_024:
                found_bad.append(pattern)
    return found_bad


def test_spark_gives_the_same_answers(spark: SparkSession) -> None:
    random = Random(SEED)
    patterns = [*ACCEPTED, *accepted_patterns(random, IN_SQL)]
    texts = [text for pattern in patterns for text in short_texts(random, pattern, 1)]
    texts = list(dict.fromkeys([*texts, *(text for pair in ACCEPTED.values() for text in pair)]))
    rows = ", ".join(f"({at}, {spark_literal(text)})" for at, text in enumerate(texts))
    asked = [
        to_spark(call("rlike", (Column("s", STRING), Literal(pattern, STRING))))
        for pattern in patterns
    ]
    answers = ", ".join(f"{text} AS c{at}" for at, text in enumerate(asked))
    found = spark.sql(f"SELECT n, {answers} FROM VALUES {rows} AS t(n, s)").collect()
    assert len(found) == len(texts)
    differing = [
        (pattern, texts[row["n"]])
        for row in found
        for at, pattern in enumerate(patterns)
        if row[f"c{at}"] != (compiled(pattern).search(texts[row["n"]]) is not None)
    ]
    assert not differing
