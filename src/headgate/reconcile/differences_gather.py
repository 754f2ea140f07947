"""Both sides' rows of some keys, wherever a rule table says that they are, held against each other."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial

from headgate.config.settings import Settings
from headgate.core.lake.duckdb_reader import Lake
from headgate.errors import SettingsError
from headgate.hashing.hash_contract import HashContract
from headgate.hashing.hash_contract_loader import load_contract
from headgate.hashing.values import UnfitError, old_writer, writer
from headgate.quality.spec.reconcile_section import WholeRows
from headgate.quality.spec.rule_set import RuleTable
from headgate.reconcile.cassandra.session import open_session
from headgate.reconcile.differences import RowDifference, Same, by_value, row_difference
from headgate.reconcile.differences_kinds import same_value
from headgate.reconcile.duck import DuckRows, ParquetQueries, parquet_source
from headgate.reconcile.model import RowsByKey, WholeRow
from headgate.reconcile.rows_cassandra import CassandraRows


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
