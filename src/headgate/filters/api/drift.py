"""Drift between git and the ops store, mended on the side that is wrong."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends

from headgate.core.identity.model import Identity
from headgate.filters.api.drift_models import MendIn, MendOut
from headgate.filters.git.mending import mend
from headgate.web.api_idempotency import IdempotentRoute
from headgate.web.authentication import allowed
from headgate.web.problems import responses
from headgate.web.served import ServedHere

router = APIRouter(prefix="/api/v1", tags=["audit"], route_class=IdempotentRoute)


@router.post("/drift:mend", operation_id="mendDrift", responses=responses(404, 409, 503))
def mend_drift(
    here: ServedHere, by: Annotated[Identity, Depends(allowed("mendDrift"))], body: MendIn
) -> MendOut:
    """Mend drift on one side. What is submitted waits for a second person, as anything does."""
    return MendOut.of(mend(here.service, by, body.side, body.filters))
