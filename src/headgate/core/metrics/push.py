"""HTTP push: windows and batches as a JSON array in one POST. At least once; each has an id."""

from __future__ import annotations

import http.client
from collections.abc import Iterable, Sequence
from typing import IO, Any, cast
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

import orjson

from headgate import __version__
from headgate.config.reference import without_secrets
from headgate.core.metrics.metrics_sinks import Change
from headgate.core.metrics.records import said
from headgate.errors import HeadgateError, OperationError, UnavailableError

TOO_LARGE = 413


class HttpPush:
    """POSTs to one URL, with `Authorization: Bearer <token>` where there is a token."""

    name = "http"
    at_most_once = False

    def __init__(self, url: str, token: str | None = None, timeout: float = 5.0) -> None:
        self._url, self._token, self._timeout = url, token, timeout
        self._opener = build_opener(_NoRedirect())

    def ready(self) -> None:
        """Nothing can be known before it is tried."""

    def send(self, changes: Sequence[Change]) -> None:
        """All of them in one request; a receiver that finds it too large gets halves."""
        if not changes:
            return
        try:
            self._post(body(changes))
        except _TooLargeError:
            if len(changes) == 1:
                raise
            middle = len(changes) // 2
            self.send(changes[:middle])
            self.send(changes[middle:])

    def close(self) -> None:
        self._opener.close()

    def _post(self, content: bytes) -> None:
        request = Request(self._url, content, self._headers(), method="POST")
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                cast("IO[bytes]", answer).read(1024)
        except HTTPError as error:
            with error:
                raise self._refused(error.code) from None
        except (URLError, OSError, http.client.HTTPException) as error:
            reason = str(getattr(error, "reason", None) or error) or type(error).__name__
            raise self._away(without_secrets(reason)) from None

    def _headers(self) -> dict[str, str]:
        token = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        about = {"Content-Type": "application/json", "User-Agent": f"headgate/{__version__}"}
        return {**about, **token}

    def _refused(self, status: int) -> HeadgateError:
        where = without_secrets(self._url)
        if status == TOO_LARGE:
            return _TooLargeError(f"{where} finds the metrics too large")
        if status in (401, 403):
            fix = "check METRICS_PUSH_TOKEN"
        else:
            fix = "check METRICS_PUSH_URL and the receiver's log; it is tried again"
        return OperationError(f"{where} did not take the metrics", why=f"HTTP {status}", fix=fix)

    def _away(self, why: str) -> UnavailableError:
        where = without_secrets(self._url)
        fix = "check METRICS_PUSH_URL; what waits is kept and sent later"
        return UnavailableError(f"{where} is away", why=why, fix=fix)


class _TooLargeError(OperationError):
    """The receiver takes less in one request."""


class _NoRedirect(HTTPRedirectHandler):
    """A redirect would make a GET of it, and carry the token to whoever is named there."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def body(changes: Iterable[Change]) -> bytes:
    """One JSON array of all messages."""
    return orjson.dumps([message for change in changes for message in said(change.record)])
