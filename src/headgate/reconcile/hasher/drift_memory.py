"""Which columns beside the contract are known: drift is what came or went since, also while nobody looked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from headgate.core.runtime.whole_file import whole_file
from headgate.reconcile.hasher.drift import NOTHING, Drift

# What came or went, and whether anything was known before: the first look finds no drift.
Note = Callable[[Drift, bool], None]


class DriftMemory:
    """Kept in a file, so that a start is no drift; a table that was made anew is looked at anew."""

    def __init__(self, file: Path, note: Note) -> None:
        self._file, self._note = file, note

    def look(self, drift: Drift, table_id: str) -> None:
        known = self._read(table_id)
        if drift == known:
            return
        self._note(drift.since(known or NOTHING), known is not None)
        self._write(drift, table_id)

    def _read(self, table_id: str) -> Drift | None:
        """None also for a file that cannot be read: it is made anew from what is there now."""
        try:
            found: Any = orjson.loads(self._file.read_bytes())
            known = Drift(tuple(found["new"]), tuple(found["removed"]))
            return known if found["table_id"] == table_id else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _write(self, drift: Drift, table_id: str) -> None:
        told = {"table_id": table_id, "new": drift.new, "removed": drift.removed}
        with whole_file(self._file) as part:
            part.write_bytes(orjson.dumps(told) + b"\n")
