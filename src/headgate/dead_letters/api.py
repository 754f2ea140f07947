"""REST routes of dead letters: list, group, show, plan and start a redrive; with their models."""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import Field, JsonValue

from headgate.core.identity.audit import AuditLog
from headgate.core.identity.roles import OPERATORS, Identity
from headgate.dead_letters.masking import ListedLetter, ShownLetter, hidden_names, listed, shown
from headgate.dead_letters.redrive import RedriveJournal, need_journal
from headgate.dead_letters.service import MOST, PER_SECOND, Redriving, open_redriving
from headgate.dead_letters.table import Chosen, Group, RedrivePlan, RedriveReport
from headgate.errors import (
    ConflictError,
    DeclarationError,
    Fault,
    ForbiddenError,
    HeadgateError,
    TooManyError,
    UnavailableError,
)
from headgate.web.app_state import Served, ServedHere
from headgate.web.authentication import allowed
from headgate.web.idempotency import IdempotentRoute
from headgate.web.models import Answered, Asked
from headgate.web.problems import responses

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


BUSY_SECONDS, WAIT_SECONDS, MOST_READERS = 1.0, 5.0, 2
_READING = threading.BoundedSemaphore(MOST_READERS)
_LOG = logging.getLogger("headgate.api")
router = APIRouter(prefix="/api/v1", tags=["dead letters"], route_class=IdempotentRoute)


def queried(
    job: Annotated[Word | None, Query()] = None,
    reason: Annotated[Word | None, Query()] = None,
    topic: Annotated[Word | None, Query()] = None,
    since: Annotated[Moment | None, Query()] = None,
    until: Annotated[Moment | None, Query()] = None,
) -> Chosen:
    return Chosen(job, reason, topic, since, until)


Queried = Annotated[Chosen, Depends(queried)]


