"""Sends events to the API or straight into PostgreSQL, until each is there, however often it takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol

import httpx

from headgate.demo.filters.drawing import Drawn
from headgate.errors import OperationError, UnavailableError
from headgate.filters.events.exact_json import text_of
from headgate.filters.events.reading import read_event
from headgate.filters.events.writer import EventWriter

MOST_AT_ONCE = 100
PARTS_A_SECOND = 10
PAUSE_SECONDS = 0.5
PATH = "/api/v1/events/bulk"


class Target(Protocol):
    """Where events go; says how many are new there. An UnavailableError asks to try again."""

    def send(self, events: Sequence[Drawn]) -> int: ...


@dataclass(frozen=True)
class Sent:
    """`known` were there already: of an earlier try whose answer was lost, or of an earlier run."""

    events: int
    created: int
    known: int
    retries: int
    elapsed_seconds: float


@dataclass(frozen=True)
class ToPostgres:
    """As the API writes them, without the API."""

    writer: EventWriter

    def send(self, events: Sequence[Drawn]) -> int:
        return len(self.writer.write([read_event(event.body) for event in events]))


@dataclass(frozen=True)
class ToApi:
    """As a producer posts them."""

    client: httpx.Client

    def send(self, events: Sequence[Drawn]) -> int:
        body = text_of([event.body for event in events])
        headers = {"Content-Type": "application/json"}
        try:
            answer = self.client.post(PATH, content=body.encode(), headers=headers)
        except httpx.TransportError as error:
            raise UnavailableError("the API does not answer", why=str(error)) from None
        if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise UnavailableError("the API cannot work now", why=answer.text[:200])
        if answer.status_code not in (HTTPStatus.CREATED, HTTPStatus.MULTI_STATUS):
            raise OperationError(f"the API answered {answer.status_code}", why=answer.text[:500])
        return _created(answer)


def _created(answer: httpx.Response) -> int:
    found = answer.json()
    wrong = [r for r in found["results"] if r["status"] == HTTPStatus.UNPROCESSABLE_ENTITY]
    if wrong:
        raise OperationError("the API refused an event", why=str(wrong[0])[:500])
    return int(found["created"])


def send(
    target: Target,
    events: Sequence[Drawn],
    rate: float,
    patience: float,
    advance: Callable[[int], None],
    stop: Callable[[], bool] = lambda: False,
) -> Sent:
    """All events in order; `rate` 0 is as fast as it goes, `patience` the longest outage."""
    size = max(1, min(MOST_AT_ONCE, round(rate / PARTS_A_SECOND))) if rate else MOST_AT_ONCE
    begun = time.monotonic()
    created = done = retries = 0
    while done < len(events) and not stop():
        part = events[done : done + size]
        new, again = _until_there(target, part, patience)
        created, retries, done = created + new, retries + again, done + len(part)
        advance(len(part))
        if rate:
            time.sleep(max(0.0, begun + done / rate - time.monotonic()))
    return Sent(done, created, done - created, retries, time.monotonic() - begun)


def _until_there(target: Target, events: Sequence[Drawn], patience: float) -> tuple[int, int]:
    """How many were new, and how many tries failed before."""
    end, failed = time.monotonic() + patience, 0
    while True:
        try:
            return target.send(events), failed
        except UnavailableError:
            if time.monotonic() > end:
                raise
            failed += 1
            time.sleep(PAUSE_SECONDS)
