"""Read the rows of a Parquet file in batches, all or a sample, and aggregate them in DuckDB.

Memory is bounded: DuckDB spills to a temporary folder that is removed at the end.
"""

# pyarrow ships no types, so what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.core.kafka.arrow_json import is_long_decimal, is_nested, is_uuid, writer_of
from headgate.core.profiler.model import Looked
from headgate.errors import OperationError, SettingsError

BATCH_ROWS = 32_768
# A scan reads no more values than this, unless it is told otherwise: about half a minute's work.
MOST_VALUES = 60_000_000
FEWEST_ROWS = 100_000


def most_rows(columns: int) -> int:
    """How many rows of a file with so many columns are looked at."""
    return max(FEWEST_ROWS, MOST_VALUES // max(1, columns))


@dataclass(frozen=True)
class Rows:
    """Some row groups of a file, `limit` rows at most; columns are known as c0, c1 and so on."""

    file: Path
    groups: tuple[int, ...]
    limit: int
    of: int

    @property
    def looked(self) -> Looked:
        return Looked(self.limit, self.of)

    def reader(
        self, columns: Sequence[int], advance: Callable[[int], None], *, exact: bool = False
    ) -> pa.RecordBatchReader:
        """These columns, batch by batch; `exact` gives nested values too, as their JSON text."""
        with pq.ParquetFile(self.file) as parquet:
            kinds = [parquet.schema_arrow.field(at).type for at in columns]
            names = [parquet.schema_arrow.field(at).name for at in columns]
        readable = [_readable(pa.nulls(0, kind), exact).type for kind in kinds]
        schema = pa.schema([(f"c{at}", kind) for at, kind in zip(columns, readable, strict=True)])
        return pa.RecordBatchReader.from_batches(
            schema, self._batches(names, schema, advance, exact)
        )

    def _batches(
        self, names: list[str], schema: pa.Schema, advance: Callable[[int], None], exact: bool
    ) -> Iterator[pa.RecordBatch]:
        left = self.limit
        with pq.ParquetFile(self.file, pre_buffer=False) as parquet:
            for batch in parquet.iter_batches(
                BATCH_ROWS, row_groups=list(self.groups), columns=names, use_threads=False
            ):
                part = batch.slice(0, left)
                arrays = [_readable(part.column(name), exact) for name in names]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
                advance(part.num_rows)
                left -= part.num_rows
                if left <= 0:
                    return


def all_rows(file: Path) -> Rows:
    with pq.ParquetFile(file) as parquet:
        count = parquet.metadata.num_rows
        return Rows(file, tuple(range(parquet.num_row_groups)), count, count)


def some_rows(file: Path, most: int) -> Rows:
    """All rows when they are few, else whole row groups spread over the file."""
    with pq.ParquetFile(file) as parquet:
        sizes = [parquet.metadata.row_group(at).num_rows for at in range(parquet.num_row_groups)]
    total = sum(sizes)
    if total <= most:
        return Rows(file, tuple(range(len(sizes))), total, total)
    count = max(1, len(sizes) * most // total)
    groups = tuple(dict.fromkeys(at * len(sizes) // count for at in range(count)))
    return Rows(file, groups, min(most, sum(sizes[at] for at in groups)), total)


def _readable(column: pa.Array, exact: bool) -> pa.Array:
    """The column in a type that DuckDB knows, NULL where it is NULL."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _readable(column.dictionary_decode(), exact)
    if is_nested(kind):
        return _as_json(column) if exact else pc.if_else(column.is_valid(), True, None)
    if pa.types.is_null(kind):
        return column.cast(pa.bool_())
    if is_uuid(kind):
        return _as_json(column)
    if isinstance(kind, pa.JsonType):
        return _readable(column.storage, exact)
    return _plain(column)


def _plain(column: pa.Array) -> pa.Array:
    kind, types = column.type, pa.types
    if types.is_float16(kind):
        return column.cast(pa.float64())
    if types.is_decimal(kind):
        wide = (
            pa.decimal128(max(kind.precision, 1), kind.scale) if not is_long_decimal(kind) else None
        )
        return column.cast(wide or pa.string())
    if types.is_timestamp(kind):
        return column.cast(pa.timestamp(kind.unit))
    if types.is_duration(kind):
        return column.cast(pa.int64())
    if types.is_time(kind):
        return column.cast(pa.string())
    if types.is_date(kind):
        return column.cast(pa.date32())
    is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return _sound_text(column) if is_text else column


def _as_json(column: pa.Array) -> pa.Array:
    texts = [
        None if t == b"null" else t.decode(errors="replace") for t in writer_of(column.type)(column)
    ]
    return pa.array(texts, pa.large_string())


def _sound_text(column: pa.Array) -> pa.Array:
    """Files may hold bytes that are no UTF-8 under the name of text; DuckDB refuses those."""
    text = column.cast(pa.large_binary())
    try:
        return text.cast(pa.large_string())
    except pa.ArrowInvalid:
        values = text.to_pylist()
        return pa.array(
            [None if v is None else v.decode(errors="replace") for v in values], pa.large_string()
        )


def damaged(file: Path, error: Exception) -> OperationError:
    return OperationError(
        f"{file} cannot be read to its end",
        why=str(error).partition("\n")[0],
        fix="the file is damaged: fetch it again",
    )


def open_parquet(file: Path, said: str) -> pq.ParquetFile:
    if not file.is_file():
        raise SettingsError(
            f"there is no file {file}",
            why=f"{said} point there" if " and " in said else f"{said} points there",
            fix=f"put the file there or change {said}; {_nearby(file)}",
        )
    try:
        return pq.ParquetFile(file, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise OperationError(
            f"{file} is not a Parquet file",
            why=str(error).partition("\n")[0],
            fix=_conversion(file),
        ) from error


def _conversion(file: Path) -> str:
    """How to make a Parquet file of this one: with DuckDB, which is installed with Headgate."""
    reader = {".csv": "read_csv", ".tsv": "read_csv", ".json": "read_json", ".jsonl": "read_json"}
    read = reader.get(file.suffix.lower())
    if read is None:
        return "put a Parquet file there, or make one with `headgate feed sample`"
    parquet = file.with_suffix(".parquet")
    path, target = (str(name).replace("'", "''") for name in (file, parquet))
    copy = f"COPY (FROM {read}('{path}')) TO '{target}' (FORMAT parquet)"
    return f"convert it: .venv/bin/python -c {shlex.quote(f'import duckdb; duckdb.sql({copy!r})')}"


def _nearby(file: Path) -> str:
    found = sorted(path.name for path in file.parent.glob("*.parquet"))[:5]
    if found:
        return f"in that folder: {', '.join(found)}"
    return "`headgate feed sample` makes one"


MEMORY = "1GB"


class Database:
    """Asks for aggregates over rows that are read once."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, file: Path) -> None:
        self._connection, self._file = connection, file

    def one_row(self, rows: pa.RecordBatchReader, asked: Sequence[str]) -> tuple[object, ...]:
        return self._answer(rows, f"SELECT {', '.join(asked)} FROM looked_at")

    def combinations(self, rows: pa.RecordBatchReader) -> int:
        """How many different rows there are; NULL equals NULL."""
        names = ", ".join(rows.schema.names)
        counted = f"SELECT count(*) FROM (SELECT 1 FROM looked_at GROUP BY {names})"
        return int(str(self._answer(rows, counted)[0]))

    def _answer(self, rows: pa.RecordBatchReader, sql: str) -> tuple[object, ...]:
        self._connection.register("looked_at", rows)
        try:
            return self._connection.execute(sql).fetchall()[0]
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise damaged(self._file, error) from error
        finally:
            self._connection.unregister("looked_at")


@contextmanager
def open_database(file: Path) -> Generator[Database]:
    with tempfile.TemporaryDirectory(prefix="headgate-profile-") as folder:
        options = {
            "memory_limit": MEMORY,
            "temp_directory": folder,
            "preserve_insertion_order": False,
        }
        with duckdb.connect(config={k: str(v) for k, v in options.items()}) as connection:
            yield Database(connection, file)
