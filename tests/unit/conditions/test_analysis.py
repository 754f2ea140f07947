from __future__ import annotations

import sys
from random import Random
from types import FrameType

import pytest
from tests.support.random_conditions import COLUMNS, random_text, rows

from headgate.conditions.analysis.findings import Finding, Named, analyse
from headgate.conditions.analysis.two_valued import Reader
from headgate.conditions.ast import Expr
from headgate.conditions.evaluator.evaluate import evaluate
from headgate.conditions.evaluator.values import Value
from headgate.conditions.parser import parse_condition
from headgate.declarations.types import INT

SEED = 11
# About two seconds of one core.
MOST_CALLS = 5_000_000
ROUNDS = 40
AT_ONCE = 12
ROWS = 50

NEVER = (
    "x > 10 AND x < 5",
    "x > 5 AND x < 6",
    "x = 1 AND x = 2",
    "x > 3000000000",
    "x IN (3000000000, 4000000000)",
    "x = 1.5",
    "y > 9.3e18",
    "length(s) < 0",
    "month(day) > 12",
    "hour(ts) = 24",
    "s < ''",
    "m > 99999.99",
    "m > 1.005 AND m < 1.009",
    "day > '2024-01-01' AND day < '2024-01-02'",
    "x BETWEEN 5 AND 1",
    "x IS NULL AND x > 0",
    "length(s) > 0 AND s IS NULL",
    "x > y AND x IS NULL",
    "x > y AND x < y",
    "x <> x",
    "b AND NOT b",
    "b AND (NOT b OR b IS NULL)",
    "s LIKE 'ab%' AND s = 'ba'",
    "s RLIKE '^ab' AND s = 'ba'",
    "startswith(s, 'b') AND s LIKE 'ab%'",
    "s NOT IN ('a', 'b') AND s = 'a'",
    "(x > 5 OR x < 3) AND x = 4",
    "(x > 5) IS NULL AND x IS NOT NULL",
    "coalesce(x, 0) > 5 AND x IS NULL",
    "CASE WHEN x > 5 THEN x < 3 ELSE FALSE END",
    "d > 5e0 AND d <= 5e0",
    "lower(s) = 'A'",
    "upper(s) IN ('a', 'Bc')",
    "x % 3 = 3",
    "coalesce(x, 0) IS NULL",
    "FALSE",
)
ALWAYS = (
    "x IS NULL OR x IS NOT NULL",
    "x > 5 OR x <= 5 OR x IS NULL",
    "x <= 2147483647 OR x IS NULL",
    "length(s) >= 0 OR length(s) IS NULL",
    "b OR NOT b OR b IS NULL",
    "x <=> x",
    "(x > 5) IS NULL OR x IS NOT NULL",
    "TRUE",
)
# Nothing may be said of these: each holds on some row and not on every one.
USUAL = (
    "x > 5 OR x <= 5",
    "b OR NOT b",
    "x <> 5",
    "d > 1e308",
    "d = d AND d > 0e0",
    "s >= ''",
    "x = 2147483647",
    "NOT (x > 5 AND y < 3)",
    "s LIKE '%'",
    "m > 99999.98",
    "trim(s) = ' a'",
    "lower(s) = 'ä'",
    "upper(s) IN ('a', 'B')",
    "x % 3 = -2",
)
# Earlier conditions, the last one, what is said of the last.
BESIDE = {
    ("x > 5", "x > 10"): "unreachable",
    ("x >= 5", "x > 4"): "duplicate",
    ("x > 5 AND y < 3", "y < 3 AND 6 <= x"): "duplicate",
    ("x > y", "y < x"): "duplicate",
    ("NOT (x > 5)", "x <= 5"): "duplicate",
    ("s LIKE 'ab%'", "s LIKE 'abc%'"): "unreachable",
    ("s LIKE 'ab%'", "startswith(s, 'ab')"): "duplicate",
    ("s LIKE 'ab%'", "s LIKE 'abc%d'"): "unreachable",
    ("s IN ('a', 'b', 'c')", "s = 'b'"): "unreachable",
    ("s NOT IN ('a')", "s NOT IN ('a', 'b')"): "unreachable",
    ("x IS NULL", "(x > 5) IS NULL"): "duplicate",
    ("coalesce(x, 0) > 5", "x > 5"): "duplicate",
    ("x > 5 OR x IS NULL", "coalesce(x, 7) > 5"): "duplicate",
    ("CASE WHEN x > 5 THEN TRUE ELSE FALSE END", "x > 5"): "duplicate",
    ("x > 0", "x <= 0", "x IS NOT NULL"): "unreachable",
    ("x < 10", "x BETWEEN 10 AND 20", "x > 15", "x >= 5 AND y = 1"): "unreachable",
    ("x > 5 AND b", "x > 5 AND NOT b", "x > 7 AND b IS NOT NULL"): "unreachable",
    ("d > 1e0", "d > 2e0"): "unreachable",
    ("day >= '2024-01-01'", "day > '2023-12-31'"): "duplicate",
    ("m > 1.00", "m >= 1.01"): "duplicate",
}
# The first is narrower than the second: both are of use, in this order.
NARROW_FIRST = ("x > 10", "x > 5")
APART = ("x > 5", "y > 10"), ("x > 5", "x < 10"), ("x > 10 AND b", "x > 20"), ("s = 'a'", "t = 'a'")


