"""Permanent views: made for what is deployed, anew when it changes, and never at the engine's cost."""

from __future__ import annotations

from typing import Any, cast

import pytest

from headgate.core.lake.spark import Views


class Session:
    """Stands for Spark: remembers statements, and fails on those that say so."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.failed = 0

    def newSession(self) -> Session:  # PySpark's name
        return self

    def sql(self, statement: str) -> None:
        if "broken" in statement:
            self.failed += 1
            raise RuntimeError("no such table")
        self.ran.append(statement)


def views(session: Session, deployed: dict[str, str]) -> Views:
    return Views(cast("Any", session), lambda: dict(deployed), lambda name: (f"view of {name}",))


def test_views_are_made_once_for_each_state_of_what_is_deployed() -> None:
    session, deployed = Session(), {"a": "1", "b": "1"}
    kept = views(session, deployed)
    kept.look()
    kept.look()
    assert session.ran == ["view of a", "view of b"]
    deployed["b"] = "2"
    kept.look()
    assert session.ran == ["view of a", "view of b", "view of b"]


def test_a_view_that_cannot_be_made_keeps_no_other_from_being_made(
    caplog: pytest.LogCaptureFixture,
) -> None:
    session = Session()
    kept = views(session, {"broken": "1", "b": "1"})
    kept.look()
    kept.look()
    assert session.ran == ["view of b"]
    assert session.failed == 2
    assert len(caplog.records) == 1


def test_a_store_that_is_away_is_asked_again() -> None:
    session, answers = Session(), iter([None, {"a": "1"}])

    def deployed() -> dict[str, str]:
        found = next(answers)
        if found is None:
            raise OSError("away")
        return found

    kept = Views(cast("Any", session), deployed, lambda name: (f"view of {name}",))
    kept.look()
    assert session.ran == []
    kept.look()
    assert session.ran == ["view of a"]
