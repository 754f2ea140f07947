"""Two tables compared on Spark: whole columns in one pass, or as multisets where there is no key."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import TypeAlias, cast

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from headgate.compile.compare import keyed, repeated, unkeyed
from headgate.compile.compare.found import Found, Repeated, Sample, Values
from headgate.compile.compare.model import (
    MATCH,
    MISMATCH,
    MISSING_CLOUD,
    MISSING_ONPREM,
    SIDES,
    STATUSES,
    Plan,
)
from headgate.compile.compare.sides import REPEATED, VIEW, zoned
from headgate.compile.script import Script, parse_script
from headgate.engine.statements import sql
from headgate.errors import OperationError

FILE = "compare.sql"
# By status: joined rows, and keys among them that did not match.
Joined: TypeAlias = dict[str, tuple[int, int]]
SAMPLES = 10


class Comparison:
    """One comparison in one session, whose temporary views it uses."""

    def __init__(self, session: SparkSession, plan: Plan, samples: int = SAMPLES) -> None:
        self._session, self._plan, self._samples = session, plan, samples
        self._partitions = str(session.conf.get("spark.sql.shuffle.partitions", "200"))

    def script(self) -> str:
        """The SQL that `run` carries out where no key repeats."""
        if not self._plan.key:
            return unkeyed.unkeyed_sql(self._plan)
        return keyed.keyed_sql(self._plan, self._room(self._counted()))

    def run(self) -> Found:
        try:
            with self._cleaned():
                return self._keyed() if self._plan.key else self._unkeyed()
        except PySparkException as error:
            raise OperationError("the comparison failed", why=first_line(error)) from error

    def _keyed(self) -> Found:
        rows = self._counted()
        script = self._carried_out(keyed.keyed_sql(self._plan, self._room(rows)))
        joined = self._joined(script)
        return self._found(script, rows, joined) if _each_once(joined, rows) else self._apart(rows)

    def _joined(self, script: Script) -> Joined:
        found = self._rows(script.one("counts"))
        return {str(row[0]): (int(row[1]), int(row[2])) for row in found}

    def _apart(self, rows: dict[str, int]) -> Found:
        """Keys that repeat are judged by all their rows together, the others as before."""
        self._forget(keyed.DIFFERENCES)
        self._carried_out(repeated.repeated_keys_sql(self._plan))
        once = self._carried_out(keyed.keyed_sql(self._plan, self._room(rows), repeated=True))
        found = self._found(once, rows, self._joined(once))
        script = self._carried_out(repeated.repeated_sql(self._plan))
        counts = self._rows(script.one("counts"))
        often = Repeated(sum(int(r[2]) for r in counts), sum(int(r[3]) for r in counts))
        columns = self._first(script.one("columns"))
        notes = ("tolerances do not hold for keys that repeat",) if self._tolerant() else ()
        return Found(
            plan=self._plan,
            how=found.how,
            rows=rows,
            counts=_added(found.counts, {str(r[0]): int(r[1]) for r in counts}),
            columns=_added(found.columns, columns),
            repeated=often,
            samples=(*found.samples, *self._repeated_samples()),
            notes=notes,
        )

    def _found(self, script: Script, rows: dict[str, int], joined: Joined) -> Found:
        counts = {status: found[0] for status, found in joined.items()}
        columns = dict.fromkeys((column.name for column in self._plan.columns), 0)
        if counts.get(MISMATCH):
            columns = self._first(script.one("columns"))
        how = f"by {', '.join(column.name for column in self._plan.key)}"
        samples = tuple(self._keyed_samples(counts))
        return Found(self._plan, how, rows, counts, columns, samples=samples)

    def _unkeyed(self) -> Found:
        script = self._carried_out(unkeyed.unkeyed_sql(self._plan))
        told = self._first(script.one("counts"))
        counts = {status: told[status.lower()] for status in (MATCH, MISSING_CLOUD, MISSING_ONPREM)}
        rows = {
            "onprem": counts[MATCH] + counts[MISSING_CLOUD],
            "cloud": counts[MATCH] + counts[MISSING_ONPREM],
        }
        samples = tuple(self._unkeyed_samples())
        return Found(self._plan, "as multisets of rows", rows, counts, samples=samples)

    def _keyed_samples(self, counts: Mapping[str, int]) -> Iterator[Sample]:
        bits = keyed.keyed_bits(self._plan)
        for status in (status for status in STATUSES[1:] if counts.get(status)):
            for row in self._sampled(keyed.samples_sql(self._plan, status, self._samples)):
                values = row.asDict(recursive=True)
                yield Sample(
                    status=status,
                    key=self._values(values[keyed.KEY]),
                    columns=bits.set_in([int(values[n]) for n in bits.numbers]),
                    onprem=None if status == MISSING_ONPREM else self._values(values[keyed.ONPREM]),
                    cloud=None if status == MISSING_CLOUD else self._values(values[keyed.CLOUD]),
                )

    def _repeated_samples(self) -> Iterator[Sample]:
        for row in self._sampled(repeated.repeated_samples_sql(self._plan, self._samples)):
            key = self._values(row.asDict(recursive=True)[keyed.KEY])
            copies = int(row["onprem_copies"]), int(row["cloud_copies"])
            yield Sample(str(row[keyed.STATUS]), key, (), None, None, *copies)

    def _unkeyed_samples(self) -> Iterator[Sample]:
        for row in self._sampled(unkeyed.unkeyed_samples_sql(self._plan, self._samples)):
            values = row.asDict(recursive=True)
            copies = int(values[unkeyed.ONPREM_ROWS]), int(values[unkeyed.CLOUD_ROWS])
            status = MISSING_CLOUD if copies[0] > copies[1] else MISSING_ONPREM
            yield Sample(status, self._values(values[unkeyed.ROW]), (), None, None, *copies)

    def _values(self, found: object) -> Values:
        return _values(found, zoned(self._plan))

    def _sampled(self, query: str) -> list[Row]:
        return self._rows(query) if self._samples else []

    def _counted(self) -> dict[str, int]:
        """Both sides' rows; Parquet and Iceberg know them without reading any."""
        each = (f"(SELECT count(*) FROM {self._plan.table(s).source}) AS {s}" for s in SIDES)
        return self._first(f"SELECT {', '.join(each)}")

    def _room(self, rows: dict[str, int]) -> int:
        own = int(self._partitions) if self._partitions.isdigit() else 1
        return max(own, keyed.partitions_for(self._plan, max(rows.values())))

    def _tolerant(self) -> bool:
        return any(column.tolerance is not None for column in self._plan.columns)

    def _carried_out(self, text: str) -> Script:
        """All statements that are no questions, in their order."""
        script = parse_script(FILE, text)
        for step in script.steps:
            if step.name not in ("counts", "columns"):
                sql(self._session, step.sql)
        return script

    def _rows(self, query: str) -> list[Row]:
        frame: DataFrame = sql(self._session, query)
        return frame.collect()

    def _first(self, query: str) -> dict[str, int]:
        return {name: int(n or 0) for name, n in self._rows(query)[0].asDict().items()}

    @contextmanager
    def _cleaned(self) -> Generator[None]:
        """The rows that were kept are given up again, and the session is as it was."""
        zone = str(self._session.conf.get("spark.sql.session.timeZone"))
        try:
            yield
        finally:
            self._session.conf.set("spark.sql.session.timeZone", zone)
            self._session.conf.set("spark.sql.shuffle.partitions", self._partitions)
            self._forget(*_MADE)

    def _forget(self, *names: str) -> None:
        """Give up these views, each before those that it reads; what was kept of one goes with it."""
        for name in names:
            self._session.catalog.dropTempView(name)


