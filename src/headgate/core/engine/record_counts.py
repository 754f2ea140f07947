"""How many records a batch has read, and how many of them are tombstones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from headgate.core.ledger.ops_store import OpsStore

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation


@dataclass(frozen=True)
class RecordCounts:
    """Records of a batch, tombstones among them; offsets without a record are in neither."""

    records: int
    tombstones: int


class RecordCounter:
    """Counts the records of a batch, while they are written if `observes`, else by a pass of their own.

    Observing costs every batch a little, and a second pass over the topic costs a batch with refused
    records much more: so a job observes where its batch before had some.
    """

    def __init__(self, records: DataFrame, observes: bool) -> None:
        self._records = records
        self.observes = observes
        self._observation: Observation | None = None

    @classmethod
    def of_job(cls, records: DataFrame, store: OpsStore, job: str) -> Self:
        """A counter that observes if the job's last batch had fewer rows than offsets."""
        last = store.newest_batches(job, 1)
        return cls(records, any(row.outcomes.get("accepted", 0) != row.span for row in last))

    def observed(self) -> DataFrame:
        """The records, to be written once: a second action on this frame would not be observed."""
        from pyspark.sql import Observation

        if not self.observes:
            return self._records
        observation = self._observation = Observation()
        return self._records.observe(observation, *_columns())

    def count(self, written: int, offsets: int) -> RecordCounts:
        """The counts, once `written` rows of these records are staged from a range of `offsets`.

        A retried task may be observed twice, so an observation that does not fit in between is not
        believed and the records are read again.
        """
        if self._observation is not None:
            counts = _counts(self._observation.get)
            if written + counts.tombstones <= counts.records <= offsets:
                return counts
        row = self._records.agg(*_columns()).first()
        return _counts(row.asDict() if row is not None else {})


def _columns() -> tuple[Column, Column]:
    from pyspark.sql import functions as F

    tombstones = F.count_if(F.col("value").isNull()).alias("tombstones")
    return F.count(F.lit(1)).alias("records"), tombstones


def _counts(row: dict[str, object]) -> RecordCounts:
    return RecordCounts(int(str(row.get("records") or 0)), int(str(row.get("tombstones") or 0)))
