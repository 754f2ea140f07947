"""Counts taken while a statement runs; a count that did not arrive is unknown, never zero."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

SECONDS = 10.0


@dataclass(frozen=True)
class Counted:
    """A frame that counts its rows, and how many fulfil `condition`, while it is read once."""

    frame: DataFrame
    condition: str
    _observation: Observation = field(default_factory=Observation)

    def observed(self) -> DataFrame:
        return self.frame.observe(
            self._observation, F.count(F.lit(1)).alias("rows"), self._matching().alias("matching")
        )

    def seen(self) -> tuple[int, int] | None:
        """Rows and matching rows of the pass that was made; None when the counts are unknown."""
        found: list[Mapping[str, Any]] = []
        # A daemon: counts that never arrive must not keep the process from ending.
        waiter = threading.Thread(target=lambda: found.append(self._observation.get), daemon=True)
        waiter.start()
        waiter.join(SECONDS)
        if not found or "rows" not in found[0]:
            return None
        return int(found[0]["rows"]), int(found[0]["matching"] or 0)

    def recount(self) -> tuple[int, int]:
        """The same counts by a read-only pass."""
        row = self.frame.agg(
            F.count(F.lit(1)).alias("rows"), self._matching().alias("matching")
        ).first()
        return (int(row["rows"]), int(row["matching"])) if row else (0, 0)

    def _matching(self) -> Column:
        return F.count_if(F.expr(self.condition))
