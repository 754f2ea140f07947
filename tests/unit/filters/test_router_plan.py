from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from headgate.core.ledger.offset_ranges import Spans
from headgate.filters.router.plan import EXPIRED, World, is_new, planned
from headgate.filters.store.model import (
    Member,
    Owed,
    Owing,
    Seen,
    Standing,
    TopicEnd,
    Wanted,
)

SOURCE = "events"
ONE = Wanted("one", SOURCE, "r1", "{}", "out-one", "d1")
TWO = Wanted("two", SOURCE, "r2", "{}", "out-two", "d2")
LIVE = Seen("one", SOURCE, "r1", "d1", Standing.LIVE, "s", {"0": 10}, source_id="t1")


def world(
    *wanted: Wanted,
    seen: tuple[Seen, ...] = (),
    refused: Mapping[str, str] | None = None,
    known: Spans | None = None,
    begin: Mapping[str, int] | None = None,
) -> World:
    return World(
        source=SOURCE,
        source_id="t1",
        cutover={"0": 50},
        begin=begin or {"0": 0},
        wanted=wanted,
        seen={one.filter: one for one in seen},
        refused=refused or {},
        known=lambda *_: known or {},
    )


def owed(start: int, end: int) -> Owed:
    return Owed(None, "one", SOURCE, "t1", {"0": start}, {"0": end})


def test_new_filters_are_live_from_where_the_next_batch_starts() -> None:
    plan = planned(world(TWO, ONE))
    assert plan.members == (Member("one", "r1", "out-one"), Member("two", "r2", "out-two"))
    assert [(one.standing, one.cutover) for one in plan.seen] == [("live", {"0": 50})] * 2
    assert plan.owed == ()


def test_what_has_not_changed_is_not_told_again() -> None:
    plan = planned(world(ONE, seen=(LIVE,)))
    assert plan.members == (Member("one", "r1", "out-one"),)
    assert plan.seen == ()


def test_a_new_revision_takes_over_at_the_next_batch() -> None:
    newer = replace(ONE, revision="r9", deployment="d9")
    (seen,) = planned(world(newer, seen=(LIVE,))).seen
    assert (seen.revision, seen.deployment, seen.cutover) == ("r9", "d9", {"0": 50})


def test_a_paused_filter_keeps_its_place_and_catches_up_when_it_goes_on() -> None:
    plan = planned(world(replace(ONE, paused=True), seen=(LIVE,)))
    assert plan.members == ()
    (paused,) = plan.seen
    assert (paused.standing, paused.cutover) == (Standing.PAUSED, {"0": 50})
    earlier = replace(paused, cutover={"0": 30})
    plan = planned(world(ONE, seen=(earlier,)))
    assert plan.seen[0].standing is Standing.LIVE
    assert plan.owed == (owed(30, 50),)


def test_a_filter_paused_before_it_ever_judged_begins_where_it_was_deployed() -> None:
    (paused,) = planned(world(replace(ONE, paused=True))).seen
    assert paused.cutover == {"0": 50}


@pytest.mark.parametrize("standing", [Standing.SUSPENDED, Standing.FAILED])
def test_a_filter_that_failed_stays_out_until_it_is_deployed_again(standing: Standing) -> None:
    bad = replace(LIVE, standing=standing, cutover={"0": 20}, reason="it raised")
    assert planned(world(ONE, seen=(bad,))).members == ()
    assert planned(world(ONE, seen=(bad,))).seen == ()
    assert not is_new(ONE, bad, "t1")
    plan = planned(world(replace(ONE, deployment="d9"), seen=(bad,)))
    assert plan.members != ()
    assert plan.owed == (owed(20, 50),)


def test_a_filter_that_never_judged_is_owed_nothing_when_it_can_be_taken_up_at_last() -> None:
    plan = planned(world(ONE, refused={"one": "no topic"}))
    (failed,) = plan.seen
    assert (failed.standing, failed.reason, failed.cutover) == (Standing.FAILED, "no topic", {})
    plan = planned(world(replace(ONE, deployment="d9"), seen=(failed,)))
    assert plan.owed == ()


def test_a_new_revision_that_cannot_be_taken_up_leaves_a_place_to_go_on_from() -> None:
    newer = replace(ONE, revision="r9", deployment="d9")
    (failed,) = planned(world(newer, seen=(LIVE,), refused={"one": "bad"})).seen
    assert (failed.standing, failed.cutover) == (Standing.FAILED, {"0": 50})


def test_a_filter_that_is_taken_away_ends_where_the_next_batch_starts() -> None:
    (off,) = planned(world(seen=(LIVE,))).seen
    assert (off.standing, off.cutover) == (Standing.OFF, {"0": 50})
    assert planned(world(seen=(off,))).seen == ()
    assert planned(world(ONE, seen=(off,))).owed == ()


