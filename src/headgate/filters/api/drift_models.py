"""What is asked and answered about mending drift."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from headgate.filters.api.api_models import DriftOut
from headgate.filters.git.mending import Mended, Side
from headgate.filters.spec import MOST_NAME, NAME
from headgate.web.models import Answered, Asked

FilterName = Annotated[str, Field(pattern=f"^{NAME}$", max_length=MOST_NAME)]


class MendIn(Asked):
    """`git`: it gets what was accepted here. `store`: git's documents are submitted for approval."""

    side: Side
    filters: Annotated[tuple[FilterName, ...], Field(max_length=1000)] = ()


class NotMendedOut(Answered):
    """A filter that could not be mended, and why; the others were."""

    filter_id: str
    why: str


class MendOut(Answered):
    """What was mended, what could not be, and what still differs."""

    filters: list[str]
    commits: list[str]
    refused: list[NotMendedOut]
    left: list[DriftOut]

    @classmethod
    def of(cls, mended: Mended) -> MendOut:
        left = [DriftOut.of(one) for one in mended.left]
        refused = [NotMendedOut(filter_id=one.filter, why=one.why) for one in mended.refused]
        filters, commits = list(mended.filters), list(mended.commits)
        return cls(filters=filters, commits=commits, refused=refused, left=left)
