"""Two tables compared on Spark: whole columns in one pass, or as multisets where there is no key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headgate.errors import OperationError
from headgate.reconcile.table_compare import keyed, repeated, unkeyed
from headgate.reconcile.table_compare.compare_asking import Asking
from headgate.reconcile.table_compare.compare_kept import Joined, Kept, keep
from headgate.reconcile.table_compare.found import Found, Repeated, Sample
from headgate.reconcile.table_compare.model import (
    MATCH,
    MISMATCH,
    MISSING_CLOUD,
    MISSING_ONPREM,
    SIDES,
    Plan,
)

SAMPLES = 10


class Comparison:
    """One comparison in one session, whose temporary views it uses."""

    def __init__(self, session: SparkSession, plan: Plan, samples: int = SAMPLES) -> None:
        self._asking, self._plan, self._samples = Asking(session, plan), plan, samples

    def script(self) -> str:
        """The SQL that `run` carries out where no key repeats."""
        if not self._plan.key:
            return unkeyed.unkeyed_sql(self._plan)
        return keyed.keyed_sql(self._plan, self._room(self._counted()))

    def run(self) -> Found:
        try:
            with self._asking.cleaned():
                return self._keyed() if self._plan.key else self._unkeyed()
        except PySparkException as error:
            raise OperationError("the comparison failed", why=first_line(error)) from error

    def _keyed(self) -> Found:
        rows = self._counted()
        kept = keep(self._asking, self._plan, keyed.keyed_sql(self._plan, self._room(rows)))
        joined = kept.joined()
        return self._found(kept, rows, joined) if _each_once(joined, rows) else self._apart(rows)

    def _apart(self, rows: dict[str, int]) -> Found:
        """Keys that repeat are judged by all their rows together, the others as before."""
        asking, plan = self._asking, self._plan
        asking.forget(keyed.DIFFERENCES)
        asking.carried_out(repeated.repeated_keys_sql(plan))
        once = keep(asking, plan, keyed.keyed_sql(plan, self._room(rows), repeated=True))
        found = self._found(once, rows, once.joined())
        script = asking.carried_out(repeated.repeated_sql(plan))
        counts = asking.rows(script.one("counts"))
        tolerant = any(column.tolerance is not None for column in plan.columns)
        return Found(
            plan=plan,
            how=found.how,
            rows=rows,
            counts=_added(found.counts, {str(r[0]): int(r[1]) for r in counts}),
            columns=_added(found.columns, asking.numbers(script.one("columns"))),
            repeated=Repeated(sum(int(r[2]) for r in counts), sum(int(r[3]) for r in counts)),
            samples=(*found.samples, *self._repeated_samples()),
            notes=("tolerances do not hold for keys that repeat",) if tolerant else (),
        )

    def _found(self, kept: Kept, rows: dict[str, int], joined: Joined) -> Found:
        how = f"by {', '.join(column.name for column in self._plan.key)}"
        return Found(
            plan=self._plan,
            how=how,
            rows=rows,
            counts={status: found[0] for status, found in joined.items()},
            columns=kept.columns(),
            samples=tuple(kept.samples(self._samples)) if self._samples else (),
        )

    def _unkeyed(self) -> Found:
        script = self._asking.carried_out(unkeyed.unkeyed_sql(self._plan))
        told = self._asking.numbers(script.one("counts"))
        counts = {status: told[status.lower()] for status in (MATCH, MISSING_CLOUD, MISSING_ONPREM)}
        rows = {
            "onprem": counts[MATCH] + counts[MISSING_CLOUD],
            "cloud": counts[MATCH] + counts[MISSING_ONPREM],
        }
        samples = tuple(self._unkeyed_samples())
        return Found(self._plan, "as multisets of rows", rows, counts, samples=samples)

    def _repeated_samples(self) -> Iterator[Sample]:
        if not self._samples:
            return
        query = repeated.repeated_samples_sql(self._plan, self._samples)
        for row in self._asking.rows(query):
            key = self._asking.values(row.asDict(recursive=True)[keyed.KEY])
            copies = int(row["onprem_copies"]), int(row["cloud_copies"])
            yield Sample(str(row[keyed.STATUS]), key, (), None, None, *copies)

    def _unkeyed_samples(self) -> Iterator[Sample]:
        if not self._samples:
            return
        for row in self._asking.rows(unkeyed.unkeyed_samples_sql(self._plan, self._samples)):
            values = row.asDict(recursive=True)
            copies = int(values[unkeyed.ONPREM_ROWS]), int(values[unkeyed.CLOUD_ROWS])
            status = MISSING_CLOUD if copies[0] > copies[1] else MISSING_ONPREM
            key = self._asking.values(values[unkeyed.ROW])
            yield Sample(status, key, (), None, None, *copies)

    def _counted(self) -> dict[str, int]:
        """Both sides' rows; Parquet and Iceberg know them without reading any."""
        each = (f"(SELECT count(*) FROM {self._plan.table(s).source}) AS {s}" for s in SIDES)
        return self._asking.numbers(f"SELECT {', '.join(each)}")

    def _room(self, rows: dict[str, int]) -> int:
        own = self._asking.partitions
        needed = keyed.partitions_for(self._plan, max(rows.values()))
        return max(int(own) if own.isdigit() else 1, needed)


def _each_once(joined: Joined, rows: dict[str, int]) -> bool:
    """Whether no key repeats: else joining gave more pairs than rows, or a side more rows than keys."""
    both = sum(joined.get(status, (0, 0))[0] for status in (MATCH, MISMATCH))
    nothing = (0, 0)
    alone = {
        "onprem": joined.get(MISSING_CLOUD, nothing),
        "cloud": joined.get(MISSING_ONPREM, nothing),
    }
    return all(
        both + alone[side][0] == rows[side] and alone[side][0] == alone[side][1] for side in SIDES
    )


def _added(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, int]:
    return {name: a.get(name, 0) + b.get(name, 0) for name in dict.fromkeys([*a, *b])}


def first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), repr(error))
