"""What the API says about itself: its OpenAPI document, and each kind of error by its code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from pydantic import Field

from headgate.errors import HeadgateError, NotFoundError
from headgate.web.models import Answered
from headgate.web.problems import PAGE, responses, status_of_kind

PAGE_OF_ALL = "docs/reference/errors.md"
router = APIRouter(tags=["reference"])


class ErrorKindOut(Answered):
    """What an error code means; the `type` of a problem leads here."""

    code: str
    title: str
    status: int = Field(description="The HTTP status of problems of this kind.")
    exit_code: int = Field(description="What the commands of `headgate` end with.")
    retryable: bool = Field(description="Whether the same request may succeed later.")
    page: str = Field(description="Where the documentation says more.")


@router.get("/openapi.json", operation_id="openapi")
def openapi(request: Request) -> dict[str, Any]:
    """The OpenAPI document of this server."""
    return request.app.openapi()


@router.get(PAGE + "{code}", operation_id="describeError", responses=responses(404))
def describe_error(
    code: Annotated[str, Path(pattern=r"^[Hh][Gg]-[0-9]{4}$")],
) -> ErrorKindOut:
    """What an error code means."""
    kind = error_kinds().get(code.upper())
    if kind is None:
        raise NotFoundError(f"there is no error {code.upper()}", fix=f"see {PAGE_OF_ALL}")
    return ErrorKindOut(
        code=kind.code,
        title=(kind.__doc__ or "").partition("\n")[0],
        status=status_of_kind(kind),
        exit_code=kind.exit_code,
        retryable=kind.retryable,
        page=f"{PAGE_OF_ALL}#{kind.code.lower()}",
    )


def error_kinds() -> Mapping[str, type[HeadgateError]]:
    """Every kind of error that is loaded, by its code; of two with one code the more general."""
    kinds: dict[str, type[HeadgateError]] = {}
    for kind in _and_below(HeadgateError):
        kinds.setdefault(kind.code, kind)
    return kinds


def _and_below(kind: type[HeadgateError]) -> Iterator[type[HeadgateError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _and_below(below)