_MADE = (
    keyed.DIFFERENCES,
    repeated.DIFFERENCES,
    keyed.VERDICTS,
    keyed.PAIRS,
    *(f"{VIEW.format(side)}_together" for side in SIDES),
    REPEATED,
    *(VIEW.format(side) for side in SIDES),
)


def _each_once(joined: Joined, rows: dict[str, int]) -> bool:
    """Whether no key repeats: else joining gave more pairs than rows, or a side more rows than keys."""
    both = sum(joined.get(status, (0, 0))[0] for status in (MATCH, MISMATCH))
    alone = {
        "onprem": joined.get(MISSING_CLOUD, (0, 0)),
        "cloud": joined.get(MISSING_ONPREM, (0, 0)),
    }
    return all(
        both + alone[side][0] == rows[side] and alone[side][0] == alone[side][1] for side in SIDES
    )


def _added(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, int]:
    names = dict.fromkeys([*a, *b])
    return {name: a.get(name, 0) + b.get(name, 0) for name in names}


def _values(found: object, timely: frozenset[str]) -> Values:
    """The fields of a struct; points in time come as text, whose zone is UTC beyond doubt."""
    fields = cast("dict[str, object]", found or {})
    return {
        name: datetime.fromisoformat(str(value)) if name in timely and value is not None else value
        for name, value in fields.items()
    }


def first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), repr(error))