def test_a_backfill_owes_all_that_the_filter_never_judged() -> None:
    wanted = replace(ONE, backfill="earliest")
    plan = planned(world(wanted, known={"0": [(10, 20)]}, begin={"0": 5}))
    assert plan.owed == (owed(5, 10), owed(20, 50))


def test_an_update_of_a_filter_that_is_up_to_date_owes_nothing() -> None:
    wanted = replace(ONE, revision="r9", backfill="earliest")
    assert planned(world(wanted, seen=(LIVE,), known={"0": [(0, 50)]})).owed == ()


def test_what_expired_while_a_filter_was_halted_is_given_up_in_words() -> None:
    bad = replace(LIVE, standing=Standing.SUSPENDED, cutover={"0": 20})
    plan = planned(world(replace(ONE, deployment="d9"), seen=(bad,), begin={"0": 35}))
    lost = replace(owed(20, 35), state=Owing.GIVEN_UP, reason=EXPIRED)
    assert plan.owed == (owed(35, 50), lost)


def test_on_a_topic_that_was_made_again_filters_begin_anew() -> None:
    old = replace(LIVE, source_id="t0", cutover={"0": 900})
    (seen,) = planned(world(ONE, seen=(old,))).seen
    assert (seen.source_id, seen.cutover) == ("t1", {"0": 50})
    assert is_new(ONE, old, "t1")


def test_a_suspended_filter_is_owed_a_topic_that_was_made_again_from_its_beginning() -> None:
    bad = replace(LIVE, standing=Standing.SUSPENDED, source_id="t0", cutover={"0": 900})
    begun = replace(world(ONE, seen=(bad,)), cutover={"0": 0})
    (moved,) = planned(begun).seen
    assert (moved.standing, moved.source_id, moved.cutover) == ("suspended", "t1", {"0": 0})
    assert planned(replace(begun, seen={"one": moved})).seen == ()
    plan = planned(world(replace(ONE, deployment="d9"), seen=(moved,)))
    assert plan.owed == (owed(0, 50),)


SINCE = replace(ONE, since=TopicEnd(SOURCE, "t1", {"0": 100}))


def test_a_router_that_comes_later_sends_nothing_from_before_the_deployment() -> None:
    plan = planned(world(SINCE))
    (ahead,) = plan.seen
    assert (plan.members, plan.owed, plan.is_final) == ((), (), False)
    assert (ahead.standing, ahead.cutover) == (Standing.AHEAD, {"0": 100})
    again = planned(world(SINCE, seen=(ahead,)))
    assert (again.members, again.seen, again.is_final) == ((), (), False)
    reached = replace(world(SINCE, seen=(ahead,)), cutover={"0": 120})
    plan = planned(reached)
    assert (plan.members, plan.is_final) == ((Member("one", "r1", "out-one"),), True)
    assert [(one.standing, one.cutover) for one in plan.seen] == [(Standing.LIVE, {"0": 120})]
    assert plan.owed == (owed(100, 120),)


def test_a_router_that_is_there_begins_at_its_next_batch() -> None:
    (live,) = planned(replace(world(SINCE), cutover={"0": 100})).seen
    assert (live.standing, live.cutover) == (Standing.LIVE, {"0": 100})


@pytest.mark.parametrize(
    "wanted",
    [
        replace(SINCE, backfill="earliest"),
        replace(SINCE, since=TopicEnd(SOURCE, "t0", {"0": 100})),
        replace(SINCE, since=TopicEnd(SOURCE, "", {})),
    ],
    ids=["backfill", "the topic was made again", "there was no topic"],
)
def test_where_the_source_ended_does_not_matter(wanted: Wanted) -> None:
    (live,) = planned(world(wanted)).seen
    assert (live.standing, live.cutover) == (Standing.LIVE, {"0": 50})


def test_a_filter_paused_before_the_router_came_is_not_owed_what_is_older_than_it() -> None:
    (paused,) = planned(world(replace(SINCE, paused=True))).seen
    assert (paused.standing, paused.cutover) == (Standing.PAUSED, {"0": 100})
    (ahead,) = planned(world(SINCE, seen=(paused,))).seen
    assert (ahead.standing, ahead.cutover) == (Standing.AHEAD, {"0": 100})


def test_a_filter_that_is_live_goes_on_whatever_the_end_was() -> None:
    newer = replace(SINCE, revision="r9", deployment="d9")
    (live,) = planned(world(newer, seen=(LIVE,))).seen
    assert (live.standing, live.cutover) == (Standing.LIVE, {"0": 50})
