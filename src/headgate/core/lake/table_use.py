"""What jobs need of a table that maintenance compacts and expires: each capability names its tables and jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

DEAD_LETTERS_ROLE = "dead-letters"


@dataclass(frozen=True)
class TableUse:
    """One table by its role, and the jobs that go on from its snapshots.

    `resuming` go on from their newest commit in the table. `writing` may have a batch under way that
    is no commit yet. `readers` go on from a snapshot that their newest commit in the table of another
    role names: their jobs, each with that role.
    """

    role: str
    name: str
    resuming: frozenset[str] = frozenset()
    writing: frozenset[str] = frozenset()
    readers: Mapping[str, str] = field(default_factory=dict[str, str])
