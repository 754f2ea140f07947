"""Operations, the audit log, drift from git, and the fields that conditions can ask about."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response

from headgate.core.identity.model import Identity
from headgate.filters.api.api_models import (
    AuditList,
    AuditOut,
    DriftList,
    DriftOut,
    FieldList,
    FieldOut,
    OperationList,
    OperationOut,
)
from headgate.filters.control.control_revisions import document_text
from headgate.filters.filter_conditions import OPERATORS, VALUE_TYPES
from headgate.filters.git.drift import drift_of
from headgate.filters.spec import COLUMNS, JSON_COLUMN, NUMBER_COLUMN
from headgate.web import problems
from headgate.web.authentication import allowed
from headgate.web.served import ServedHere

MOST_SEQ = 2**63 - 1
router = APIRouter(prefix="/api/v1")


@router.get(
    "/operations",
    operation_id="listOperations",
    tags=["operations"],
    responses=problems.responses(),
)
def operations(
    by: Annotated[Identity, Depends(allowed("listOperations"))],
    here: ServedHere,
    filter: Annotated[str | None, Query(max_length=100)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> OperationList:
    """What targets were asked to do, the newest first."""
    found = here.service.operations(filter, limit=limit)
    return OperationList(operations=[OperationOut.of(one) for one in found])


@router.get(
    "/operations/{id}",
    operation_id="getOperation",
    tags=["operations"],
    responses=problems.responses(404),
)
def operation(
    by: Annotated[Identity, Depends(allowed("getOperation"))],
    here: ServedHere,
    id: Annotated[str, Path(pattern=r"^[0-9a-f]{1,64}$")],
    response: Response,
) -> OperationOut:
    """One of them. `Retry-After` says when to look again."""
    found = here.service.operation(id)
    if not found.state.ended:
        response.headers["Retry-After"] = "1"
    return OperationOut.of(found)


@router.get("/audit", operation_id="listAudit", tags=["audit"], responses=problems.responses())
def audit(
    by: Annotated[Identity, Depends(allowed("listAudit"))],
    here: ServedHere,
    after: Annotated[int, Query(ge=0, le=MOST_SEQ)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> AuditList:
    """Everything that was done, in its order; each entry is chained to the one before."""
    found = here.service.audit(after, limit)
    following = found[-1].seq if len(found) == limit else None
    return AuditList(entries=[AuditOut.of(entry) for entry in found], next=following)


@router.get("/drift", operation_id="listDrift", tags=["audit"], responses=problems.responses(503))
def drift(by: Annotated[Identity, Depends(allowed("listDrift"))], here: ServedHere) -> DriftList:
    """Filters on which git and the ops store disagree."""
    git = here.service.git
    accepted = {one.filter_id: document_text(one.content) for one in here.store.control.accepted()}
    found = drift_of(git, accepted) if git else ()
    return DriftList(drift=[DriftOut.of(one) for one in found])


@router.get(
    "/schema/fields", operation_id="schemaFields", tags=["schema"], responses=problems.responses()
)
def fields(by: Annotated[Identity, Depends(allowed("schemaFields"))]) -> FieldList:
    """The columns of an event; `header_data` is JSON and takes a path."""
    found = [
        FieldOut(
            name=name,
            type="number" if name == NUMBER_COLUMN else "string",
            nested=name == JSON_COLUMN,
            operators=[op for op in OPERATORS if op != "matches" or name != NUMBER_COLUMN],
        )
        for name in COLUMNS
    ]
    return FieldList(fields=found, value_types=list(VALUE_TYPES))
