"""Counts taken while a statement runs; a count that did not arrive is unknown, never zero."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as LateError
from dataclasses import dataclass, field

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
        pool = ThreadPoolExecutor(max_workers=1)
        try:
            found = pool.submit(lambda: self._observation.get).result(SECONDS)
        except LateError:
            return None
        finally:
            pool.shutdown(wait=False)
        if "rows" not in found:
            return None
        return int(found["rows"]), int(found["matching"] or 0)

    def recount(self) -> tuple[int, int]:
        """The same counts by a read-only pass."""
        row = self.frame.agg(
            F.count(F.lit(1)).alias("rows"), self._matching().alias("matching")
        ).first()
        return (int(row["rows"]), int(row["matching"])) if row else (0, 0)

    def _matching(self) -> Column:
        return F.count_if(F.expr(self.condition))
