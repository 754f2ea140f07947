"""The pairs that a pass kept: answered from memory where they are few, else by more SQL over them.

A pass is carried out once in either case: what it kept stays with Spark until it is given up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Protocol

from pyspark.sql import Row

from headgate.core.sql.compile_script import Script
from headgate.reconcile.table_compare import keyed
from headgate.reconcile.table_compare.compare_asking import Asking
from headgate.reconcile.table_compare.found import Sample
from headgate.reconcile.table_compare.model import (
    MISMATCH,
    MISSING_CLOUD,
    MISSING_ONPREM,
    STATUSES,
    Plan,
)

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