@router.get("/dead-letters", operation_id="listDeadLetters", responses=responses(404, 429, 503))
def list_letters(
    here: ServedHere,
    by: Annotated[Identity, Depends(allowed("listDeadLetters"))],
    which: Queried,
    after: Annotated[LetterId | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> LettersOut:
    """The newest first, without their content."""
    with _opened(here) as redriving:
        sent = redriving.redriven()
        found = redriving.letters.facts(which, limit, after)
    items = [LetterOut.of(listed(one, redriven=one.id in sent)) for one in found]
    return LettersOut(items=items, next=items[-1].id if len(items) == limit else None)


@router.get("/dead-letters/groups", operation_id="groupDeadLetters", responses=responses(429, 503))
def group_letters(
    here: ServedHere,
    by: Annotated[Identity, Depends(allowed("groupDeadLetters"))],
    which: Queried,
) -> GroupsOut:
    """Counted by job, reason code and topic."""
    with _opened(here) as redriving:
        found = redriving.letters.groups(which, list(redriving.redriven()))
    return GroupsOut(items=[GroupOut.of(group) for group in found])


@router.get("/dead-letters/{id}", operation_id="getDeadLetter", responses=responses(404, 429, 503))
def get_letter(
    here: ServedHere,
    by: Annotated[Identity, Depends(allowed("getDeadLetter"))],
    id: Annotated[LetterId, Path()],
    reveal: Annotated[bool, Query(description="Tagged values too; operators only.")] = False,
) -> ShownOut:
    """One letter, tagged values masked unless an operator asks for them, which is audited."""
    if reveal:
        _refuse_revealing(by)
    with _opened(here) as redriving:
        letter = redriving.letters.letter(id)
        place = redriving.redriven().get(id, "")
    if reveal:
        _audited(here, by, "reveal_dead_letter", id, origin=letter.facts.origin)
    hidden = hidden_names(here.settings)
    return ShownOut.shown(shown(letter, hidden, reveal=reveal, redriven=place))


@router.post("/dead-letters:plan", operation_id="planRedrive", responses=responses(404, 429, 503))
def plan_redrive(
    here: ServedHere, by: Annotated[Identity, Depends(allowed("planRedrive"))], body: PlanIn
) -> PlanOut:
    """What a redrive would send; nothing is sent."""
    _refuse_everything(body)
    with _opened(here) as redriving:
        return PlanOut.of(redriving.plan(body.chosen(), body.limit, body.to, again=body.again))


@router.post(
    "/dead-letters:redrive",
    operation_id="redriveDeadLetters",
    status_code=202,
    responses=responses(404, 409, 429, 503),
)
def redrive(
    here: ServedHere,
    by: Annotated[Identity, Depends(allowed("redriveDeadLetters"))],
    body: RedriveIn,
    response: Response,
) -> RedriveOut:
    """Begin to send letters again, or go on with `resume`; ask the Location how far it is."""
    if not here.settings.bootstrap_servers:
        raise UnavailableError("no broker is known here", fix="set BOOTSTRAP_SERVERS")
    with _opened(here) as redriving:
        if body.resume is not None:
            journal = need_journal(here.settings.home, body.resume)
        else:
            _refuse_everything(body)
            plan = redriving.plan(body.chosen(), body.limit, body.to, again=body.again)
            journal = redriving.begin(plan, by.name, datetime.now(UTC))
    topics = sorted({item.topic for item in journal.items})
    detail = {"letters": len(journal.items), "resume": bool(body.resume), "topics": topics}
    _audited(here, by, "redrive", journal.name, **detail)
    _start(here, journal, body.per_second)
    response.headers["Location"] = f"/api/v1/redrives/{journal.name}"
    return RedriveOut.of(journal.report())


@router.get("/redrives/{name}", operation_id="getRedrive", responses=responses(404))
def get_redrive(
    here: ServedHere,
    by: Annotated[Identity, Depends(allowed("getRedrive"))],
    name: Annotated[str, Path(pattern=r"^redrive-[0-9T]{1,40}$")],
) -> RedriveOut:
    """How far a redrive is; what is left after a stop goes on with `resume`."""
    return RedriveOut.of(need_journal(here.settings.home, name).report())


@contextmanager
def _opened(here: Served) -> Generator[Redriving]:
    """A few at a time: each reads the lake, in the process that also reconciles."""
    if not _READING.acquire(timeout=WAIT_SECONDS):
        raise TooManyError("too many look at dead letters just now", fix="try again in a moment")
    try:
        with open_redriving(here.settings) as redriving:
            yield redriving
    finally:
        _READING.release()


def _refuse_everything(body: Choice) -> None:
    if body.chosen().condition == "TRUE":
        fix = "give ids, job, reason, topic, since or until"
        raise DeclarationError([Fault("", None, "", "no letters are chosen", fix)])


def _refuse_revealing(by: Identity) -> None:
    if not by.has(OPERATORS):
        raise ForbiddenError(
            f"{by.name} may not see tagged values",
            fix="leave reveal out, or ask an operator",
        )


def _audited(here: Served, by: Identity, action: str, subject: str, **detail: Any) -> None:
    with here.store.part(AuditLog).change() as change:
        change.audit(by.name, action, subject, **detail)


def _start(here: Served, journal: RedriveJournal, per_second: int) -> None:
    """In a thread of its own; when the server stops, it ends between two batches."""

    def carry_out() -> None:
        try:
            while not _carried_out(here, journal, per_second):
                here.stopping.wait(BUSY_SECONDS)
        except HeadgateError as error:
            _LOG.warning("%s: %s", journal.name, error.one_line)

    threading.Thread(target=carry_out, name=journal.name, daemon=True).start()


def _carried_out(here: Served, journal: RedriveJournal, per_second: int) -> bool:
    """False while another redrive is under way: it is waited for."""
    if here.stopping.is_set():
        return True
    try:
        with open_redriving(here.settings) as redriving:
            redriving.carry_out(journal, per_second, stopped=here.stopping.is_set)
    except ConflictError:
        return False
    return True
