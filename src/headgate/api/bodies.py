"""Bodies that are read by us: filter documents, with every fault at its place."""

from __future__ import annotations

import json

from fastapi import Request

from headgate.errors import DeclarationError, UnsupportedError, UsageError
from headgate.spec.filter import Filter
from headgate.spec.filter_loader import parse_text

JSON = "application/json"


async def json_text(request: Request) -> str:
    """The body as text, known to be JSON."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON and not kind.endswith("+json"):
        raise UnsupportedError(f"a body is {JSON}", fix=f"send Content-Type: {JSON}")
    try:
        text = (await request.body()).decode()
        json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError("the body is no JSON", why=str(error)[:200]) from None
    return text


async def document(request: Request) -> Filter:
    """The filter that the body declares; DeclarationError with all faults."""
    try:
        return parse_text(await json_text(request))
    except RecursionError:
        raise UsageError("the body is nested too deeply") from None


async def judged(request: Request) -> Filter | DeclarationError:
    """The filter, or what is wrong with it: for those who ask just that."""
    try:
        return await document(request)
    except DeclarationError as error:
        return error
