from __future__ import annotations

from dataclasses import replace

from headgate.filters.accounting import RangeEvidence, by_revision, proved
from headgate.filters.store.model import (
    Owed,
    Owing,
    Routed,
    RoutedRange,
    RoutedSum,
    Seen,
    Standing,
)


def judged(start: int, end: int, revision: str = "r1", job: str = "router-events") -> RoutedRange:
    return RoutedRange(job, revision, "kafka:events", "t1", "0", start, end)


def stood(standing: Standing, cutover: int, revision: str = "r1") -> Seen:
    return Seen("one", "events", revision, "d", standing, "s", {"0": cutover}, source_id="t1")


def owed(start: int, end: int, state: Owing = Owing.WAITING) -> Owed:
    return Owed(1, "one", "events", "t1", {"0": start}, {"0": end}, state)


def evidence(
    ranges: tuple[RoutedRange, ...],
    history: tuple[Seen, ...],
    owed: tuple[Owed, ...] = (),
    reached: int = 30,
) -> RangeEvidence:
    sums = (RoutedSum("router-events", "r1", 7, 2),)
    return RangeEvidence("one", Routed("one", ranges, sums), owed, history, {"t1": {"0": reached}})


def test_a_filter_that_judged_since_it_was_live_holds() -> None:
    found = proved(evidence((judged(10, 30),), (stood(Standing.LIVE, 10),)))
    assert found.holds
    assert (found.matched, found.sent, found.refused, found.waiting) == (9, 7, 2, 0)
    (line,) = by_revision(found.ranges)
    assert (line.since, line.to) == (10, 30)


def test_an_update_holds_where_each_revision_judged_its_own_offsets() -> None:
    history = (stood(Standing.LIVE, 10), stood(Standing.LIVE, 20, "r2"))
    assert proved(evidence((judged(10, 20), judged(20, 30, "r2")), history)).holds


def test_an_offset_that_was_skipped_is_found() -> None:
    found = proved(evidence((judged(10, 18), judged(20, 30)), (stood(Standing.LIVE, 10),)))
    assert found.breaks == ("partition 0, offsets 18 to 19: live, but not judged by r1",)


def test_an_offset_that_was_judged_twice_is_found() -> None:
    found = proved(evidence((judged(10, 20), judged(19, 30)), (stood(Standing.LIVE, 10),)))
    assert found.breaks == ("partition 0, offsets 19 to 19: judged twice",)


def test_an_offset_judged_by_the_old_revision_after_its_cutover_is_found() -> None:
    history = (stood(Standing.LIVE, 10), stood(Standing.LIVE, 20, "r2"))
    found = proved(evidence((judged(10, 21), judged(21, 30, "r2")), history))
    assert found.breaks == (
        "partition 0, offsets 20 to 20: judged, but not live by r1",
        "partition 0, offsets 20 to 20: live, but not judged by r2",
    )


def test_what_a_halted_filter_missed_must_be_owed_or_made_up_for() -> None:
    history = (
        stood(Standing.LIVE, 10),
        stood(Standing.SUSPENDED, 15),
        stood(Standing.LIVE, 25, "r2"),
    )
    live = (judged(10, 15), judged(25, 30, "r2"))
    missed = "partition 0, offsets 15 to 24: missed and never made up for"
    assert proved(evidence(live, history)).breaks == (missed,)
    waiting = proved(evidence(live, history, (owed(15, 25),)))
    assert waiting.holds
    assert waiting.waiting == 10
    beside = (*live[:1], judged(15, 25, "r2", "replay-one"), *live[1:])
    done = proved(evidence(beside, history, (owed(15, 25, Owing.DONE),)))
    assert done.holds
    assert done.waiting == 0


def test_a_replay_that_is_called_done_too_early_is_found() -> None:
    history = (stood(Standing.LIVE, 10),)
    ranges = (judged(0, 8, job="replay-one"), judged(10, 30))
    found = proved(evidence(ranges, history, (owed(0, 10, Owing.DONE),)))
    assert found.breaks == ("partition 0, offsets 8 to 9: called done, but not judged",)


def test_a_filter_that_is_still_halted_or_was_taken_away_is_owed_nothing_yet() -> None:
    live = (judged(10, 15),)
    for standing in (Standing.SUSPENDED, Standing.PAUSED, Standing.OFF):
        assert proved(evidence(live, (stood(Standing.LIVE, 10), stood(standing, 15)))).holds


def test_a_time_of_being_off_is_no_gap() -> None:
    history = (
        stood(Standing.LIVE, 0),
        stood(Standing.OFF, 5),
        stood(Standing.LIVE, 20),
    )
    assert proved(evidence((judged(0, 5), judged(20, 30)), history)).holds
    found = proved(evidence((judged(0, 6), judged(20, 30)), history))
    assert found.breaks == ("partition 0, offsets 5 to 5: judged, but not live by r1",)


def test_a_topic_that_was_made_again_has_ranges_of_its_own() -> None:
    again = replace(judged(0, 10), source_id="t2")
    history = (stood(Standing.LIVE, 10), replace(stood(Standing.LIVE, 0), source_id="t2"))
    given = evidence((judged(10, 30), again), history)
    given = replace(given, reached={"t1": {"0": 30}, "t2": {"0": 10}})
    assert proved(given).holds
