"""Documents that nobody has submitted yet: are they valid, and what would they become."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends

from headgate.core.identity.model import Identity
from headgate.errors import DeclarationError
from headgate.filters.api.api_filters import PATH
from headgate.filters.api.api_models import DocumentValidationOut
from headgate.filters.api.bodies import judged
from headgate.filters.compile.compile import compile_filter
from headgate.filters.spec import Filter
from headgate.web import problems
from headgate.web.authentication import allowed
from headgate.web.models import ProblemFault
from headgate.web.served import ServedHere

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
