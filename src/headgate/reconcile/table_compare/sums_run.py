"""Compares two tables that live in two engines: sums by segment first, then only the rows of segments that differ."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any, Protocol, TypeAlias, cast

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headgate.conditions.literals import spark_identifier
from headgate.core.lake.spark import sql
from headgate.core.sql.script import parse_script
from headgate.errors import OperationError
from headgate.reconcile.table_compare.plan import MATCH, SIDES, Compared, Plan, Table
from headgate.reconcile.table_compare.results import Found
from headgate.reconcile.table_compare.run import SAMPLES, Comparison, first_line
from headgate.reconcile.table_compare.sides import (
    LANES,
    SEGMENTS,
    VIEW,
    Sums,
    differing,
    fetch_sql,
    sums_sql,
)

# A pyarrow.Table, whose types PySpark does not know.
Rows: TypeAlias = Any
FETCHED = VIEW.format("{}_fetched")


class Place(Protocol):
    """Where one side is: it gives its sums, and the rows of some segments."""

    def sums(self) -> dict[int, Sums]: ...

    def rows(self, segments: tuple[int, ...]) -> Rows: ...


class SparkPlace:
    """A side in a Spark session, which need not be the other side's."""

    def __init__(
        self, session: SparkSession, plan: Plan, side: str, segments: int = SEGMENTS
    ) -> None:
        self._session, self._plan, self._side, self._segments = session, plan, side, segments

    def sums(self) -> dict[int, Sums]:
        script = parse_script("sums.sql", sums_sql(self._plan, self._side, self._segments))
        for step in script.steps:
            if step.name != "sums":
                sql(self._session, step.sql)
        found = sql(self._session, script.one("sums")).collect()
        return {
            int(row["segment"]): Sums(
                int(row["dq_rows"]),
                int(row["dq_keys"]),
                tuple(Decimal(row[f"sum_{lane + 1}"]) for lane in range(LANES)),
            )
            for row in found
        }

    def rows(self, segments: tuple[int, ...]) -> Rows:
        """After `sums`, which makes the view."""
        query = fetch_sql(self._plan, self._side, segments, self._segments)
        frame: Any = sql(self._session, query)
        return frame.toArrow()


class SumsComparison:
    """Compares sums first; rows of differing segments are brought to `session` and compared there."""

    def __init__(
        self,
        session: SparkSession,
        plan: Plan,
        samples: int = SAMPLES,
        places: tuple[Place, Place] | None = None,
        segments: int = SEGMENTS,
    ) -> None:
        self._session, self._plan, self._samples = session, plan, samples
        self._segments = segments
        onprem, cloud = (SparkPlace(session, plan, side, segments) for side in SIDES)
        self._places: tuple[Place, Place] = places or (onprem, cloud)

    def script(self) -> str:
        return "\n\n".join(sums_sql(self._plan, side, self._segments) for side in SIDES)

    def run(self) -> Found:
        try:
            return self._run()
        except PySparkException as error:
            raise OperationError("the comparison failed", why=first_line(error)) from error

    def _run(self) -> Found:
        onprem, cloud = (place.sums() for place in self._places)
        wanted = differing(onprem, cloud)
        equal = [found for segment, found in onprem.items() if segment not in set(wanted)]
        found = self._compared(wanted)
        unit = [each.keys if self._plan.key else each.rows for each in equal]
        more = sum(each.rows - each.keys for each in equal) if self._plan.key else 0
        told = f"{len(wanted)} of {self._segments:,} segments differed and were fetched"
        notes = (told, *([f"{more:,} more rows than keys in the others"] if more else []))
        return replace(
            found,
            plan=self._plan,
            rows={
                side: sum(each.rows for each in sums.values())
                for side, sums in zip(SIDES, (onprem, cloud), strict=True)
            },
            counts={**found.counts, MATCH: found.counts.get(MATCH, 0) + sum(unit)},
            how=f"{found.how}, sums of hashes first",
            notes=(*found.notes, *notes),
        )

    def _compared(self, wanted: tuple[int, ...]) -> Found:
        if not wanted:
            named = ", ".join(column.name for column in self._plan.key)
            how = f"by {named}" if named else "as multisets of rows"
            return Found(self._plan, how, {}, {}, dict.fromkeys(_names(self._plan), 0))
        for side, place in zip(SIDES, self._places, strict=True):
            session: Any = self._session
            session.createDataFrame(place.rows(wanted)).createOrReplaceTempView(
                FETCHED.format(side)
            )
        try:
            return Comparison(self._session, _fetched(self._plan), self._samples).run()
        finally:
            for side in SIDES:
                self._session.catalog.dropTempView(FETCHED.format(side))


def _names(plan: Plan) -> tuple[str, ...]:
    return tuple(column.name for column in plan.columns)


def _fetched(plan: Plan) -> Plan:
    """The same comparison over rows that are already in the types that are compared."""
    tables = (replace(plan.table(side), source=FETCHED.format(side)) for side in SIDES)
    onprem, cloud = cast("tuple[Table, Table]", tuple(tables))
    return replace(
        plan, onprem=onprem, cloud=cloud, key=_plain(plan.key), columns=_plain(plan.columns)
    )


def _plain(columns: tuple[Compared, ...]) -> tuple[Compared, ...]:
    names = ((column, spark_identifier(column.name)) for column in columns)
    return tuple(replace(column, onprem=name, cloud=name) for column, name in names)
