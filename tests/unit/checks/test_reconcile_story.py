"""The story of a key on a screen: a key or a hash is never obeyed by the terminal."""

from __future__ import annotations

from datetime import UTC, datetime

from headgate.checks.reconcile_story import Event, Story, story_text
from headgate.compile.reconcile.limits import Limits

AT = datetime(2026, 1, 10, 12, tzinfo=UTC)


def test_what_a_terminal_would_obey_is_written_as_an_escape() -> None:
    reading = Event(AT, "reading", "cloud", "a hash, partition 0, offset 1", AT, "\x1b[2Jxyz")
    key = "a\x1b[2Jb\nc"
    story = Story("business", key, "PENDING", AT, "it waits", "MISMATCH", AT, (reading,))
    text = story_text(story, Limits())
    assert "\x1b" not in text
    assert text.splitlines()[0].startswith(r"a\x1b[2Jb\nc of business is PENDING")
    assert "provisionally MISMATCH" in text
    assert "version 2026-01-10 12:00:00Z" in text
