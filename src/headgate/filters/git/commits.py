"""Commits of accepted versions: made from the outbox in the ops store, each on its own."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

from headgate.core.identity.control_audit import head_trailer
from headgate.errors import HeadgateError
from headgate.filters.control.faults import ControlFaults, Point
from headgate.filters.git.git_store import GitStore
from headgate.filters.store.control import ControlStore
from headgate.filters.store.control_model import GitErrand

# So often a repository that nothing is to be committed to is looked at.
CHECK_SECONDS = 30.0
# A step ends after so many failures: the reconciler has other things to do than to wait for git.
MOST_FAILURES = 5


class Commits:
    """Makes the commits that wait, and knows why it cannot.

    `trouble` is empty while git works. What fails for one filter is noted there and keeps only the
    later commits of that filter waiting.
    """

    def __init__(self, git: GitStore, control: ControlStore, faults: ControlFaults) -> None:
        self._git = git
        self._control = control
        self._faults = faults
        self._checked_at = float("-inf")
        self._turn = 0
        self.trouble = ""

    def step(self) -> None:
        """Make the commits that wait, in the order of each filter."""
        waiting = self._control.open_errands()
        if not waiting:
            self._check()
            return
        failed: dict[str, str] = {}
        for filter_id, errands in self._by_filter(waiting).items():
            if len(failed) >= MOST_FAILURES:
                break
            for errand in errands:
                if trouble := self._commit(errand):
                    failed[filter_id] = trouble
                    break
        self.trouble = next(iter(failed.values()), "")

    def _by_filter(self, waiting: Sequence[GitErrand]) -> dict[str, list[GitErrand]]:
        """In the order of each filter; those that failed last, and every time another one first."""
        filters: dict[str, list[GitErrand]] = {}
        for errand in waiting:
            filters.setdefault(errand.filter_id, []).append(errand)
        sound = [id for id, errands in filters.items() if not any(one.trouble for one in errands)]
        failing = deque(id for id in filters if id not in sound)
        self._turn += MOST_FAILURES
        failing.rotate(-self._turn)
        return {id: filters[id] for id in (*sound, *failing)}

    def _commit(self, errand: GitErrand) -> str:
        """Make one commit; why it could not be made, or nothing."""
        try:
            commit = self._committed(errand)
        except Exception as error:
            # Whatever git holds makes one commit fail, never the reconciler.
            trouble = (
                error.one_line
                if isinstance(error, HeadgateError)
                else f"{type(error).__name__}: {error}"
            )
            if trouble != errand.trouble:
                self._control.note_errand(errand.id, None, trouble)
            return trouble
        self._faults.at(Point.AFTER_COMMIT)
        self._control.note_errand(errand.id, commit)
        self._faults.at(Point.AFTER_COMMIT_NOTED)
        return ""

    def _committed(self, errand: GitErrand) -> str:
        message = f"{errand.message.rstrip()}\n{self._separator(errand)}"
        message += head_trailer(self._control.audit_head())
        if errand.text is None:
            return self._git.remove(errand.filter_id, errand.author, message)
        return self._git.commit(errand.filter_id, errand.text, errand.author, message)

    def _separator(self, errand: GitErrand) -> str:
        """A trailer stands in the last paragraph; a message of one line has none yet."""
        return "" if "\n\n" in errand.message.rstrip() else "\n"

    def _check(self) -> None:
        """Whether git works is known before the next commit is to be made."""
        if time.monotonic() - self._checked_at < CHECK_SECONDS:
            return
        self._checked_at = time.monotonic()
        try:
            self._git.files()
            self.trouble = ""
        except HeadgateError as error:
            self.trouble = error.one_line
