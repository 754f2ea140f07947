"""Rows of a Cassandra table by key: one prepared statement, any number of reads at once."""

# The driver ships no types, so what comes from it is unknown to the checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from headgate.errors import RowRefusedError, SettingsError
from headgate.reconcile.cassandra.session import (
    IN_FLIGHT,
    Cassandra,
    Failure,
    TableShape,
    explained,
    failure_of,
    quoted,
    selected,
)
from headgate.reconcile.cassandra.values import (
    FIRST,
    LAST,
    KeyTypeError,
    converter,
    key_values,
    micros,
)

WHEN_ROW = Callable[["Row | None"], None]
WHEN_FAILED = Callable[[Failure], None]


@dataclass(frozen=True)
class Row:
    """One row: plain values by column, and its version by its column and by WRITETIME."""

    values: dict[str, object]
    version: datetime | None
    written: datetime | None

    @property
    def cloud_ts(self) -> datetime | None:
        """The row's own version: the column, else the greatest WRITETIME."""
        if self.version is None and self.written in (FIRST, LAST):
            raise RowRefusedError(
                "the row's version is its WRITETIME, and no calendar has that time",
                why="a writer gave a timestamp that does not count microseconds since 1970",
                fix="name a column under `rows: {cloud: {version: …}}`, or write the row again",
            )
        return self.version or self.written


class RowReader:
    """Reads the named columns of one table by key; a column that the table lacks is null."""

    def __init__(
        self,
        cassandra: Cassandra,
        shape: TableShape,
        key: tuple[str, ...],
        columns: tuple[str, ...],
        version: str | None,
    ) -> None:
        _require_key(shape, key)
        self.shape, self.key = shape, key
        self._cassandra = cassandra
        self._key_types = [shape.columns[name].cql_type for name in key]
        self._row = RowForm(shape, columns, version)
        where = " AND ".join(f"{quoted(name)} = ?" for name in key)
        self._cql = f"SELECT {self._row.selection} FROM {shape.quoted} WHERE {where}"
        self._statement = cassandra.prepare(self._cql)

    def start(self, key: str, when_row: WHEN_ROW, when_failed: WHEN_FAILED) -> None:
        """Begin to read one row; exactly one of the two is called, from another thread or at once."""
        try:
            values = key_values(key, self._key_types)
        except KeyTypeError:
            when_row(None)
            return
        try:
            future = self._cassandra.session.execute_async(self._statement, values)
        except Exception as error:
            when_failed(failure_of(error))
            return

        def answered(rows: Any) -> None:
            _answered(self._row, rows, when_row, when_failed)

        def failed(error: Exception) -> None:
            when_failed(failure_of(error))

        future.add_callbacks(answered, failed)

    def read(self, key: str) -> Row | None:
        """One row, waiting for it."""
        return next(iter(self.read_many([key])))[1]

    def read_many(self, keys: Iterable[str]) -> Iterator[tuple[str, Row | None]]:
        """The rows of these keys, in their order, some asked for ahead."""
        waiting: deque[tuple[str, Any]] = deque()
        for key in keys:
            waiting.append((key, self._asked(key)))
            if len(waiting) >= IN_FLIGHT:
                yield self._got(*waiting.popleft())
        while waiting:
            yield self._got(*waiting.popleft())

    def forget(self) -> None:
        """Let go of the prepared statement: the table has another shape."""
        self._cassandra.forget(self._cql)

    def _asked(self, key: str) -> Any:
        try:
            values = key_values(key, self._key_types)
        except KeyTypeError:
            return None
        return self._cassandra.session.execute_async(self._statement, values)

    def _got(self, key: str, future: Any) -> tuple[str, Row | None]:
        if future is None:
            return key, None
        try:
            found = future.result().one()
            return key, None if found is None else self._row.made(found)
        except Exception as error:
            words = f"the row of {key} in {self.shape.name} could not be read"
            raise explained(error, self._cassandra.place, words) from error


class RowForm:
    """What is selected of a row, and how the answer becomes one."""

    def __init__(self, shape: TableShape, columns: Sequence[str], version: str | None) -> None:
        self.columns = tuple(columns)
        self.there = [shape.columns[name] for name in columns if name in shape.columns]
        self._version = shape.columns.get(version) if version else None
        self._written = [column for column in self.there if column.has_writetime]
        self._makers = [(column.name, converter(column.cql_type)) for column in self.there]
        self._empty = cast("dict[str, object]", dict.fromkeys(columns))

    @property
    def selection(self) -> str:
        parts = [selected(column) for column in self.there]
        parts += [selected(self._version)] if self._version else []
        parts += [f"WRITETIME({quoted(column.name)})" for column in self._written]
        return ", ".join(parts) or "*"

    def made(self, answer: Sequence[Any]) -> Row:
        values = dict(self._empty)
        for (name, make), value in zip(self._makers, answer, strict=False):
            values[name] = make(value) if make else value
        at = len(self._makers)
        version = None
        if self._version is not None:
            version, at = self._version_of(answer[at]), at + 1
        written = [
            int(value) for value in answer[at : at + len(self._written)] if value is not None
        ]
        return Row(values, version, micros(max(written)) if written else None)

    def _version_of(self, value: Any) -> datetime | None:
        make = converter(self._version.cql_type) if self._version else None
        found = make(value) if make else value
        return found if isinstance(found, datetime) else None


def _answered(form: RowForm, rows: Any, when_row: WHEN_ROW, when_failed: WHEN_FAILED) -> None:
    """In the driver's thread: whatever goes wrong must come out as an answer."""
    try:
        found = cast("Sequence[Any] | None", rows[0] if rows else None)
        row = None if found is None else form.made(found)
    except Exception as error:
        when_failed(failure_of(error))
    else:
        when_row(row)


def _require_key(shape: TableShape, key: tuple[str, ...]) -> None:
    if key == shape.primary_key:
        return
    raise SettingsError(
        f"`{', '.join(key)}` is not the primary key of {shape.name}",
        why=f"its primary key is {', '.join(shape.primary_key)}",
        fix="name all its columns in their order under `rows: {cloud: {key: …}}`",
    )
