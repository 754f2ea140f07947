"""Response of a dry run: matches before and after, masked samples, remarks, affected consumers."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self

from headgate.filters.control.model import Preview
from headgate.web.models import Answered


class SampleOut(Answered):
    """An event, masked: what is shown of it is said in docs/filters.md."""

    partition: int
    offset: int
    at: datetime | None
    columns: dict[str, Any]
    header_data: dict[str, Any] | None


class ConcernOut(Answered):
    consumer: str
    topic: str
    filters: list[str]
    added: int
    removed: int


class RemarkOut(Answered):
    kind: str
    other: str | None
    words: str


class PreviewOut(Answered):
    """What the filter would have matched of the last events, beside what runs now."""

    filter_id: str
    revision: str
    deployed_revision: str | None
    source: str
    events: int
    refused: int
    tombstones: int
    matched: int
    matched_before: int
    added: int
    removed: int
    kept: int
    samples_added: list[SampleOut]
    samples_removed: list[SampleOut]
    remarks: list[RemarkOut]
    consumers: list[ConcernOut]
    read: dict[str, tuple[int, int]]
    seconds: float
    unread: str

    @classmethod
    def of(cls, found: Preview) -> Self:
        listed: dict[str, list[dict[str, Any]]] = {
            "samples_added": [vars(one) for one in found.samples_added],
            "samples_removed": [vars(one) for one in found.samples_removed],
            "remarks": [vars(one) for one in found.remarks],
            "consumers": [vars(one) for one in found.consumers],
        }
        return cls.model_validate({**vars(found), **listed})
