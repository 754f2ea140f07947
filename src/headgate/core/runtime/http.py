"""HTTP requests that are sent once and answered, whatever the status, or end in NoAnswerError.

Certificates are checked against those that this machine trusts. httpx is imported with the first request, since
most commands send none.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from httpx import Response


class NoAnswerError(OSError):
    """Nothing answered, or what came is no HTTP; its text is the library's reason."""


@contextmanager
def open_response(
    method: str,
    url: str,
    timeout: float,
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
    *,
    follow_redirects: bool = False,
) -> Generator[Response]:
    """The answer to one request; its body is yet to be read."""
    import httpx

    try:
        with httpx.stream(
            method,
            url,
            timeout=timeout,
            headers=headers,
            content=content,
            follow_redirects=follow_redirects,
            verify=_trusted_certificates(),
        ) as answer:
            yield answer
    except (httpx.RequestError, httpx.InvalidURL) as error:
        raise NoAnswerError(str(error) or type(error).__name__) from error


def send_json(
    method: str,
    url: str,
    timeout: float,
    body: object = None,
    content_type: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The whole answer to a request that has JSON or nothing in it; only reading follows redirects."""
    content = None if body is None else json.dumps(body).encode()
    own = {"Accept": content_type, "Content-Type": content_type, **(headers or {})}
    reads = method == "GET"
    with open_response(method, url, timeout, own, content, follow_redirects=reads) as answer:
        answer.read()
        return answer


def read_text(url: str, timeout: float) -> str:
    """The text of a page, wherever it has moved to; NoAnswerError unless it is there."""
    with open_response("GET", url, timeout, follow_redirects=True) as answer:
        if not answer.is_success:
            raise NoAnswerError(f"HTTP {answer.status_code} {answer.reason_phrase}")
        return answer.read().decode("utf-8", "replace")


@cache
def _trusted_certificates() -> ssl.SSLContext:
    return ssl.create_default_context()
