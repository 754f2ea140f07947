"""Bodies that are read by us: filter documents, with every fault at its place."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from headgate.errors import DeclarationError, UnsupportedError, UsageError
from headgate.filters.document_text import NotJsonError, read_json
from headgate.filters.loader import filter_of
from headgate.filters.spec import Filter

JSON = "application/json"


async def json_body(request: Request) -> bytes:
    """The body, said to be JSON by its Content-Type."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON and not kind.endswith("+json"):
        raise UnsupportedError(f"a body is {JSON}", fix=f"send Content-Type: {JSON}")
    return await request.body()


JsonBody = Annotated[bytes, Depends(json_body)]


# Not `async`: what follows computes, and FastAPI runs it in a thread beside the event loop.
def document(body: JsonBody) -> Filter:
    """The filter that the body declares; DeclarationError with all faults."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise UsageError(
            "the body cannot be read", why=f"byte {error.start} is not UTF-8"
        ) from None
    try:
        parsed = read_json(text)
    except NotJsonError as error:
        raise UsageError("the body cannot be read", why=error.what, fix=error.fix) from None
    return filter_of(parsed, text)


def judged(body: JsonBody) -> Filter | DeclarationError:
    """The filter, or what is wrong with it: for those who ask just that."""
    try:
        return document(body)
    except DeclarationError as error:
        return error
