"""Limits connections: seconds for head and body of a request, and the number of connections that wait.

    new ──head complete──▶ body ──body complete──▶ answering ──answered──▶ idle ──first byte──▶ new
     │                      │                          │                     │
     └── 10 s: 408, close   └── 30 s: 408, close       └── nobody reads      └── 5 s: close (uvicorn)
                                                           for 60 s: cut off

uvicorn closes idle connections only, so that 1,000 sockets whose head never comes would be an outage.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from headgate.errors import HeadgateError, RequestTimeoutError, TooManyError, UsageError
from headgate.web.middleware import SAFE_HEADERS
from headgate.web.problems import MEDIA_TYPE, headers_of, problem_of

HEAD_SECONDS = 10.0
BODY_SECONDS = 30.0
READ_SECONDS = 60.0
# Connections on which no request is being carried out. Beyond these the one that waits longest is
# closed: whoever wants something sends it at once. A proxy in front is one peer for all its callers.
MOST_WAITING_OF_A_PEER = 200
MOST_WAITING = 400


class _StrictConnection(h11.Connection):
    """Refuses a request that states the length of its body in two ways (RFC 9112, 6.1)."""

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {bytes(name).lower() for name, _ in event.headers}
            if {b"content-length", b"transfer-encoding"} <= names:
                raise h11.RemoteProtocolError("Content-Length and Transfer-Encoding together")
        return event


class LimitedProtocol(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, with limits."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.conn = _StrictConnection(
            h11.SERVER, max_incomplete_event_size=self.config.h11_max_incomplete_event_size or 65536
        )
        self._phase = ""
        self._waits_since = self.loop.time()
        self._deadline: asyncio.TimerHandle | None = None
        self._read_deadline: asyncio.TimerHandle | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether no request is being carried out: its head or body is not complete, or none came."""
        return bool(self._phase) or not self._is_answering

    @property
    def _is_answering(self) -> bool:
        # uvicorn has no cycle before the first request, whatever its type says.
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is not None and not cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._await("head", HEAD_SECONDS)
        self._close_one_too_many()

    def connection_lost(self, exc: Exception | None) -> None:
        self._await_nothing()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.conn.their_state is h11.IDLE:
            self._await("head", HEAD_SECONDS)
        super().data_received(data)

    def handle_events(self) -> None:
        # Also called when an answer is complete, for requests that were sent in advance.
        super().handle_events()
        if self.conn.their_state is h11.SEND_BODY and not self.transport.is_closing():
            self._await("body", BODY_SECONDS)
        elif self.conn.their_state is not h11.IDLE:
            self._await_nothing()

    def on_response_complete(self) -> None:
        self._waits_since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._read_deadline is None:
            # The rest of the answer is of no use to somebody who does not read.
            self._read_deadline = self.loop.call_later(READ_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        if self._read_deadline is not None:
            self._read_deadline.cancel()
            self._read_deadline = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        self._await_nothing()
        self._refuse(UsageError("the request is not HTTP that is taken here", why=msg))

    def _await(self, phase: str, seconds: float) -> None:
        """Begin to wait for the rest of a head or body; a phase that goes on keeps its deadline."""
        if phase != self._phase:
            self._await_nothing()
            self._phase, self._waits_since = phase, self.loop.time()
            self._deadline = self.loop.call_later(seconds, self._give_up, phase, seconds)

    def _await_nothing(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline, self._phase = None, ""

    def _give_up(self, phase: str, seconds: float) -> None:
        self._await_nothing()
        if phase == "body" and self.flow.read_paused:
            self._await(phase, seconds)  # it is the server that does not read on
            return
        self._refuse(
            RequestTimeoutError(
                f"the {phase} of the request did not come within {seconds:g} seconds",
                fix="send the whole request at once",
            )
        )

    def _refuse(self, error: HeadgateError) -> None:
        """Answer with the problem where an answer can still be sent, and close."""
        is_begun = bool(self.conn.trailing_data[0]) or self.conn.their_state is not h11.IDLE
        if is_begun and self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            for event in _answer(error):
                self.transport.write(self.conn.send(event) or b"")
        if self._is_answering:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()

    def _close_one_too_many(self) -> None:
        """Close the connection that has waited longest, where too many wait."""
        others = cast("set[LimitedProtocol]", self.connections)
        waiting = [one for one in others if one.is_waiting and not one.transport.is_closing()]
        own = [one for one in waiting if one._peer == self._peer]
        crowd = own if len(own) > MOST_WAITING_OF_A_PEER else waiting
        if len(own) > MOST_WAITING_OF_A_PEER or len(waiting) > MOST_WAITING:
            oldest = min(crowd, key=lambda one: one._waits_since)
            oldest._await_nothing()
            oldest._refuse(TooManyError("too many connections wait", fix="close those not in use"))

    @property
    def _peer(self) -> str:
        return self.client[0] if self.client else ""


def _answer(error: HeadgateError) -> tuple[h11.Event, ...]:
    problem = problem_of(error)
    body = problem.model_dump_json(by_alias=True, exclude_none=True).encode()
    headers = {
        **SAFE_HEADERS,
        **headers_of(problem),
        "Content-Type": MEDIA_TYPE,
        "Content-Length": str(len(body)),
        "Connection": "close",
    }
    start = h11.Response(
        status_code=problem.status,
        headers=list(headers.items()),
        reason=HTTPStatus(problem.status).phrase,
    )
    return start, h11.Data(data=body), h11.EndOfMessage()
