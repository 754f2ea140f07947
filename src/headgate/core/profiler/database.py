"""DuckDB over batches of rows, with bounded memory: what does not fit goes to a folder that is removed."""

# pyarrow ships no types, so what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from headgate.core.profiler.profile_rows import damaged

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
