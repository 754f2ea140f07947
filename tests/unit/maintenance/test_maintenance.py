"""Expiry never takes what anyone goes on from, and takes all the rest."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.maintenance.selection import (
    MAIN,
    SLACK,
    STAGED_AT_LEAST,
    History,
    Judged,
    Limits,
    Needs,
    SnapshotFact,
    newest_markers,
    plan_expiry,
    words,
)

NOW = datetime(2026, 3, 1, tzinfo=UTC)
WEEK = Limits(timedelta(days=7), 1)
JOBS = ("bronze-x", "silver-x", "bronze-y")


def line(*ages: float, job: str | None = None) -> tuple[SnapshotFact, ...]:
    """A main line of snapshots 1, 2, … with these ages in days, the oldest first."""
    return tuple(
        SnapshotFact(n, n - 1 or None, NOW - timedelta(days=age), "append", job)
        for n, age in enumerate(ages, 1)
    )


def history(*snapshots: SnapshotFact, current: int | None = None) -> History:
    return History(snapshots[-1].id if current is None else current, snapshots)


def going(judged: tuple[Judged, ...]) -> set[int]:
    return {j.snapshot.id for j in judged if j.goes}


def why(judged: tuple[Judged, ...], id_: int) -> str:
    return next(j.why for j in judged if j.snapshot.id == id_)


def test_what_is_old_and_beyond_the_newest_goes() -> None:
    judged = plan_expiry(history(*line(30, 20, 9, 3, 0)), Needs(), WEEK, NOW)
    assert going(judged) == {1, 2, 3}
    assert why(judged, 4) == "younger than 7d"
    assert why(judged, 5) == "the current snapshot"


def test_the_newest_few_stay_however_old() -> None:
    judged = plan_expiry(history(*line(30, 20, 19, 18)), Needs(), replace(WEEK, keep=3), NOW)
    assert going(judged) == {1}
    assert why(judged, 2) == "one of the newest 3"


def test_a_jobs_newest_marker_stays_and_all_after_it() -> None:
    old, marked, *rest = line(40, 30, 20, 10, 0)
    told = history(old, replace(marked, job="bronze-x"), *rest)
    judged = plan_expiry(told, Needs(markers=frozenset({"bronze-x"})), WEEK, NOW)
    assert going(judged) == {1}
    assert why(judged, 2) == "the newest marker of bronze-x"
    assert why(judged, 3) == "an older one must stay"


def test_a_marker_that_nobody_goes_on_from_holds_nothing() -> None:
    first, *rest = line(40, 30, 0)
    judged = plan_expiry(history(replace(first, job="bronze-y"), *rest), Needs(), WEEK, NOW)
    assert going(judged) == {1, 2}


def test_the_staged_source_of_a_published_marker_stays() -> None:
    first, second, third = line(40, 30, 0)
    staged = SnapshotFact(9, 1, NOW - timedelta(days=31), "append", "bronze-x")
    told = History(3, (first, replace(second, source=9), third, staged))
    assert newest_markers(told) == {"bronze-x": 2}
    judged = plan_expiry(told, Needs(markers=frozenset({"bronze-x"})), WEEK, NOW)
    assert going(judged) == {1}
    assert why(judged, 9) == "2 was published from it"
    assert going(plan_expiry(told, Needs(), WEEK, NOW)) == {1, 2, 9}


def test_a_readers_position_stays_and_all_after_it() -> None:
    needs = Needs(positions={2: "silver-x", 77: "nobody: it is not there"})
    judged = plan_expiry(history(*line(40, 30, 20, 10, 0)), needs, WEEK, NOW)
    assert going(judged) == {1}
    assert why(judged, 2) == "silver-x goes on from it"


def test_what_came_since_an_open_batch_began_stays() -> None:
    needs = Needs(open_since=NOW - timedelta(days=20))
    assert going(plan_expiry(history(*line(40, 30, 20, 10, 0)), needs, WEEK, NOW)) == {1, 2}


def test_left_over_staged_snapshots_go_and_young_ones_hold_what_they_were_made_on() -> None:
    main = line(40, 30, 20, 0)
    old = SnapshotFact(8, 2, NOW - timedelta(days=19), "append", "bronze-x")
    assert going(plan_expiry(History(4, (*main, old)), Needs(), WEEK, NOW)) == {1, 2, 3, 8}
    young = replace(old, at=NOW - timedelta(hours=23))
    soon = Limits(timedelta(0), 1)
    judged = plan_expiry(History(4, (*main, young)), Needs(), soon, NOW)
    assert going(judged) == {1}
    assert why(judged, 8) == "staged less than 1d ago"


def test_tags_and_branches_stay_with_what_they_lead_to() -> None:
    main = line(40, 30, 20, 10, 0)
    fork = SnapshotFact(20, 3, NOW - timedelta(days=15), "append")
    told = History(5, (*main, fork), {MAIN: 5, "tried": 20})
    assert going(plan_expiry(told, Needs(), WEEK, NOW)) == {1, 2}
    assert going(plan_expiry(replace(told, refs={MAIN: 5, "month": 2}), Needs(), WEEK, NOW)) == {
        1,
        20,
    }


def test_an_empty_table_has_nothing_to_expire() -> None:
    assert plan_expiry(History(None, ()), Needs(), WEEK, NOW) == ()


@pytest.mark.parametrize(
    ("span", "text"), [("7 0", "7d"), ("1 43200", "36h"), ("0 5400", "90m"), ("0 61", "61s")]
)
def test_spans_are_told_in_their_largest_whole_unit(span: str, text: str) -> None:
    days, seconds = map(int, span.split())
    assert words(timedelta(days=days, seconds=seconds)) == text


ages = st.integers(0, 60 * 24)


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Commits of several jobs, published at once or after another, leftovers, tags and rewrites."""
    count = draw(st.integers(1, 25))
    moments = sorted((draw(ages) for _ in range(count)), reverse=True)
    found: list[SnapshotFact] = []
    current: int | None = None
    for number, hours in enumerate(moments, 1):
        at = NOW - timedelta(hours=hours)
        job = draw(st.sampled_from(JOBS))
        kind = draw(st.sampled_from(("direct", "direct", "later", "left", "rewrite")))
        base = draw(st.sampled_from([current, *(s.id for s in found)])) if found else current
        if kind == "left":
            found.append(SnapshotFact(number * 2, base, at, "append", job))
            continue
        if kind == "later":
            found.append(SnapshotFact(number * 2, base, at, "append", job))
            found.append(SnapshotFact(number * 2 + 1, current, at, "append", None, number * 2))
        else:
            own = job if kind == "direct" else None
            operation = "append" if own else "replace"
            found.append(SnapshotFact(number * 2 + 1, current, at, operation, own))
        current = number * 2 + 1
    ids = [s.id for s in found]
    refs = {f"tag{i}": i for i in draw(st.lists(st.sampled_from(ids), max_size=2))}
    main = {MAIN: current} if current is not None else {}
    shuffled = draw(st.permutations(found))
    return History(current, tuple(shuffled), {**main, **refs})


