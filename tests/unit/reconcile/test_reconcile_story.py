"""The story of a key on a screen: a key or a hash is never obeyed by the terminal."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from headgate.quality.spec.reconcile_checks import Limits
from headgate.reconcile.decision_table import judge
from headgate.reconcile.key_history import Event, Story, Told, readings, standing_of, story_text
from headgate.reconcile.state import (
    First,
    Reading,
    Side,
    SideState,
    State,
    merge,
    of_message,
)

AT = datetime(2026, 1, 10, 12, tzinfo=UTC)
LATER = datetime(2026, 1, 11, 12, tzinfo=UTC)
READ = Reading(AT, 0, 1, "a" * 64, 2, None, read_at=AT, row=None)
STATE = State("k", SideState(READ, First(AT, AT, 0, 1, "a" * 64), (0, 1)))


def test_what_a_terminal_would_obey_is_written_as_an_escape() -> None:
    reading = Event(AT, "reading", "cloud", "a hash, partition 0, offset 1", AT, "\x1b[2Jxyz")
    key = "a\x1b[2Jb\nc"
    story = Story("business", key, "PENDING", AT, "it waits", "MISMATCH", AT, (reading,))
    text = story_text(story, Limits())
    assert "\x1b" not in text
    assert text.splitlines()[0].startswith(r"a\x1b[2Jb\nc of business is PENDING")
    assert "provisionally MISMATCH" in text
    assert "version 2026-01-10 12:00:00.000Z" in text
    assert "in conflict" not in text
    assert "in conflict" in story_text(replace(story, conflict=True), Limits())


def test_the_reading_that_decides_a_conflict_is_in_the_story() -> None:
    """On-prem said A, and later B at the same version; the cloud has B."""
    version = AT.replace(microsecond=123_456)

    def state(offset: int, hash_: str, side: Side = "onprem", action: str | None = None) -> State:
        read = Reading(version, 0, offset, hash_, 2, action, AT + timedelta(seconds=offset))
        return of_message(side, "k", read)

    first = state(8377, "a" * 64)
    both = merge(first, state(54630, "b" * 64))
    events = readings([first, both, state(5, "b" * 64, "cloud")])
    assert [(e.what, e.why, e.hash and e.hash[0]) for e in events] == [
        ("onprem", "a hash, partition 0, offset 8377", "a"),
        ("onprem", "a hash, partition 0, offset 54630", "b"),
        ("cloud", "a hash, partition 0, offset 5", "b"),
    ]
    # What came again and says the same is one reading, by its first arrival.
    again = merge(first, state(9000, "a" * 64))
    assert [e.why for e in readings([first, again])] == ["a hash, partition 0, offset 8377"]
    gone = merge(first, state(9000, "a" * 64, action="DELETE"))
    assert [e.why for e in readings([first, gone])][-1] == "a delete, partition 0, offset 9000"


def test_a_status_that_a_rule_gave_is_still_the_key_s_status() -> None:
    verdict = judge(STATE, LATER, Limits())
    told = Told(Event(AT, "verdict", "PII_LEAK", "a rule's reason"), verdict.status)
    assert standing_of([told], verdict, LATER) == told.event


def test_a_verdict_that_nobody_told_yet_is_said_to_hold_now() -> None:
    verdict = judge(STATE, LATER, Limits())
    told = Told(Event(AT, "verdict", "PENDING", "it waits"), "PENDING")
    assert verdict.status == "MISSING_CLOUD"
    current = Event(LATER, "now", "MISSING_CLOUD", verdict.reason)
    assert standing_of([told], verdict, LATER) == current
    assert standing_of([], verdict, LATER) == current
