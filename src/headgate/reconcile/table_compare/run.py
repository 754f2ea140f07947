"""Compares two tables on Spark: all columns in one pass, or as multisets where there is no key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol, cast

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from headgate.conditions.literals import spark_identifier
from headgate.config.settings import Settings
from headgate.core.engine.connect import connect
from headgate.core.engine.session import start_session, stop_session
from headgate.core.lake.spark import sql
from headgate.core.sql.fragments import table_name
from headgate.core.sql.script import Script, parse_script
from headgate.declarations.errors import Refusal
from headgate.errors import OperationError, UsageError
from headgate.reconcile.table_compare import keyed, multisets
from headgate.reconcile.table_compare.plan import (
    MATCH,
    MISMATCH,
    MISSING_CLOUD,
    MISSING_ONPREM,
    SIDES,
    STATUSES,
    Column,
    Plan,
    Table,
)
from headgate.reconcile.table_compare.results import Found, Repeated, Sample, Values
from headgate.reconcile.table_compare.sides import REPEATED, VIEW, zoned

CATALOG = "lake."


@contextmanager
def query_session(settings: Settings) -> Generator[SparkSession]:
    """The running engine's, over Connect; without one a session of this process, which only reads."""
    if settings.connect_url and settings.connect_token:
        with connect(settings) as session:
            yield session
        return
    session = start_session(settings)
    try:
        yield session
    finally:
        stop_session(session)


def open_table(session: SparkSession, name: str) -> Table:
    """The table that a person names: `schema.table` of the lake, or a path of Parquet files."""
    source = source_of(name)
    try:
        fields = sql(session, f"SELECT * FROM {source} LIMIT 0").schema.fields
    except AnalysisException as error:
        raise UsageError(
            f"{name} cannot be read",
            why=next(iter(str(error).strip().splitlines()), repr(error)),
            fix="give schema.table of the lake, or the path of a Parquet file or folder",
        ) from error
    columns = tuple(Column(field.name, field.dataType.simpleString()) for field in fields)
    return Table(name, source, columns)


def source_of(name: str) -> str:
    """What stands behind FROM."""
    try:
        if is_path(name):
            return f"parquet.{spark_identifier(str(Path(name).absolute()))}"
        plain = name.removeprefix(CATALOG)
        if plain.count(".") == 1 and all(plain.split(".")):
            return table_name(plain)
    except Refusal as refused:
        raise UsageError(refused.what, fix=refused.fix) from refused
    raise UsageError(
        f"`{name}` names neither a table nor a file",
        fix="give schema.table of the lake, or the path of a Parquet file or folder",
    )


def is_path(name: str) -> bool:
    return "/" in name or name.endswith(".parquet") or Path(name).exists()


FILE = "compare.sql"
ZONE, PARTITIONS = "spark.sql.session.timeZone", "spark.sql.shuffle.partitions"
# Each before those that it reads.
MADE = (
    keyed.DIFFERENCES,
    multisets.DIFFERENCES,
    keyed.VERDICTS,
    keyed.PAIRS,
    *(f"{VIEW.format(side)}_together" for side in SIDES),
    REPEATED,
    *(VIEW.format(side) for side in SIDES),
)


class Asking:
    """Runs what a plan's scripts say, and cleans up after them."""

    def __init__(self, session: SparkSession, plan: Plan) -> None:
        self._session, self._timely = session, zoned(plan)
        self.partitions = str(session.conf.get(PARTITIONS, "200"))

    def carried_out(
        self, text: str, *, questions: tuple[str, ...] = ("counts", "columns")
    ) -> Script:
        """All statements of a script that are no questions, in their order."""
        script = parse_script(FILE, text)
        for step in script.steps:
            if step.name not in questions:
                sql(self._session, step.sql)
        return script

    def frame(self, query: str) -> DataFrame:
        return sql(self._session, query)

    def rows(self, query: str) -> list[Row]:
        return self.frame(query).collect()

    def numbers(self, query: str) -> dict[str, int]:
        """The one row of an answer that holds numbers only."""
        return {name: int(n or 0) for name, n in self.rows(query)[0].asDict().items()}

    def values(self, found: object) -> Values:
        """The fields of a struct; points in time come as text, whose zone is UTC beyond doubt."""
        fields = cast("dict[str, object]", found or {})
        return {name: self._value(name, value) for name, value in fields.items()}

    def _value(self, name: str, value: object) -> object:
        timely = name in self._timely and value is not None
        return datetime.fromisoformat(str(value)) if timely else value

    def forget(self, *names: str) -> None:
        """Give these views up; what was kept of one goes with it."""
        for name in names:
            self._session.catalog.dropTempView(name)

    @contextmanager
    def cleaned(self) -> Generator[None]:
        """Afterwards the session is as it was."""
        zone = str(self._session.conf.get(ZONE))
        try:
            yield
        finally:
            self._session.conf.set(ZONE, zone)
            self._session.conf.set(PARTITIONS, self.partitions)
            self.forget(*MADE)


FEW = 10_000
SORTABLE = (int, float, str, bytes, Decimal, date)
# By status: joined rows, and keys among them that did not match.
Joined = dict[str, tuple[int, int]]


class Kept(Protocol):
    """What is asked of the pairs that were kept."""

    def joined(self) -> Joined: ...

    def columns(self) -> dict[str, int]:
        """In how many rows each column differs."""
        ...

    def samples(self, limit: int) -> Iterator[Sample]:
        """Some of each status that is no match, those with the least keys."""
        ...


