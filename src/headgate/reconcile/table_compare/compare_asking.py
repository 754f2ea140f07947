"""Statements of a comparison in one session, and their answers as plain values."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from typing import cast

from pyspark.sql import DataFrame, Row, SparkSession

from headgate.core.lake.statements import sql
from headgate.core.sql.compile_script import Script, parse_script
from headgate.reconcile.table_compare import keyed, repeated
from headgate.reconcile.table_compare.compare_sides import REPEATED, VIEW, zoned
from headgate.reconcile.table_compare.found import Values
from headgate.reconcile.table_compare.model import SIDES, Plan

FILE = "compare.sql"
ZONE, PARTITIONS = "spark.sql.session.timeZone", "spark.sql.shuffle.partitions"
# Each before those that it reads.
MADE = (
    keyed.DIFFERENCES,
    repeated.DIFFERENCES,
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
