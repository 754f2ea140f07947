"""The comparison of what was planted with what was found: exact, and every difference shows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from headgate.demo.quality.comparison import ALL_WINDOWS, Comparison, Found, compared, text
from headgate.demo.quality.planting import Planted, RuleCount

PLANTED = Planted(
    table="things",
    rows=100,
    seed=1,
    start=datetime(2024, 1, 1, tzinfo=UTC),
    messages={"t": 100},
    defects=(),
    results=98,
    clean=90,
    dead_letters=3,
    refused=2,
    tombstones=0,
    outcomes={"accepted": 95, "dead_letter": 3, "refused": 2, "tombstone": 0},
    counters={},
    statuses={"INVALID": 8, "VALID": 90},
    rules=(RuleCount("a", "a", "ERROR", 5, 7), RuleCount("b", "b", "WARN", 3, 3)),
    metrics={"dq.a": 5, "dq.b": 3},
    severities={"ERROR": 5, "WARN": 3, "INFO": 0},
    windows=(),
)
ALL_FOUND = (
    Found("results", "status", {"VALID": 90, "INVALID": 8}),
    Found("ledger", "outcome", {"accepted": 95, "dead_letter": 3, "refused": 2}),
    Found("ledger", "rule", {"a": 7, "b": 3}),
    Found("view", "metric", {"dq.a": 5, "dq.b": 3}),
    Found("topic", "metric", {"dq.a": 5, "dq.b": 3}),
    Found("view", "total", {"ERROR": 5, "WARN": 3}),
)


def changed(place: str, name: str, n: int) -> Comparison:
    found = [
        replace(one, counts={**one.counts, name: n}) if one.place == place else one
        for one in ALL_FOUND
    ]
    return compared("things", [PLANTED], found)


def test_what_was_planted_and_found_everywhere_holds() -> None:
    comparison = compared("things", [PLANTED], ALL_FOUND)
    assert comparison.holds
    assert comparison.compared == 2 + 4 + 2 + 2 * 2 + 3


def test_one_count_too_many_in_one_place_is_a_difference() -> None:
    comparison = changed("topic", "dq.a", 6)
    assert not comparison.holds
    (line,) = [line for line in comparison.lines if not line.holds]
    assert (line.name, line.planted, line.found) == ("dq.a", 5, {"view": 5, "topic": 6})
    assert "✗ dq.a" in text(comparison)


def test_a_status_that_nobody_planted_is_a_difference() -> None:
    assert not changed("results", "MISMATCH", 1).holds


def test_a_planted_status_that_a_place_does_not_name_is_a_difference() -> None:
    only = [Found("results", "status", {"VALID": 90})]
    assert not compared("things", [PLANTED], only).holds


def test_the_windows_of_a_pair_are_compared_by_their_sum_and_duplicates_are_counted() -> None:
    pair = replace(PLANTED, counters={"duplicates": 3})
    found = (
        *ALL_FOUND,
        Found("ledger", "counter", {"duplicates": 3}),
        Found("topic", "window", {ALL_WINDOWS: 98}),
    )
    assert compared("things", [pair], found).holds
    twice = [replace(f, counts={"duplicates": 6}) if f.kind == "counter" else f for f in found]
    assert not compared("things", [pair], twice).holds


def test_several_feeds_add_up() -> None:
    doubled = [replace(one, counts={k: 2 * n for k, n in one.counts.items()}) for one in ALL_FOUND]
    assert compared("things", [PLANTED, PLANTED], doubled).holds
    assert not compared("things", [PLANTED, PLANTED], ALL_FOUND).holds


def test_the_table_for_a_person_has_a_column_for_each_place() -> None:
    lines = text(compared("things", [PLANTED], ALL_FOUND)).splitlines()
    assert lines[0].split() == ["things", "planted", "results", "ledger", "topic", "view"]
    (line,) = [line for line in lines if line.startswith("  ✓ dq.a")]
    assert line.split() == ["✓", "dq.a", "5", "5", "5"]


def test_a_long_list_is_shown_as_its_sum_and_what_differs_by_itself() -> None:
    many = {f"dq.m{n}": n for n in range(20)}
    planted = replace(PLANTED, metrics=many)
    held = text(compared("things", [planted], [Found("view", "metric", many)]))
    assert "✓ all 20 together      190   190" in held
    wrong = {**many, "dq.m7": 8}
    told = text(compared("things", [planted], [Found("view", "metric", wrong)]))
    assert "✓ 19 together      183   183" in told
    assert "✗ dq.m7              7     8" in told
