"""What goes to sinks: closed windows, and what batches have counted."""

from __future__ import annotations

from typing import Any

from headgate.core.metrics.batches import BatchRecord, batch_fields
from headgate.core.metrics.metrics_windows import WindowRecord, messages

Record = WindowRecord | BatchRecord


def said(record: Record) -> tuple[dict[str, Any], ...]:
    """All messages of a record, for sinks that take JSON."""
    return (batch_fields(record),) if isinstance(record, BatchRecord) else messages(record)
