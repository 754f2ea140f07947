"""A model of a filter's life that shares no code with the product; random walks are judged by it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from headgate.filters.control.operations import ControlFaults, Point


class KilledError(BaseException):
    """Stands for `kill -9`: a BaseException, so that no handler of the product catches it."""


class FaultInjector(ControlFaults):
    """Raises KilledError once, when the control plane next passes `at_point`."""

    def __init__(self) -> None:
        super().__init__()
        self.at_point: Point | None = None

    def at(self, point: Point) -> None:
        if point is self.at_point:
            self.at_point = None
            raise KilledError(point)


@dataclass
class FilterModel:
    """Everything the judge knows about one filter.

    `writers` wrote since the last approval; `writers_by_revision` has everybody who ever wrote a content,
    `authors_by_version` who wrote a version. `rolled_back_versions` are those of `live_versions` that were
    rolled back from. `git_file` is the document at the branch's tip, with everybody who wrote on it since
    it was equal to the store's.
    """

    writers: set[str] = field(default_factory=set)
    writers_by_revision: dict[str, set[str]] = field(default_factory=dict)
    authors_by_version: dict[int, set[str]] = field(default_factory=dict)
    revision_by_version: dict[int, str] = field(default_factory=dict)
    git_file: tuple[dict[str, Any], set[str]] | None = None
    is_approved: bool = False
    revision: str = ""
    deletion_requested_by: str | None = None
    last_ran_at: datetime | None = None
    rolled_back_versions: set[int] = field(default_factory=set)
    approved_at: dict[str, datetime] = field(default_factory=dict)
    allowed_revisions: set[str] = field(default_factory=set)
    stopping_revisions: set[str] = field(default_factory=set)
    live_versions: list[int] = field(default_factory=list)
    paused: bool = False

    def forget(self) -> None:
        """Note that the filter is deleted: nothing of it runs, and no version can be rolled back to."""
        (
            self.live_versions,
            self.rolled_back_versions,
            self.deletion_requested_by,
            self.last_ran_at,
        ) = [], set(), None, None
        self.turn_off()

    def note_live(self, version: int) -> None:
        """Note that a version is live."""
        if self.live_versions[-1:] != [version]:
            self.live_versions.append(version)

    def rollback_target(self, live: int | None, failed: bool) -> int | None:
        """The version to which a rollback must go that names none."""
        ways = [one for one in reversed(self.live_versions) if one not in self.rolled_back_versions]
        if failed and live in ways:
            return live
        now = self.revision_by_version.get(live or 0)
        return next((one for one in ways if self.revision_by_version[one] != now), None)

    def note_rollback(self, live: int | None, to: int) -> None:
        """Rule out, as a later target, every version up to the live one that has its content."""
        content = self.revision_by_version.get(live or 0)
        if live is not None and content != self.revision_by_version[to]:
            self.rolled_back_versions |= {
                n for n, one in self.revision_by_version.items() if n <= live and one == content
            }

    def turn_off(self) -> None:
        """Allow what ran to stay only until the next step of the reconciler."""
        self.stopping_revisions |= self.allowed_revisions
        self.allowed_revisions = set()
