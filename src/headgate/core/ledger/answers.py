"""Answers kept for 24 hours by caller and Idempotency-Key, so that a repeated request is not carried out again.

The first request under a key claims it; one that did not end within two minutes was cut off with its process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, Engine, delete, func, insert, select, update

from headgate.core.ledger.database import writing
from headgate.core.ledger.tables import answers

KEPT_FOR = timedelta(hours=24)
# A larger answer is not kept: its request, sent again, is judged by the state that it made.
MOST_CHARACTERS = 256 * 1024
# Of one caller together; the oldest answers go first.
MOST_OF_A_CALLER = 8 * 1024 * 1024
# What a row takes beside its body, about.
ROW_CHARACTERS = 512
# A request that did not end in this time was cut off with its process.
UNDER_WAY_FOR = timedelta(minutes=2)


@dataclass(frozen=True)
class Answer:
    """What was answered to a request with an Idempotency-Key; `status` 0: not answered yet."""

    actor: str
    key: str
    request: str
    at: datetime
    status: int = 0
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class AnswerStore:
    """The first request under a key claims it; later ones get its answer."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime]) -> None:
        self._engine, self._clock = engine, clock

    def claim(self, actor: str, key: str, request: str) -> Answer | None:
        """None: carry it out, then keep or drop it. Otherwise what is known of the first request."""
        now = self._clock()
        with writing(self._engine) as db:
            db.execute(delete(answers).where(answers.c.at < now - KEPT_FOR))
            found = find_answer(db, actor, key)
            if found and not _cut_off(found, now):
                return found
            db.execute(delete(answers).where(*_same(actor, key)))
            db.execute(insert(answers).values(**vars(Answer(actor, key, request, now))))
        return None

    def find(self, actor: str, key: str) -> Answer | None:
        """What was answered under this key, unless it is too long ago."""
        with self._engine.connect() as db:
            answer = find_answer(db, actor, key)
        return answer if answer and answer.at >= self._clock() - KEPT_FOR else None

    def keep(
        self, actor: str, key: str, status: int, headers: Mapping[str, str], body: str
    ) -> None:
        """The answer that every later request under this key gets."""
        if len(body) > MOST_CHARACTERS:
            self.drop(actor, key)
            return
        values = {"status": status, "headers": dict(headers), "body": body}
        with writing(self._engine) as db:
            db.execute(update(answers).where(*_same(actor, key)).values(**values))
            _drop_oldest(db, actor)

    def drop(self, actor: str, key: str) -> None:
        """It came to nothing: the same request may be tried again."""
        with writing(self._engine) as db:
            db.execute(delete(answers).where(*_same(actor, key)))


def _drop_oldest(db: Connection, actor: str) -> None:
    """Drop the oldest kept answers of a caller who is over the quota, down to half of it."""
    size = func.length(answers.c.body) + ROW_CHARACTERS
    kept = (answers.c.actor == actor, answers.c.status != 0)
    if (db.scalar(select(func.sum(size)).where(*kept)) or 0) <= MOST_OF_A_CALLER:
        return
    newest_first = select(answers.c.key, size.label("size")).where(*kept)
    total, surplus = 0, list[str]()
    for row in db.execute(newest_first.order_by(answers.c.at.desc(), answers.c.key)):
        total += row.size
        if total > MOST_OF_A_CALLER // 2:
            surplus.append(row.key)
    for key in surplus:
        db.execute(delete(answers).where(*_same(actor, key)))


def find_answer(db: Connection, actor: str, key: str) -> Answer | None:
    row = db.execute(select(answers).where(*_same(actor, key))).one_or_none()
    if row is None:
        return None
    return Answer(row.actor, row.key, row.request, row.at, row.status, row.body, row.headers)


def add_answer(db: Connection, answer: Answer) -> None:
    """Keep an answer in the transaction of the change that it is of, within the same limits."""
    db.execute(delete(answers).where(answers.c.at < answer.at - KEPT_FOR))
    if len(answer.body) <= MOST_CHARACTERS:
        db.execute(delete(answers).where(*_same(answer.actor, answer.key)))
        db.execute(insert(answers).values(**vars(answer)))
        _drop_oldest(db, answer.actor)


def _cut_off(answer: Answer, now: datetime) -> bool:
    return not answer.status and answer.at < now - UNDER_WAY_FOR


def _same(actor: str, key: str) -> tuple[ColumnElement[bool], ...]:
    return answers.c.actor == actor, answers.c.key == key
