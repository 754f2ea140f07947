"""Reads whole rows of both sides by key, from the lake, Parquet or Cassandra, and compares them by the contract.

Where each side's rows stand is what `reconcile: rows:` of the rule table declares.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol, cast

import duckdb

from headgate.config.settings import Settings
from headgate.core.lake.duckdb_reader import Lake
from headgate.declarations.errors import suggestion
from headgate.errors import OperationError, SettingsError, UnavailableError
from headgate.hashing.contract import HashContract, load_contract
from headgate.hashing.python import UnfitError, old_writer, writer
from headgate.quality.spec.reconcile_section import WholeRows
from headgate.quality.spec.rule_set import RuleTable
from headgate.reconcile.cassandra.session import Cassandra, TableShape, open_session
from headgate.reconcile.row_diff import RowDifference, Same, by_value, row_difference, same_value


@dataclass(frozen=True)
class WholeRow:
    """Plain values by column; `version` as the row itself says it, `written` as its store does."""

    values: Mapping[str, object]
    version: datetime | None = None
    written: datetime | None = None

    @property
    def newest(self) -> datetime | None:
        """The row's version: its own, else when it was written."""
        return self.version or self.written


class RowsByKey(Protocol):
    """One side of a table; a key is text, as messages carry it."""

    def read(self, keys: Sequence[str]) -> dict[str, WholeRow]:
        """The rows that are there; a key that has none is left out."""
        ...


class CassandraRows:
    """All columns of a table that are not its key; `key` may be several, separated by commas."""

    def __init__(self, cassandra: Cassandra, table: str, key: str, version: str | None) -> None:
        self.cassandra, self.table, self.version = cassandra, table, version
        self.key = tuple(name.strip() for name in key.split(","))
        self.shape: TableShape = cassandra.shape(table)
        columns = [name for name in self.shape.columns if name not in self.key]
        self._reader = cassandra.reader(table, self.key, columns, version)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.shape.columns)

    def read(self, keys: Sequence[str]) -> dict[str, WholeRow]:
        return {
            key: WholeRow(row.values, row.version, row.written)
            for key, row in self._reader.read_many(keys)
            if row is not None
        }


AT_ONCE = 5_000
ZONED = "TIMESTAMP WITH TIME ZONE"


class Queries(Protocol):
    """What answers SQL, as DuckDB over the lake does."""

    def query(self, sql: str) -> list[tuple[object, ...]]: ...


class ParquetQueries:
    """DuckDB alone, for files."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(
            ":memory:", config={"autoinstall_known_extensions": False}
        )
        self._connection.execute("SET TimeZone = 'UTC'")

    def query(self, sql: str) -> list[tuple[object, ...]]:
        try:
            return cast("list[tuple[object, ...]]", self._connection.execute(sql).fetchall())
        except duckdb.IOException as error:
            raise UnavailableError(
                "files with rows cannot be read",
                why=str(error),
                fix="check the path, and try again",
            ) from error
        except duckdb.Error as error:
            raise OperationError("DuckDB refused a query", why=str(error)) from error

    def close(self) -> None:
        self._connection.close()


class DuckRows:
    """`source` says what stands behind FROM, a scan of the lake or of files, anew at each reading.

    A scan is of one version of its table: one that is kept would never see what came later.
    """

    def __init__(
        self, queries: Queries, source: Callable[[], str], key: str, version: str | None
    ) -> None:
        self._queries, self._source, self._key, self._version = queries, source, key, version
        self._described = ""
        self._types: dict[str, str] = {}
        self._current()

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the last reading."""
        return tuple(self._types)

    def read(self, keys: Sequence[str]) -> dict[str, WholeRow]:
        """The rows of these keys, all from one version of the source: its current one."""
        source, found = self._current(), dict[str, WholeRow]()
        for at in range(0, len(keys), AT_ONCE):
            found |= self._read(source, keys[at : at + AT_ONCE])
        return found

    def _current(self) -> str:
        """The source as it is now; its columns are looked at again when it is another one."""
        source = self._source()
        if source != self._described:
            self._types = self._types_of(source)
            self._described = source
        return source

    def _types_of(self, source: str) -> dict[str, str]:
        types = {str(r[0]): str(r[1]) for r in self._queries.query(f"DESCRIBE FROM {source}")}
        for name in (self._key, *([self._version] if self._version else [])):
            if name not in types:
                raise SettingsError(
                    f"{source} has no column `{name}`",
                    why="`reconcile: rows:` names it",
                    fix=suggestion(name, types, "columns"),
                )
        return types

    def _read(self, source: str, keys: Sequence[str]) -> dict[str, WholeRow]:
        rows = self._queries.query(
            f"SELECT CAST({_name(self._key)} AS VARCHAR), {self._selected()} FROM {source}"
            f" WHERE CAST({_name(self._key)} AS VARCHAR) IN ({', '.join(map(_text, keys))})"
        )
        made = ((str(row[0]), self._made(row[1:])) for row in rows)
        newest: dict[str, WholeRow] = {}
        for key, row in made:
            if key not in newest or _later(row, newest[key]):
                newest[key] = row
        return newest

    def _selected(self) -> str:
        """A point in time without its zone, which would need a library more to be read."""
        return ", ".join(
            f"{_name(name)} AT TIME ZONE 'UTC'" if type_ == ZONED else _name(name)
            for name, type_ in self._types.items()
        )

    def _made(self, values: Sequence[object]) -> WholeRow:
        row = {name: _plain(v) for name, v in zip(self._types, values, strict=True)}
        version = row.get(self._version) if self._version else None
        return WholeRow(row, version if isinstance(version, datetime) else None)