def named(*texts: str) -> list[Named]:
    return [Named(f"r{at}", parse_condition(text, COLUMNS)) for at, text in enumerate(texts)]


@pytest.mark.parametrize("text", NEVER)
def test_a_condition_that_no_row_can_meet_is_found(text: str) -> None:
    assert [finding.kind for finding in analyse(named(text))] == ["never_true"]


DECIDABLE = {"never_true", "always_true", "duplicate", "contained", "unreachable"}


@pytest.mark.parametrize("text", ALWAYS)
def test_a_condition_that_every_row_meets_is_found(text: str) -> None:
    assert [finding.kind for finding in analyse(named(text))] == ["always_true"]


@pytest.mark.parametrize("text", USUAL)
def test_nothing_is_said_of_a_condition_that_decides(text: str) -> None:
    kinds = {finding.kind for finding in analyse(named(text))}
    assert kinds <= {"no_effect"}


@pytest.mark.parametrize("texts", BESIDE)
def test_a_condition_that_earlier_ones_answer_is_found(texts: tuple[str, ...]) -> None:
    (finding,) = [f for f in analyse(named(*texts)) if f.name == f"r{len(texts) - 1}"]
    assert finding.kind == BESIDE[texts]
    assert finding.other == "r0"
    assert finding.fix


def test_the_narrower_condition_may_come_first() -> None:
    (finding,) = analyse(named(*NARROW_FIRST))
    assert (finding.kind, finding.name, finding.other) == ("contained", "r0", "r1")


@pytest.mark.parametrize("texts", APART)
def test_nothing_is_said_of_conditions_that_differ(texts: tuple[str, ...]) -> None:
    assert not analyse(named(*texts))


def test_a_part_that_decides_nothing_is_named() -> None:
    (finding,) = analyse(named("length(s) < 0 OR x > 5"))
    assert finding.kind == "impossible"
    assert "length(s) < 0" in finding.words
    assert [f.kind for f in analyse(named("length(s) >= 0 AND x > 5"))] == ["no_effect"]


@pytest.mark.heavy
def test_every_finding_holds_on_every_row() -> None:
    wrong, kinds = _judged(Random(SEED), ROUNDS, ROWS)
    assert not wrong
    assert kinds >= DECIDABLE


@pytest.mark.slow
def test_every_finding_holds_on_thousands_of_rows() -> None:
    wrong, kinds = _judged(Random(SEED + 1), 5 * ROUNDS, 30 * ROWS)
    assert not wrong
    assert kinds >= DECIDABLE


