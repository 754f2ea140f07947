"""Drift between git and the ops store, mended on the side that is wrong."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends

from headgate.api.drift_models import MendIn, MendOut
from headgate.api.guard import allowed
from headgate.api.idempotency import IdempotentRoute
from headgate.api.problems import responses
from headgate.api.served import ServedHere
from headgate.control.git.mending import mend
from headgate.control.identity.model import Identity

router = APIRouter(prefix="/api/v1", tags=["audit"], route_class=IdempotentRoute)


@router.post("/drift:mend", operation_id="mendDrift", responses=responses(404, 409, 503))
def mend_drift(
    here: ServedHere, by: Annotated[Identity, Depends(allowed("mendDrift"))], body: MendIn
) -> MendOut:
    """Mend drift on one side. What is submitted waits for a second person, as anything does."""
    return MendOut.of(mend(here.service, by, body.side, body.filters))
