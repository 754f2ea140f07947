"""What tests ask of a job beside what is declared for it."""

from __future__ import annotations

from headgate.core.engine.run_options import TopicRequest, TopicRunForm
from headgate.pipeline.job_kinds import BackfillRunOptions, SilverRunForm, SilverRunOptions
from headgate.pipeline.revision import Dates

REPAIR = TopicRequest(form=TopicRunForm.REPAIR)
ACCEPT_GAP = TopicRequest(form=TopicRunForm.ACCEPT_GAP, accepted_by="ann")
REBUILD_SILVER = SilverRunOptions(form=SilverRunForm.FULL)


def request_backfill(first: str, last: str) -> BackfillRunOptions:
    """The request to make the silver rows of these dates anew."""
    return BackfillRunOptions(dates=Dates.parse(first, last))
