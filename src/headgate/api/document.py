"""The OpenAPI document with roles, problems, bodies and idempotency keys added, and a page for each error code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Path, Request
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field

from headgate.core.identity.roles import OPERATIONS, PUBLIC
from headgate.errors import HeadgateError, NotFoundError
from headgate.filters.api.models import Happened
from headgate.filters.spec import Filter
from headgate.web.idempotency import NAME, IdempotentRoute
from headgate.web.limits import KINDS
from headgate.web.models import Answered, Problem
from headgate.web.problems import PAGE, responses, status_of_kind

SCHEMAS = "#/components/schemas/{model}"
# Operations whose body is a filter document, which is read by us and not by FastAPI.
DOCUMENTS = frozenset({"createFilter", "updateFilter", "validateDocument", "dryRunDocument"})
SECURITY = {
    "key": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key (`headgate keys create`), or a token of the issuer.",
    },
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
IDEMPOTENCY = {
    "name": NAME,
    "in": "header",
    "required": False,
    "description": "The same key again gets the same answer, and nothing is done twice.",
    "schema": {"type": "string", "pattern": r"^[\x21-\x7e]{1,200}$"},
}


def describe(app: FastAPI) -> dict[str, Any]:
    """The document of this app, made once."""
    if app.openapi_schema is None:
        app.openapi_schema = _made(app)
    return app.openapi_schema


def _made(app: FastAPI) -> dict[str, Any]:
    made = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    components: dict[str, Any] = made.setdefault("components", {})
    components["securitySchemes"] = SECURITY
    schemas: dict[str, Any] = components.setdefault("schemas", {})
    _add(schemas, Problem)
    _add(schemas, Filter)
    _add(schemas, Happened)
    routes: tuple[APIRoute, ...] = app.state.served.routes
    kept = {
        route.operation_id
        for route in routes
        if isinstance(route, IdempotentRoute) and route.keeps_answers
    }
    for path in made["paths"].values():
        for operation in path.values():
            _finish(operation, operation["operationId"] in kept)
    return made


def _finish(operation: dict[str, Any], once: bool) -> None:
    name: str = operation["operationId"]
    if name not in PUBLIC:
        operation["security"] = [{scheme: []} for scheme in SECURITY]
        operation["x-roles"] = sorted(OPERATIONS[name])
    if name in DOCUMENTS:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": SCHEMAS.format(model="Filter")}}},
        }
    if name in KINDS:
        operation["responses"].setdefault("429", responses(429)[429])
    if once:
        operation.setdefault("parameters", []).append(IDEMPOTENCY)
        operation["responses"].setdefault("409", responses(409)[409])


def _add(schemas: dict[str, Any], model: type[BaseModel]) -> None:
    """A model and those inside it, where no route of FastAPI's names them."""
    schema = model.model_json_schema(by_alias=True, ref_template=SCHEMAS)
    for name, inner in schema.pop("$defs", {}).items():
        schemas.setdefault(name, inner)
    schemas[model.__name__] = schema


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
