"""Drift between git and the ops store, mended on the side that is wrong."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import Field

from headgate.api.guard import allowed
from headgate.api.idempotency import IdempotentRoute
from headgate.api.models import Answered, Asked, DriftOut
from headgate.api.problems import responses
from headgate.api.served import ServedHere
from headgate.control.git.mending import Mended, Side, mend
from headgate.control.identity.model import Identity
from headgate.spec.filter import MOST_NAME, NAME

router = APIRouter(prefix="/api/v1", tags=["audit"], route_class=IdempotentRoute)
FilterName = Annotated[str, Field(pattern=f"^{NAME}$", max_length=MOST_NAME)]


class MendIn(Asked):
    """`git`: it gets what was accepted here. `store`: git's documents are submitted for approval."""

    side: Side
    filters: Annotated[tuple[FilterName, ...], Field(max_length=1000)] = ()


class MendOut(Answered):
    """What was mended, and what still differs."""

    filters: list[str]
    commits: list[str]
    left: list[DriftOut]

    @classmethod
    def of(cls, mended: Mended) -> MendOut:
        left = [
            DriftOut(
                filter_id=one.filter,
                kind=one.kind.value,
                words=one.words,
                commit=one.commit.id if one.commit else None,
            )
            for one in mended.left
        ]
        return cls(filters=list(mended.filters), commits=list(mended.commits), left=left)


@router.post("/drift:mend", operation_id="mendDrift", responses=responses(404, 409, 503))
def mend_drift(
    here: ServedHere, by: Annotated[Identity, Depends(allowed("mendDrift"))], body: MendIn
) -> MendOut:
    """Mend drift on one side. What is submitted waits for a second person, as anything does."""
    return MendOut.of(mend(here.service, by, body.side, body.filters))