def keep(asking: Asking, plan: Plan, text: str) -> Kept:
    """Carry a keyed script out."""
    script = asking.carried_out(text, questions=("differences", "counts", "columns"))
    frame = asking.frame(keyed.kept_query(plan)).persist()
    frame.createOrReplaceTempView(keyed.DIFFERENCES)
    few = asking.rows(f"{keyed.readable_query(plan)}\nLIMIT {FEW + 1}")
    return FewRows(asking, plan, few) if len(few) <= FEW else ManyRows(asking, plan, script)


class FewRows:
    """All that was kept is at hand."""

    def __init__(self, asking: Asking, plan: Plan, rows: Sequence[Row]) -> None:
        self._asking, self._bits = asking, keyed.keyed_bits(plan)
        self._rows: list[dict[str, Any]] = [row.asDict(recursive=True) for row in rows]

    def joined(self) -> Joined:
        rows, keys = Counter[str](), dict[str, set[str]]()
        for row in self._rows:
            status = str(row[keyed.STATUS])
            rows[status] += int(row[keyed.ROWS])
            if row[keyed.KEY] is not None:
                keys.setdefault(status, set()).add(repr(row[keyed.KEY]))
        return {status: (count, len(keys.get(status, ()))) for status, count in rows.items()}

    def columns(self) -> dict[str, int]:
        found = Counter[str]()
        for row in self._rows:
            for name in self._set(row):
                found[name] += int(row[keyed.ROWS])
        return {name: found[name] for name in self._bits.names}

    def samples(self, limit: int) -> Iterator[Sample]:
        for status in STATUSES[1:]:
            wanted = [row for row in self._rows if row[keyed.STATUS] == status]
            for row in sorted(wanted, key=_by_key)[:limit]:
                yield sample_of(self._asking, status, row, self._set(row))

    def _set(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        return self._bits.set_in([int(row[number]) for number in self._bits.numbers])


class ManyRows:
    """Too many to bring along: each question is a query over what Spark keeps."""

    def __init__(self, asking: Asking, plan: Plan, script: Script) -> None:
        self._asking, self._plan, self._script = asking, plan, script

    def joined(self) -> Joined:
        found = self._asking.rows(self._script.one("counts"))
        return {str(row[0]): (int(row[1]), int(row[2])) for row in found}

    def columns(self) -> dict[str, int]:
        return self._asking.numbers(self._script.one("columns")) if self._plan.columns else {}

    def samples(self, limit: int) -> Iterator[Sample]:
        bits = keyed.keyed_bits(self._plan)
        for status in STATUSES[1:]:
            for row in self._asking.rows(keyed.samples_sql(self._plan, status, limit)):
                values = row.asDict(recursive=True)
                differing = bits.set_in([int(values[number]) for number in bits.numbers])
                yield sample_of(self._asking, status, values, differing)


def sample_of(
    asking: Asking, status: str, row: Mapping[str, Any], differing: tuple[str, ...]
) -> Sample:
    return Sample(
        status=status,
        key=asking.values(row[keyed.KEY]),
        columns=differing if status == MISMATCH else (),
        onprem=None if status == MISSING_ONPREM else asking.values(row[keyed.ONPREM]),
        cloud=None if status == MISSING_CLOUD else asking.values(row[keyed.CLOUD]),
    )


def _by_key(row: Mapping[str, Any]) -> tuple[tuple[int, Any], ...]:
    """NULL first, then by value; a column's values are all of one type."""
    key: Mapping[str, object] = row[keyed.KEY] or {}
    return tuple(_rank(value) for value in key.values())


def _rank(value: object) -> tuple[int, Any]:
    if value is None:
        return 0, 0
    return (1, value) if isinstance(value, SORTABLE) else (2, repr(value))


SAMPLES = 10


class Comparison:
    """One comparison in one session, whose temporary views it uses."""

    def __init__(self, session: SparkSession, plan: Plan, samples: int = SAMPLES) -> None:
        self._asking, self._plan, self._samples = Asking(session, plan), plan, samples

    def script(self) -> str:
        """The SQL that `run` carries out where no key repeats."""
        if not self._plan.key:
            return multisets.unkeyed_sql(self._plan)
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
        asking.carried_out(multisets.repeated_keys_sql(plan))
        once = keep(asking, plan, keyed.keyed_sql(plan, self._room(rows), repeated=True))
        found = self._found(once, rows, once.joined())
        script = asking.carried_out(multisets.repeated_sql(plan))
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
        script = self._asking.carried_out(multisets.unkeyed_sql(self._plan))
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
        query = multisets.repeated_samples_sql(self._plan, self._samples)
        for row in self._asking.rows(query):
            key = self._asking.values(row.asDict(recursive=True)[keyed.KEY])
            copies = int(row["onprem_copies"]), int(row["cloud_copies"])
            yield Sample(str(row[keyed.STATUS]), key, (), None, None, *copies)

    def _unkeyed_samples(self) -> Iterator[Sample]:
        if not self._samples:
            return
        for row in self._asking.rows(multisets.unkeyed_samples_sql(self._plan, self._samples)):
            values = row.asDict(recursive=True)
            copies = int(values[multisets.ONPREM_ROWS]), int(values[multisets.CLOUD_ROWS])
            status = MISSING_CLOUD if copies[0] > copies[1] else MISSING_ONPREM
            key = self._asking.values(values[multisets.ROW])
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
