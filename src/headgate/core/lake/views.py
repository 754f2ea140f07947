"""Permanent views in `spark_catalog.default`: what any client of the engine can list and query.

They live in the driver's memory, so they are made when an engine starts and whenever a revision is
deployed. A view that cannot be made never keeps an engine from running.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from headgate.core.lake.statements import create

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_SECONDS = 1.0
# A name of what is deployed, and the state of it: another state makes the views anew.
Deployed = Callable[[], Mapping[str, str]]
Statements = Callable[[str], Sequence[str]]


class Views:
    """Keeps the views of all that is deployed up to date, in a thread of its own."""

    def __init__(self, session: SparkSession, deployed: Deployed, statements: Statements) -> None:
        self._session = session.newSession()
        self._deployed, self._statements = deployed, statements
        self._made: dict[str, str] = {}
        self._told: dict[str, str] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="views", daemon=True)

    def start(self) -> None:
        self.look()
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(LOOK_SECONDS * 30)

    def look(self) -> None:
        """Make the views of what was deployed since the last look."""
        try:
            found = self._deployed()
        except Exception as error:  # the store may be away for a while
            logging.getLogger("headgate").warning("views: %s", error)
            return
        for name, state in found.items():
            if self._made.get(name) != state and self._is_made(name, state):
                self._made[name] = state

    def _is_made(self, name: str, state: str) -> bool:
        """Whether its views are there now; what fails is tried again at the next look."""
        try:
            create(self._session, self._statements(name))
        except Exception as error:  # the others are made all the same
            if self._told.get(name) != state:
                logging.getLogger("headgate").warning("views of %s: %s", name, error)
            self._told[name] = state
            return False
        return True

    def _keep(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            self.look()
