"""Renders errors as RFC 9457 problems: status, code, detail, what to do, and every fault with its JSON pointer.

`install` adds the handlers to an app; `responses` names the possible problems of a route in the OpenAPI document.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.exceptions import HTTPException

from headgate.config.reference import alternatives
from headgate.declarations.errors import MOST_FAULTS, json_pointer, suggestion
from headgate.errors import (
    ConflictError,
    DeclarationError,
    Fault,
    ForbiddenError,
    HeadgateError,
    IllegalTransitionError,
    NotFoundError,
    PreconditionMissingError,
    RequestTimeoutError,
    StaleError,
    TooLargeError,
    TooManyError,
    UnauthenticatedError,
    UnavailableError,
    UnsupportedError,
    UsageError,
)
from headgate.web.app_state import served
from headgate.web.models import Problem, ProblemFault

MEDIA_TYPE = "application/problem+json"
PAGE = "/api/v1/errors/"
# The `file` of a fault that is no part of the body.
QUERY, HEADER = "query", "header"
RETRY_SECONDS = "2"
_LOG = logging.getLogger("headgate.api")


STATUS: Mapping[type[HeadgateError], int] = {
    HeadgateError: 500,
    NotFoundError: 404,
    UsageError: 400,
    PreconditionMissingError: 428,
    RequestTimeoutError: 408,
    TooLargeError: 413,
    TooManyError: 429,
    UnsupportedError: 415,
    DeclarationError: 422,
    ConflictError: 409,
    StaleError: 412,
    ForbiddenError: 403,
    UnauthenticatedError: 401,
    UnavailableError: 503,
}


def status_of(error: HeadgateError) -> int:
    """The status of the nearest kind in the table."""
    return status_of_kind(type(error))


def status_of_kind(kind: type[HeadgateError]) -> int:
    """The status of the nearest kind in the table, for the error's class."""
    return next(STATUS[base] for base in kind.__mro__ if base in STATUS)


def problem_of(error: HeadgateError) -> Problem:
    """The problem that says the same as the error."""
    faults = error.faults if isinstance(error, DeclarationError) else ()
    allowed = error.allowed if isinstance(error, IllegalTransitionError) else ()
    return _problem(
        status_of(error),
        error.code,
        title=_first_line(type(error).__doc__ or ""),
        detail=error.what if faults else ": ".join(filter(None, (error.what, error.why))),
        fix=error.fix,
        errors=[fault_of(fault) for fault in faults[: MOST_FAULTS + 1]],
        allowed=list(allowed),
    )


def answer(problem: Problem, request: Request) -> Response:
    """The problem as a response, with the id of the request that made it."""
    said = problem.model_copy(update={"request_id": request_id(request)})
    body = said.model_dump_json(by_alias=True, exclude_none=True)
    return Response(body, problem.status, headers=headers_of(problem), media_type=MEDIA_TYPE)


def request_id(request: Request) -> str:
    return str(request.scope.get("state", {}).get("request_id", ""))


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What a route may answer besides its result, for the OpenAPI document."""
    common = (400, 401, 403, 413, 415, 422, 503)
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": content}
        for status in sorted({*common, *statuses})
    }


def install(app: FastAPI) -> None:
    """Every error leaves this app as a problem; what nobody foresaw is caught by Manners."""
    app.add_exception_handler(HeadgateError, _on_headgate_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(DBAPIError, _on_store_error)
    # No DBAPIError: all connections of the pool were in use for too long.
    app.add_exception_handler(PoolTimeoutError, _on_store_error)


async def _on_headgate_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HeadgateError)
    problem = problem_of(error)
    if problem.status >= 500:
        _LOG.warning("%s %s: %s", request_id(request), error.code, error.one_line)
    hidden = {name: _without_folders(getattr(problem, name), request) for name in ("detail", "fix")}
    return answer(problem.model_copy(update=hidden), request)


def _without_folders(words: str, request: Request) -> str:
    """Without the places of this server's folders: they are for the log, not for callers."""
    settings = served(request).settings
    for folder in (str(settings.home), str(settings.root)):
        words = words.replace(folder, "…") if len(folder) > 1 else words
    return words


