"""Change data of Cassandra (Debezium's standalone program): which key changed, and nothing more.

An event carries only the cells that were written, so the row is looked up; that also makes events
that come twice, or in another order, harmless.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from headgate.reconcile.hasher.asked import Asked, Record, Skipped, fields_of, sendable
from headgate.reconcile.hasher.key_path import text_of

DELETED = "d"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def changed_of(record: Record, key: Sequence[str]) -> Asked | Skipped:
    """The key that an event changed or deleted; of several columns the JSON list of their texts."""
    data = fields_of(record.value) if record.value is not None else None
    if data is None:
        return Skipped("not_json")
    after = data.get("after")
    cells = cast("Mapping[str, Any]", after if isinstance(after, dict) else {})
    parts = [_cell(cells.get(name)) for name in key]
    if any(part is None for part in parts):
        return Skipped("missing_pk")
    text = sendable(parts[0] if len(parts) == 1 else json.dumps(parts, ensure_ascii=False))
    if text is None:
        return Skipped("missing_pk")
    return Asked(text, _moment(data, record), record, deleted=data.get("op") == DELETED)


def _cell(cell: Any) -> str | None:
    """A key's cell is wrapped with its deletion time; a plain value is taken as it is."""
    if isinstance(cell, dict) and "value" in cell:
        return text_of(cast("Mapping[str, Any]", cell)["value"])
    return text_of(cell)


def _moment(data: Mapping[str, Any], record: Record) -> datetime:
    """When it was written to Cassandra; `ts_ms` of the event itself is only when it was sent on."""
    source = data.get("source")
    written = cast("Mapping[str, Any]", source if isinstance(source, dict) else {})
    said = [
        (written.get("ts_us"), timedelta(microseconds=1)),
        (written.get("ts_ms"), timedelta(milliseconds=1)),
        (data.get("ts_ms"), timedelta(milliseconds=1)),
    ]
    times = (_since(value, unit) for value, unit in said)
    return next((found for found in times if found is not None), record.timestamp)


def _since(value: Any, unit: timedelta) -> datetime | None:
    try:
        return EPOCH + int(value) * unit
    except (TypeError, ValueError, OverflowError):
        return None