def _judged(random: Random, rounds: int, count: int) -> tuple[list[Finding], set[str]]:
    """The findings that some row contradicts, and the kinds that were found at all."""
    print("seed", SEED)
    seen: set[str] = set()
    wrong: list[Finding] = []
    for _ in range(rounds):
        conditions = named(*(random_text(random, 2) for _ in range(AT_ONCE)))
        found = analyse(conditions)
        sample = list(rows(random, count))
        concerned = (
            conditions
            if any(f.kind == "unreachable" for f in found)
            else [c for c in conditions if any(c.name in (f.name, f.other) for f in found)]
        )
        answers = {c.name: [evaluate(c.condition, row) for row in sample] for c in concerned}
        for finding in found:
            seen.add(finding.kind)
            if not confirmed(finding, conditions, answers):
                wrong.append(finding)
    return wrong, seen


def confirmed(finding: Finding, conditions: list[Named], answers: dict[str, list[Value]]) -> bool:
    holds = [answer is True for answer in answers[finding.name]]
    beside = [answer is True for answer in answers[finding.other]] if finding.other else []
    match finding.kind:
        case "never_true":
            return not any(holds)
        case "always_true":
            return all(holds)
        case "duplicate":
            return holds == beside
        case "contained":
            return all(other for own, other in zip(holds, beside, strict=True) if own)
        case "unreachable":
            before = conditions[: int(finding.name[1:])]
            earlier = zip(*(answers[other.name] for other in before), strict=True)
            return all(True in others for own, others in zip(holds, earlier, strict=True) if own)
        case _:
            return True


@pytest.mark.heavy
def test_every_odd_part_is_odd_on_every_row() -> None:
    random = Random(SEED)
    found = 0
    for _ in range(ROUNDS * 4):
        reader = Reader()
        reader.read(parse_condition(random_text(random, 1), COLUMNS))
        for part, holds in reader.odd:
            found += 1
            assert not any(_says(part, row, not holds) for row in rows(random, ROWS))
    assert found


def _says(part: Expr, row: dict[str, Value], truth: bool) -> bool:
    return evaluate(part, row) is truth


@pytest.mark.heavy
@pytest.mark.parametrize(("count", "columns"), [(400, 20), (1_000, 20), (1_000, 1)])
def test_a_thousand_rules_take_no_more_work_than_allowed(count: int, columns: int) -> None:
    random = Random(SEED)
    types = {f"c{at}": INT for at in range(columns)}
    texts = [_rule(random, columns) for _ in range(count)]
    conditions = [Named(f"r{at}", parse_condition(t, types)) for at, t in enumerate(texts)]
    findings, calls = _counted(conditions)
    assert calls < MOST_CALLS
    assert findings


def _counted(conditions: list[Named]) -> tuple[tuple[Finding, ...], int]:
    """The findings, and how many calls of Python they took: the same on a fast and a busy machine."""
    calls = 0

    def count(_frame: FrameType, event: str, _of: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        return analyse(conditions), calls
    finally:
        sys.setprofile(before)


def _rule(random: Random, columns: int) -> str:
    one, two = (f"c{random.randrange(columns)}" for _ in "ab")
    low = random.randrange(1_000)
    return random.choice(
        (
            f"{one} > {low}",
            f"{one} BETWEEN {low} AND {low + 50} AND {two} IS NOT NULL",
            f"{one} IN (1, 2, {low})",
            f"{one} < {low} OR {two} IS NULL",
            f"{one} = {low} AND {two} <> {low}",
        )
    )


@pytest.mark.heavy
def test_rules_that_are_all_alike_but_one_apart_are_told_apart_with_little_work() -> None:
    types = {"c": INT}
    conditions = [Named(f"r{at}", parse_condition(f"c = {at}", types)) for at in range(1_000)]
    findings, calls = _counted(conditions)
    assert calls < MOST_CALLS
    assert {finding.kind for finding in findings} <= {"skipped"}


def test_a_condition_too_large_to_take_apart_gives_no_finding() -> None:
    types = {f"c{at}": INT for at in range(40)}
    text = " AND ".join(f"(c{at} = 1 OR c{at + 1} = 2)" for at in range(0, 40, 2))
    assert not analyse([Named("r0", parse_condition(text, types))])
