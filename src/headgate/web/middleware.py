"""ASGI middleware for every request: request id, size limit of the body, safe headers, access log, request counts."""

from __future__ import annotations

import logging
import re
import time
import uuid
from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from headgate.errors import HeadgateError, UnavailableError
from headgate.web.problems import answer, problem_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 1024 * 1024
# Requests under way at once, streams among them. Beyond these only the liveness probe is answered.
MOST_REQUESTS = 500
LIVENESS = "/livez"
TOO_LARGE = f"a body has at most {MOST_BYTES:,} bytes"
FAILED = "the server failed; its log has the trace under the id of this request"
SAFE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LOG = logging.getLogger("headgate.api")
_ACCESS = logging.getLogger("headgate.api.access")


class Manners:
    """Plain ASGI, so that streams pass through as they come."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        id = given if _ID.fullmatch(given) else uuid.uuid4().hex
        scope.setdefault("state", {})["request_id"] = id
        exchange = _Exchange(scope, receive, send, id)
        self._under_way += 1
        try:
            if self._under_way > MOST_REQUESTS and scope["path"] != LIVENESS:
                await exchange.refuse(
                    UnavailableError("the server has too many requests under way")
                )
                return
            await self._app(scope, exchange.receive, exchange.send)
        except ClientDisconnect:
            _LOG.info("%s went away before its body was complete", id)
        except Exception as error:
            # The trace is for the log alone; what the caller gets is the id to look for.
            _LOG.error("%s failed", id, exc_info=error)
            await exchange.refuse(HeadgateError(FAILED))
        finally:
            self._under_way -= 1
            exchange.count()


class _Exchange:
    """One request and its answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, id: str) -> None:
        self._scope, self._receive, self._send, self._id = scope, receive, send, id
        self._bytes, self._status, self._begun = 0, 0, time.monotonic()

    async def receive(self) -> Message:
        message = await self._receive()
        self._bytes += len(message.get("body", b""))
        if self._bytes > MOST_BYTES:
            # Of the kind that FastAPI lets through where it reads a body itself.
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, TOO_LARGE)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in {**SAFE_HEADERS, "X-Request-Id": self._id}.items():
                headers.setdefault(name, value)
        await self._send(message)

    async def refuse(self, error: HeadgateError) -> None:
        """Answer with the problem; a half-sent answer cannot be taken back, only cut off."""
        if self._status:
            raise error
        response = answer(problem_of(error), Request(self._scope))
        await response(self._scope, self._receive, self.send)

    def count(self) -> None:
        # Neither headers nor the query: either may carry what is secret.
        took = time.monotonic() - self._begun
        # As it was sent: decoded, a path could have lines of its own.
        method, path = self._scope["method"], self._scope["raw_path"].decode("ascii", "replace")
        # Who asked, as far as that is known, and from where: a refused try has no other trace.
        caller = self._scope["state"].get("caller", "-")
        peer = (self._scope.get("client") or ("-",))[0]
        line = "%s %s %s %d %.1f ms %s %s"
        _ACCESS.info(line, self._id, method, path, self._status, took * 1000, peer, caller)
        operation = getattr(self._scope.get("route"), "operation_id", None)
        self._scope["app"].state.served.counts.add(operation or "none", self._status, took)