def parquet_source(root: Path, file: str) -> str:
    """A file, a folder of files or a pattern, from the project's root."""
    path = root / file
    pattern = str(path / "*.parquet") if path.is_dir() else str(path)
    if not path.exists() and "*" not in file:
        raise UnavailableError(
            f"{file} is not there",
            why="`reconcile: rows:` reads rows from it",
            fix="check the path",
        )
    return f"read_parquet({_text(pattern)})"


def _later(a: WholeRow, b: WholeRow) -> bool:
    """Of two rows of one key the newer version counts; without versions the later one read."""
    return b.version is None or (a.version is not None and a.version >= b.version)


def _plain(value: object) -> object:
    """A time without a zone is UTC, as everywhere."""
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    return value


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True)
class BothRows:
    """Readers of both sides, and what of their rows is compared."""

    onprem: RowsByKey
    cloud: RowsByKey
    columns: tuple[str, ...]
    hidden: frozenset[str]
    same: Same

    def why(self, keys: Sequence[str]) -> list[RowDifference]:
        """For each key the columns in which its two rows differ, in the order of the keys."""
        onprem, cloud = self.onprem.read(keys), self.cloud.read(keys)
        return [self._difference(key, onprem.get(key), cloud.get(key)) for key in keys]

    def _difference(
        self, key: str, onprem: WholeRow | None, cloud: WholeRow | None
    ) -> RowDifference:
        return row_difference(
            key,
            onprem.values if onprem else None,
            cloud.values if cloud else None,
            self.columns,
            self.hidden,
            self.same,
        )


@contextmanager
def open_rows(settings: Settings, table: RuleTable) -> Generator[BothRows]:
    """Readers of both sides, as the table's `reconcile: rows:` declares them."""
    contract = contract_of_table(settings, table)
    with ExitStack() as stack:
        onprem = open_side(stack, settings, table, "onprem")
        cloud = open_side(stack, settings, table, "cloud")
        yield BothRows(
            onprem,
            cloud,
            _columns(table, contract, onprem, cloud),
            hidden_columns(table, contract),
            same_by(contract) if contract else by_value,
        )


def declared_rows(table: RuleTable, side: str) -> WholeRows:
    """Where whole rows of this side are; refused where nothing says so."""
    found = getattr(table.reconcile.rows, side) if table.reconcile else None
    if isinstance(found, WholeRows):
        return found
    raise SettingsError(
        f"nothing says where rows of {table.name} can be read, {side}",
        why=f"`reconcile: rows: {side}:` is not declared",
        fix=f"declare `rows: {{{side}: {{iceberg: schema.table, key: {table.pk}}}}}`",
    )


def need_version(table: RuleTable) -> None:
    """Refuse where nothing says how old on-prem's rows are: an old one could be sent as a new one."""
    if declared_rows(table, "onprem").version is not None:
        return
    raise SettingsError(
        f"rows of {table.name} cannot be sent again",
        why="nothing says how old on-prem's rows are: `reconcile: rows: onprem:` has no `version`",
        fix="name the column with a row's version, for example `version: last_updated`",
    )


def open_side(
    stack: ExitStack, settings: Settings, table: RuleTable, side: str
) -> DuckRows | CassandraRows:
    """What reads this side's rows; the stack closes it."""
    declared = declared_rows(table, side)
    if declared.cassandra is not None:
        cassandra = stack.enter_context(open_session(settings))
        return CassandraRows(cassandra, declared.cassandra, declared.key, declared.version)
    if declared.iceberg is not None:
        lake = stack.enter_context(Lake.open(settings))
        scan = partial(lake.scan_sql, declared.iceberg)
        return DuckRows(lake, scan, declared.key, declared.version)
    files = stack.enter_context(closing(ParquetQueries()))
    source = partial(parquet_source, settings.root, declared.parquet or "")
    return DuckRows(files, source, declared.key, declared.version)


def contract_of_table(settings: Settings, table: RuleTable) -> HashContract | None:
    file = table.reconcile.contract if table.reconcile else None
    return load_contract(settings.root / file).value if file else None


def hidden_columns(table: RuleTable, contract: HashContract | None) -> frozenset[str]:
    """What nobody may see: tagged in the contract, or in a source."""
    tagged = (
        {field.name for field in contract.fields if field.sensitive} if contract else set[str]()
    )
    return frozenset(tagged).union(*(source.sensitive for source in table.sources.values()))


def same_by(contract: HashContract) -> Same:
    """Two values are the same if the contract writes them as the same text, as their hashes do."""
    make = writer if contract.hash_version == 2 else old_writer
    writers = {field.name: make(field.kind) for field in contract.fields}

    def same(column: str, onprem: object, cloud: object) -> bool:
        try:
            return writers[column](onprem) == writers[column](cloud)
        except UnfitError:
            return same_value(onprem, cloud)

    return same


def _columns(
    table: RuleTable,
    contract: HashContract | None,
    onprem: DuckRows | CassandraRows,
    cloud: DuckRows | CassandraRows,
) -> tuple[str, ...]:
    """Those of the contract; without one all that both sides have, but for key and version."""
    if contract is not None:
        return tuple(field.name for field in contract.fields)
    sides = (declared_rows(table, side) for side in ("onprem", "cloud"))
    left_out = {name for side in sides for name in (*side.key.split(","), side.version)}
    return tuple(n for n in onprem.columns if n in cloud.columns and n not in left_out)
