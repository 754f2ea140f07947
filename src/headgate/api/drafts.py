"""Documents that nobody has submitted yet: are they valid, and what would they become."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends

from headgate.api import problems
from headgate.api.base_models import ProblemFault
from headgate.api.bodies import judged
from headgate.api.filters import PATH
from headgate.api.guard import allowed
from headgate.api.models import DocumentValidationOut
from headgate.api.served import ServedHere
from headgate.compile.filters.compile import compile_filter
from headgate.control.identity.model import Identity
from headgate.errors import DeclarationError
from headgate.spec.filter import Filter

router = APIRouter(tags=["filters"])


@router.post(PATH + ":validate", operation_id="validateDocument", responses=problems.responses())
def validate(
    by: Annotated[Identity, Depends(allowed("validateDocument"))],
    here: ServedHere,
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
