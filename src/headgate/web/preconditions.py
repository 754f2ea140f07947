"""Strong ETags: what was read, what a change was made from."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Header, Request, Response

from headgate.errors import PreconditionMissingError, StaleError

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
