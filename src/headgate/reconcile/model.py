"""A row as it stands on one side, and what reads rows by key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True)
class WholeRow:
    """Plain values by column; `version` as the row itself says it, `written` as its store does."""

    values: Mapping[str, object]
    version: datetime | None = None
    written: datetime | None = None

    @property
    def newest(self) -> datetime | None:
        """The row's version: its own, else when it was written."""
        return self.version or self.written


class RowsByKey(Protocol):
    """One side of a table; a key is text, as messages carry it."""

    def read(self, keys: Sequence[str]) -> dict[str, WholeRow]:
        """The rows that are there; a key that has none is left out."""
        ...
