"""Dry runs: what a filter would have matched of the last events. Nothing is kept or sent."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from headgate.core.identity.model import Identity
from headgate.filters.api.api_filters import PATH, Document, FilterId
from headgate.filters.api.preview_models import PreviewOut
from headgate.web import problems
from headgate.web.authentication import allowed
from headgate.web.served import ServedHere

MOST_EVENTS, MOST_SAMPLES = 200_000, 100
router = APIRouter(tags=["filters"])

Last = Annotated[int, Query(ge=1, le=MOST_EVENTS, description="How many events are looked at.")]
Samples = Annotated[int, Query(ge=0, le=MOST_SAMPLES, description="How many are shown.")]


@router.post(PATH + "/{id}/dry-run", operation_id="dryRunFilter", responses=problems.responses(404))
def dry_run_filter(
    by: Annotated[Identity, Depends(allowed("dryRunFilter"))],
    here: ServedHere,
    id: FilterId,
    last: Last = 10_000,
    samples: Samples = 10,
) -> PreviewOut:
    """What the newest version would have matched, beside what runs now."""
    return PreviewOut.of(here.service.preview(by, id, last, samples))


@router.post(PATH + ":dry-run", operation_id="dryRunDocument", responses=problems.responses())
def dry_run_document(
    by: Annotated[Identity, Depends(allowed("dryRunDocument"))],
    here: ServedHere,
    body: Document,
    last: Last = 10_000,
    samples: Samples = 10,
) -> PreviewOut:
    """The same for a document that nobody has submitted yet."""
    return PreviewOut.of(here.service.preview(by, body, last, samples))
