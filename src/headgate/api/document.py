"""The OpenAPI document: what FastAPI finds, and what only we know (roles, problems, bodies, keys)."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel

from headgate.core.identity.policy import OPERATIONS, PUBLIC
from headgate.filters.api.api_models import Happened
from headgate.filters.spec import Filter
from headgate.web.api_idempotency import NAME, IdempotentRoute
from headgate.web.limits import KINDS
from headgate.web.models import Problem
from headgate.web.problems import responses

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
    routes: tuple[APIRoute, ...] = app.state.routes
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
