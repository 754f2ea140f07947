"""Answers kept for a while, so that a request that is sent again is not carried out again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, Engine, delete, insert, select, update

from headgate.store.control_model import Answer
from headgate.store.control_tables import answers
from headgate.store.database import writing

KEPT_FOR = timedelta(hours=24)
# A request that did not end in this time was cut off with its process.
UNDER_WAY_FOR = timedelta(minutes=2)


class AnswerStore:
    """The first request under a key claims it; later ones get its answer."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime]) -> None:
        self._engine, self._clock = engine, clock

    def claim(self, actor: str, key: str, request: str) -> Answer | None:
        """None: carry it out, then keep or drop it. Otherwise what is known of the first request."""
        now = self._clock()
        with writing(self._engine) as db:
            db.execute(delete(answers).where(answers.c.at < now - KEPT_FOR))
            found = _find(db, actor, key)
            if found and not _cut_off(found, now):
                return found
            db.execute(delete(answers).where(*_same(actor, key)))
            db.execute(insert(answers).values(**vars(Answer(actor, key, request, now))))
        return None

    def keep(
        self, actor: str, key: str, status: int, headers: Mapping[str, str], body: str
    ) -> None:
        """The answer that every later request under this key gets."""
        values = {"status": status, "headers": dict(headers), "body": body}
        with writing(self._engine) as db:
            db.execute(update(answers).where(*_same(actor, key)).values(**values))

    def drop(self, actor: str, key: str) -> None:
        """It came to nothing: the same request may be tried again."""
        with writing(self._engine) as db:
            db.execute(delete(answers).where(*_same(actor, key)))


def _find(db: Connection, actor: str, key: str) -> Answer | None:
    row = db.execute(select(answers).where(*_same(actor, key))).one_or_none()
    if row is None:
        return None
    return Answer(row.actor, row.key, row.request, row.at, row.status, row.body, row.headers)


def _cut_off(answer: Answer, now: datetime) -> bool:
    return not answer.status and answer.at < now - UNDER_WAY_FOR


def _same(actor: str, key: str) -> tuple[ColumnElement[bool], ...]:
    return answers.c.actor == actor, answers.c.key == key