async def _on_store_error(request: Request, error: Exception) -> Response:
    # Its words may name the store's place and what was asked of it: they are for the log alone.
    _LOG.error("%s: the ops store failed: %s", request_id(request), type(error).__name__)
    _LOG.debug("%s", request_id(request), exc_info=error)
    return answer(problem_of(UnavailableError("the ops store does not answer")), request)


async def _on_validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return answer(invalid(error.errors(), known_fields(request)), request)


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    title = HTTPStatus(error.status_code).phrase
    kind = next(
        (kind for kind, status in STATUS.items() if status == error.status_code), UsageError
    )
    problem = _problem(error.status_code, kind.code, title=title, detail=error.detail)
    made = answer(problem, request)
    made.headers.update(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        made.headers["Allow"] = ", ".join(methods_of(request))
    return made


def methods_of(request: Request) -> list[str]:
    """What may be done at this path: by all its routes, of which the router names only the first."""
    here = [
        route for route in served(request).routes if route.path_regex.match(request.scope["path"])
    ]
    return sorted({method for route in here for method in route.methods or ()})


def known_fields(request: Request) -> frozenset[str]:
    """The fields of the body that the route takes; empty where it takes none."""
    field = getattr(request.scope.get("route"), "body_field", None)
    kinds = alternatives(field.field_info.annotation) if field is not None else ()
    models = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return frozenset(
        info.alias or name for model in models for name, info in model.model_fields.items()
    )


def invalid(errors: Sequence[Mapping[str, Any]], known: Collection[str] = frozenset()) -> Problem:
    """All faults that pydantic found in body and parameters; 400 where the body is no JSON."""
    found = [_from_pydantic(error, known) for error in errors[:MOST_FAULTS]]
    malformed = any(error["type"] == "json_invalid" for error in errors)
    count = "one fault" if len(errors) == 1 else f"{len(errors)} faults"
    return _problem(
        400 if malformed else 422,
        UsageError.code if malformed else DeclarationError.code,
        title="The request is not valid.",
        detail=f"the request is not valid: {count}",
        errors=found,
    )


def _from_pydantic(error: Mapping[str, Any], known: Collection[str]) -> ProblemFault:
    where, *inside = error["loc"] or ("body",)
    # What was given is not repeated: it may be a secret.
    words = str(error["msg"])
    if where != "body":
        return ProblemFault(detail=words, parameter=".".join(map(str, inside)))
    if error["type"] == "json_invalid":
        return ProblemFault(detail=words, pointer="")
    if error["type"] == "extra_forbidden" and len(inside) == 1:
        fix = suggestion(str(inside[0]), known, "fields")
        return ProblemFault(detail="is no field of this", pointer=json_pointer(inside), fix=fix)
    return ProblemFault(detail=words, pointer=json_pointer(inside))


def fault_of(fault: Fault) -> ProblemFault:
    """A fault of a declaration as a problem lists it."""
    if fault.file in (QUERY, HEADER):
        return ProblemFault(detail=fault.what, parameter=fault.field, fix=fault.fix)
    # The whole body is the empty pointer.
    inside = fault.field if fault.field.startswith("/") and fault.field != "/" else ""
    return ProblemFault(detail=fault.what, pointer=inside, fix=fault.fix)


def _problem(
    status: int,
    code: str,
    title: str,
    detail: str,
    fix: str = "",
    errors: Sequence[ProblemFault] = (),
    allowed: Sequence[str] = (),
) -> Problem:
    return Problem(
        type=PAGE + code,
        title=title,
        status=status,
        detail=detail,
        code=code,
        fix=fix,
        errors=list(errors),
        allowed=list(allowed),
    )


def headers_of(problem: Problem) -> dict[str, str]:
    """What a problem's answer says in its head: who may ask, or when to ask again."""
    if problem.status == 401:
        return {"WWW-Authenticate": 'Bearer realm="headgate"'}
    return {"Retry-After": RETRY_SECONDS} if problem.status in (429, 503) else {}


def _first_line(words: str) -> str:
    return words.strip().partition("\n")[0]
