"""What is asked and answered about dead letters."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, JsonValue

from headgate.dead_letters.dead_letters import Chosen, Group
from headgate.dead_letters.masking import ListedLetter, ShownLetter
from headgate.dead_letters.model import RedrivePlan, RedriveReport
from headgate.dead_letters.redriving import MOST, PER_SECOND
from headgate.web.models import Answered, Asked

# No NUL: it cannot stand in any of these.
Word = Annotated[str, Field(max_length=250, pattern=r"^[^\x00]*$")]
LetterId = Annotated[str, Field(pattern=r"^[0-9a-f]{20}$")]
Moment = Annotated[datetime, Field(description="RFC 3339.")]


class Choice(Asked):
    """Which letters; at least one of these is needed to send some again."""

    ids: Annotated[tuple[LetterId, ...], Field(max_length=MOST)] = ()
    job: Word | None = None
    reason: Word | None = None
    topic: Word | None = None
    since: Moment | None = None
    until: Moment | None = None

    def chosen(self) -> Chosen:
        return Chosen(self.job, self.reason, self.topic, self.since, self.until, self.ids)


class PlanIn(Choice):
    """What to send again, and where to if not to the topics they came from."""

    to: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")] | None = None
    limit: Annotated[int, Field(ge=1, le=MOST)] = MOST
    again: bool = False


class RedriveIn(PlanIn):
    """A plan to carry out, or with `resume` the name of one that was interrupted."""

    per_second: Annotated[int, Field(ge=1, le=10_000)] = PER_SECOND
    resume: Annotated[str, Field(pattern=r"^redrive-[0-9T]{1,40}$")] | None = None


class LetterOut(Answered):
    """One letter of a list: nothing of its content."""

    id: str
    refused_at: datetime
    job: str
    reason_code: str
    reason: str
    topic: str | None
    partition: int | None
    offset: int | None
    bytes: int
    redriven: bool

    @classmethod
    def of(cls, one: ListedLetter) -> LetterOut:
        return cls(**vars(one))


class LettersOut(Answered):
    items: list[LetterOut]
    next: str | None = Field(description="Give it as `after` to go on.")


class GroupOut(Answered):
    """Letters of one job, reason and topic."""

    job: str
    reason_code: str
    topic: str | None
    letters: int
    redriven: int
    first: datetime
    last: datetime
    example: str
    words: str

    @classmethod
    def of(cls, group: Group) -> GroupOut:
        return cls(**vars(group))


class GroupsOut(Answered):
    items: list[GroupOut]


class ShownOut(LetterOut):
    """One letter with its content, tagged values masked."""

    revision: str
    timestamp: datetime | None
    key: str | None
    value: JsonValue
    headers: dict[str, str | None]
    masked: bool
    attempts: int
    redriven_to: str

    @classmethod
    def shown(cls, one: ShownLetter) -> ShownOut:
        facts: dict[str, Any] = {**vars(one.facts), "redriven": bool(one.redriven)}
        own = {name: getattr(one, name) for name in ("key", "value", "masked", "attempts")}
        return cls(**facts, **own, headers=dict(one.headers), redriven_to=one.redriven)


class PlanOut(Answered):
    """What would be sent: how many to which topic, and why others are left alone."""

    letters: int
    topics: dict[str, int]
    reasons: dict[str, int]
    skipped: dict[str, int]
    ids: list[str]

    @classmethod
    def of(cls, plan: RedrivePlan) -> PlanOut:
        why = [outcome.why for outcome in plan.skipped]
        return cls(
            letters=len(plan.items),
            topics=plan.topics,
            reasons=plan.reasons,
            skipped={word: why.count(word) for word in set(why)},
            ids=[item.id for item in plan.items],
        )


class RedriveOut(Answered):
    """How far a redrive is."""

    redrive: str
    planned: int
    sent: int
    refused: dict[str, int]
    skipped: dict[str, int]
    left: int
    closed: bool

    @classmethod
    def of(cls, report: RedriveReport) -> RedriveOut:
        return cls.model_validate(vars(report))
