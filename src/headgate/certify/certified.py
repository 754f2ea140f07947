"""Notes in the ops store of what was certified last, which the next certificate is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from headgate.core.accounting.facts import CertifiedTable, TableEvidence

if TYPE_CHECKING:
    from headgate.core.ledger.ops_store import OpsStore

_NOTES = TypeAdapter(dict[str, CertifiedTable])


def read_certified(store: OpsStore, dataset: str) -> Mapping[str, CertifiedTable]:
    """The dataset's tables as the last certificate that held has found them, by their role."""
    mark = store.read_mark(_mark_name(dataset))
    return _NOTES.validate_json(mark.value) if mark else {}


def note_certified(
    store: OpsStore, dataset: str, tables: Mapping[str, TableEvidence], made_at: datetime
) -> None:
    """Replace the note by what a certificate that holds has found."""
    notes = {
        role: CertifiedTable(
            made_at, table.snapshot_id, table.rows, table.content_hash, table.columns, table.until
        )
        for role, table in tables.items()
        if table.until is not None
    }
    store.mark(_mark_name(dataset), _NOTES.dump_json(notes).decode())


def _mark_name(dataset: str) -> str:
    return f"certified:{dataset}"