@st.composite
def needed(draw: st.DrawFn) -> Needs:
    return Needs(
        markers=draw(st.frozensets(st.sampled_from(JOBS))),
        positions=dict.fromkeys(draw(st.lists(st.integers(2, 51), max_size=3)), "silver-x"),
        open_since=draw(st.none() | ages.map(lambda hours: NOW - timedelta(hours=hours))),
    )


limits = st.builds(Limits, ages.map(lambda hours: timedelta(hours=hours)), st.integers(1, 6))


@settings(max_examples=120, deadline=None)
@given(histories(), needed(), limits)
def test_random_histories_lose_nothing_that_is_needed(
    told: History, needs: Needs, limit: Limits
) -> None:
    judged = plan_expiry(told, needs, limit, NOW)
    gone = going(judged)
    assert len(judged) == len(told.snapshots)
    assert {j.snapshot for j in judged} == set(told.snapshots)
    main = list(told.line(told.current))
    stays = [s for s in main if s.id not in gone]
    known = told.by_id

    assert stays == main[: len(stays)], "the main line is broken"
    for job, id_ in newest_markers(told).items():
        if job in needs.markers:
            assert id_ not in gone
    for snapshot in stays:
        assert snapshot.source is None or snapshot.source not in gone
    assert not gone & set(needs.positions) & {s.id for s in main}
    assert not gone & set(told.refs.values())
    for snapshot in main[: limit.keep]:
        assert snapshot.id not in gone
    for id_ in gone:
        assert NOW - known[id_].at > limit.older_than
    if needs.open_since is not None:
        assert all(known[i].at < needs.open_since for i in gone & {s.id for s in main})

    published = {s.source for s in main}
    on_main = {s.id for s in main}
    for snapshot in told.snapshots:
        if snapshot.id in on_main or snapshot.id in published:
            continue
        if NOW - snapshot.at <= STAGED_AT_LEAST:
            assert snapshot.id not in gone
            assert snapshot.parent not in gone & on_main


@settings(max_examples=60, deadline=None)
@given(histories(), needed(), limits)
def test_what_stays_has_a_reason_and_a_second_plan_finds_nothing(
    told: History, needs: Needs, limit: Limits
) -> None:
    judged = plan_expiry(told, needs, limit, NOW)
    gone = going(judged)
    left = replace(told, snapshots=tuple(s for s in told.snapshots if s.id not in gone))
    before, after = newest_markers(told), newest_markers(left)
    assert {j: before.get(j) for j in needs.markers} == {j: after.get(j) for j in needs.markers}
    assert going(plan_expiry(left, needs, limit, NOW)) == set()

    main = list(left.line(left.current))
    if len(main) > limit.keep and len(main) < len(list(told.line(told.current))):
        oldest = next(j for j in judged if j.snapshot.id == main[-1].id)
        assert oldest.why != "an older one must stay"
    if not needs.positions and not needs.markers and needs.open_since is None:
        unnamed = [s for s in told.snapshots if not told.refs or set(told.refs) == {MAIN}]
        long_ago = max(limit.older_than, STAGED_AT_LEAST) + SLACK
        if unnamed and all(NOW - s.at > long_ago for s in told.snapshots):
            assert len(main) == min(limit.keep, len(list(told.line(told.current))))
