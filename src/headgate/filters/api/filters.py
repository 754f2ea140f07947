"""Routes of filter documents: create, list, read, change, delete; validate and dry-run without keeping anything."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from headgate.core.identity.roles import Identity
from headgate.core.ledger.answers import Answer
from headgate.errors import DeclarationError, UnsupportedError, UsageError
from headgate.filters.api.models import DeploymentOut, DocumentValidationOut, FilterList, FilterOut
from headgate.filters.api.preview_models import PreviewOut
from headgate.filters.compile.spark_sql import compile_filter
from headgate.filters.control.service import FilterService, Keep, Made
from headgate.filters.document_text import NotJsonError, read_json
from headgate.filters.loader import filter_of
from headgate.filters.spec import MOST_NAME, NAME, Filter
from headgate.filters.store.control import Change
from headgate.filters.store.model import FilterRecord, Operation, Status
from headgate.web import problems
from headgate.web.app_state import Served, served
from headgate.web.authentication import allowed
from headgate.web.idempotency import (
    IdempotentRoute,
    Once,
    OnceHere,
    if_match,
    not_modified,
    quoted,
    unchanged,
)
from headgate.web.models import ProblemFault


@dataclass(frozen=True)
class FilterState(Served):
    """What routes of filters depend on."""

    service: FilterService = field(kw_only=True)


FiltersHere = Annotated[FilterState, Depends(served)]


def kept(once: Once) -> Keep:
    """Keeps what a route is about to answer in the transaction of its change."""

    def keep(change: Change, made: Made, /) -> Made:
        once.keep(change, lambda: _answer_of(change, made, once.status))
        return made

    return keep


def _answer_of(change: Change, made: FilterRecord | Operation, status: int) -> Answer:
    """What the route is about to answer; it replaces this with its own bytes once it has."""
    headers = {"content-type": "application/json"}
    if isinstance(made, FilterRecord):
        headers |= {"etag": quoted(made.etag)}
        headers |= {"location": f"/api/v1/filters/{made.id}"} if status == 201 else {}
        body = FilterOut.of(made).model_dump_json(by_alias=True)
    else:
        record = change.filter(made.filter_id)
        assert record is not None, "an operation is always of a filter"
        headers |= {"location": f"/api/v1/operations/{made.id}"}
        body = DeploymentOut.of(made, record).model_dump_json(by_alias=True)
    return Answer("", "", "", change.now, status, body, headers)


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


PATH = "/api/v1/filters"
MOST_ON_A_PAGE = 200
router = APIRouter(prefix=PATH, tags=["filters"], route_class=IdempotentRoute)

FilterId = Annotated[str, Path(alias="id", pattern=f"^{NAME}$", max_length=MOST_NAME)]
IfMatch = Annotated[str, Depends(if_match)]
Document = Annotated[Filter, Depends(document)]
ETAG = {"ETag": {"description": "The state that was read.", "schema": {"type": "string"}}}
CHANGED = problems.responses(404, 409, 412, 428)


@router.post(
    "",
    operation_id="createFilter",
    status_code=201,
    responses=problems.responses(409) | {201: {"headers": ETAG}},
)
def create(
    by: Annotated[Identity, Depends(allowed("createFilter"))],
    here: FiltersHere,
    response: Response,
    body: Document,
    once: OnceHere,
) -> FilterOut:
    """A new filter. It waits for the approval of somebody else."""
    record = here.service.create(by, body, keep=kept(once))
    response.headers["Location"] = f"{PATH}/{record.id}"
    return tagged(record, response)


@router.get("", operation_id="listFilters", responses=problems.responses())
def list_filters(
    by: Annotated[Identity, Depends(allowed("listFilters"))],
    here: FiltersHere,
    request: Request,
    response: Response,
    status: Annotated[Status | None, Query()] = None,
    consumer: Annotated[str | None, Query(max_length=255)] = None,
    q: Annotated[str | None, Query(max_length=200, description="Words in id or document.")] = None,
    after: Annotated[str | None, Query(max_length=200, description="`next` of a page.")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_ON_A_PAGE)] = 50,
) -> FilterList:
    """The filters by id, a page at a time."""
    page = here.service.list(status=status, consumer=consumer, q=q, after=after, limit=limit)
    if page.after is not None:
        following = {**dict(request.query_params), "after": page.after}
        response.headers["Link"] = f'<{PATH}?{urlencode(following)}>; rel="next"'
    found = [FilterOut.of(record) for record in page.filters]
    return FilterList(filters=found, total=page.total, next=page.after)


@router.get(
    "/{id}",
    operation_id="getFilter",
    response_model=FilterOut,
    responses=problems.responses(404)
    | {200: {"headers": ETAG}, 304: {"description": "It is as it was."}},
)
def get(
    by: Annotated[Identity, Depends(allowed("getFilter"))],
    here: FiltersHere,
    id: FilterId,
    request: Request,
    response: Response,
) -> FilterOut | Response:
    """One filter and how it stands."""
    record = here.service.get(id)
    if unchanged(request, record.etag):
        return not_modified(record.etag)
    return tagged(record, response)


@router.put("/{id}", operation_id="updateFilter", responses=CHANGED | {200: {"headers": ETAG}})
def update(
    by: Annotated[Identity, Depends(allowed("updateFilter"))],
    here: FiltersHere,
    id: FilterId,
    match: IfMatch,
    response: Response,
    body: Document,
) -> FilterOut:
    """A new version. What is deployed runs on until the new one is approved and deployed.

    A document that turns off what runs needs a deployer or an operator, and changes nothing else.
    """
    return tagged(here.service.update(by, id, body, match), response)


@router.delete(
    "/{id}",
    operation_id="deleteFilter",
    status_code=204,
    response_model=None,
    responses=CHANGED
    | {204: {"description": "It is gone."}, 202: {"model": FilterOut, "headers": ETAG}},
)
def delete(
    by: Annotated[Identity, Depends(allowed("deleteFilter"))],
    here: FiltersHere,
    id: FilterId,
    match: IfMatch,
) -> Response:
    """Gone at once, or, when it runs or ran lately, after the approval of somebody else (202)."""
    record = here.service.delete(by, id, match)
    if record.status is Status.DELETED:
        return Response(status_code=204)
    body = FilterOut.of(record).model_dump_json(by_alias=True)
    headers = {"ETag": quoted(record.etag)}
    return Response(body, 202, headers=headers, media_type="application/json")


def tagged(record: FilterRecord, response: Response) -> FilterOut:
    """The record, with its state in the header."""
    response.headers["ETag"] = quoted(record.etag)
    return FilterOut.of(record)


documents_router = APIRouter(tags=["filters"])


@documents_router.post(
    PATH + ":validate", operation_id="validateDocument", responses=problems.responses()
)
def validate(
    by: Annotated[Identity, Depends(allowed("validateDocument"))],
    here: FiltersHere,
    body: Annotated[Filter | DeclarationError, Depends(judged)],
) -> DocumentValidationOut:
    """Every fault of a document at once, or its revision and SQL. Nothing is kept."""
    try:
        if isinstance(body, DeclarationError):
            raise body
        made = compile_filter(body)
    except DeclarationError as error:
        faults = [problems.fault_of(fault) for fault in error.faults]
        return DocumentValidationOut(valid=False, errors=faults)
    found = here.service.check_document(body)
    faults = [ProblemFault(detail=words) for words in found.errors]
    return DocumentValidationOut(
        valid=found.valid,
        errors=faults,
        warnings=list(found.warnings),
        revision=made.revision,
        sql=made.sql,
        statements=list(made.statements),
    )


MOST_EVENTS, MOST_SAMPLES = 200_000, 100

Last = Annotated[int, Query(ge=1, le=MOST_EVENTS, description="How many events are looked at.")]
Samples = Annotated[int, Query(ge=0, le=MOST_SAMPLES, description="How many are shown.")]


@documents_router.post(
    PATH + "/{id}/dry-run", operation_id="dryRunFilter", responses=problems.responses(404)
)
def dry_run_filter(
    by: Annotated[Identity, Depends(allowed("dryRunFilter"))],
    here: FiltersHere,
    id: FilterId,
    last: Last = 10_000,
    samples: Samples = 10,
) -> PreviewOut:
    """What the newest version would have matched, beside what runs now."""
    return PreviewOut.of(here.service.preview(by, id, last, samples))


@documents_router.post(
    PATH + ":dry-run", operation_id="dryRunDocument", responses=problems.responses()
)
def dry_run_document(
    by: Annotated[Identity, Depends(allowed("dryRunDocument"))],
    here: FiltersHere,
    body: Document,
    last: Last = 10_000,
    samples: Samples = 10,
) -> PreviewOut:
    """The same for a document that nobody has submitted yet."""
    return PreviewOut.of(here.service.preview(by, body, last, samples))
