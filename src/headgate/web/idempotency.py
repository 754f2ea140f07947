"""Carries out a POST with an Idempotency-Key once and repeats its answer; strong ETags for conditional requests.

A route that takes `once` claims its key, changes and keeps its answer in one transaction: whenever the server is
killed, the repeated request is either carried out or answered at once. A request that touches more than the
ops store claims its key first and keeps its answer when it is done.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import Depends, Header, Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from headgate.core.identity.audit import AuditedChange
from headgate.core.identity.roles import READS, Identity
from headgate.core.ledger.answers import Answer, AnswerStore, add_answer, find_answer
from headgate.errors import (
    ConflictError,
    DeclarationError,
    DuplicateError,
    Fault,
    PreconditionMissingError,
    StaleError,
)
from headgate.web.app_state import served
from headgate.web.problems import HEADER

_TAG = re.compile(r'(W/)?"([^"]*)"')


def quoted(etag: str) -> str:
    return f'"{etag}"'


def if_match(
    if_match: Annotated[str | None, Header(description="The ETag that was read.")] = None,
) -> str:
    """The state that the change was made from; 428 when it does not say so."""
    if if_match is None or if_match.strip() in ("", "*"):
        raise PreconditionMissingError(
            "a change needs If-Match",
            why="without it the change of somebody else could be overwritten unseen",
            fix="send the ETag of the answer that you changed",
        )
    strong = [tag for weak, tag in _TAG.findall(if_match) if not weak]
    if len(strong) != 1:
        raise StaleError("If-Match names no state that can be compared", fix="send one strong ETag")
    return strong[0]


def unchanged(request: Request, etag: str) -> bool:
    """Whether the caller has this state already (If-None-Match)."""
    given = request.headers.get("if-none-match", "")
    return given.strip() == "*" or any(tag == etag for _, tag in _TAG.findall(given))


def not_modified(etag: str) -> Response:
    return Response(status_code=304, headers={"ETag": quoted(etag)})


NAME = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
LONGEST = 200
KEPT_HEADERS = ("content-type", "etag", "location")
# POSTs because they have a body, or compute: nothing is changed by them.
READING_POSTS = READS | {"planRedrive"}
_FORM = re.compile(rf"[\x21-\x7e]{{1,{LONGEST}}}")


# They take `once` and keep their answer by it.
IN_ONE_TRANSACTION = frozenset(
    {
        "createFilter",
        "approveFilter",
        "rejectFilter",
        "deployFilter",
        "rollbackFilter",
        "pauseFilter",
        "resumeFilter",
    }
)


@dataclass
class _Pending:
    """A request under a key; `actor` is known once it has passed the guard."""

    key: str
    request: str
    actor: str | None = None


class Once:
    """The Idempotency-Key of one request, claimed and answered inside the transaction of its change."""

    def __init__(self, pending: _Pending | None, status: int) -> None:
        self._pending = pending
        self.status = status

    def keep(self, change: AuditedChange, answer: Callable[[], Answer]) -> None:
        """Keep the answer with the change; when another request was first, undo this one for its answer."""
        pending = self._pending
        if pending is not None and pending.actor is not None:
            kept = find_answer(change.db, pending.actor, pending.key)
            if kept is not None:
                refuse_other_request(kept, pending)
                raise _Known(kept)
            add_answer(change.db, replace(answer(), **vars(pending), at=change.now))


def once(request: Request) -> Once:
    """The dependency of a route that changes a filter."""
    route = request.scope["route"]
    return Once(getattr(request.state, "pending", None), route.status_code or 200)


OnceHere = Annotated[Once, Depends(once)]


class _Known(Exception):
    """It was answered before."""

    def __init__(self, kept: Answer) -> None:
        super().__init__()
        self.kept = kept


class IdempotentRoute(APIRoute):
    """`APIRouter(route_class=IdempotentRoute)`: its POSTs that change something take the key.

    A POST that only reads is carried out again: its answer is not kept, however large it is.
    """

    @property
    def keeps_answers(self) -> bool:
        return "POST" in (self.methods or ()) and self.operation_id not in READING_POSTS

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        plain = super().get_route_handler()
        if not self.keeps_answers:
            return plain

        async def once(request: Request) -> Response:
            if NAME not in request.headers:
                return await plain(request)
            pending = _Pending(_key(request), await _digest(request))
            request.state.pending = pending
            try:
                response = await plain(request)
            except _Known as known:
                return _again(known.kept)
            except BaseException:
                await _end(request, pending, None)
                raise
            await _end(request, pending, response)
            return response

        return once


def claim(request: Request, identity: Identity) -> None:
    """Called by the guard, so that a key which holds no longer gets no kept answer either."""
    pending: _Pending | None = getattr(request.state, "pending", None)
    if pending is None:
        return
    if request.scope["route"].operation_id in IN_ONE_TRANSACTION:
        kept = _answers(request).find(identity.name, pending.key)
    else:
        kept = _answers(request).claim(identity.name, pending.key, pending.request)
    if kept is None:
        pending.actor = identity.name
        return
    refuse_other_request(kept, pending)
    if not kept.status:
        raise ConflictError("the first request under this key is still under way", fix="try again")
    raise _Known(kept)


def refuse_other_request(kept: Answer, pending: _Pending) -> None:
    if kept.request != pending.request:
        raise DuplicateError(
            f"this {NAME} was used for another request",
            why="its path or body was a different one",
            fix="take a new key for a new request",
        )


async def _end(request: Request, pending: _Pending, response: Response | None) -> None:
    """Keep what succeeded. What failed changed nothing, and may be tried again."""
    if pending.actor is None:
        return
    answers = _answers(request)
    if response is None or response.status_code >= 300:
        if request.scope["route"].operation_id not in IN_ONE_TRANSACTION:
            await run_in_threadpool(answers.drop, pending.actor, pending.key)
        return
    headers = {n: response.headers[n] for n in KEPT_HEADERS if n in response.headers}
    body = bytes(response.body).decode()
    status = response.status_code
    await run_in_threadpool(answers.keep, pending.actor, pending.key, status, headers, body)


def _again(kept: Answer) -> Response:
    return Response(kept.body, kept.status, {**kept.headers, REPLAYED: "true"})


def _answers(request: Request) -> AnswerStore:
    return served(request).store.part(AnswerStore)


def _key(request: Request) -> str:
    given = request.headers[NAME]
    if not _FORM.fullmatch(given):
        fix = f"Use 1 to {LONGEST} printable ASCII characters without blanks."
        raise DeclarationError([Fault(HEADER, None, NAME, "is no key", fix)])
    return given


async def _digest(request: Request) -> str:
    asked = f"{request.method} {request.url.path}?{request.url.query}\n".encode()
    return hashlib.sha256(asked + await request.body()).hexdigest()
