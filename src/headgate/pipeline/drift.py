"""Count the drift of a bronze batch, and evolve bronze's columns by the fields the topic brought.

Counts come from the columns that bronze keeps for drift and, for refused records, from the file's drift
view; Iceberg's value counts say when there is nothing to count. A column that came from the topic says
so in its comment, so the revision that runs (the declared one, compiled with exactly those columns) can
be found again from the table alone, whatever a kill left behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from headgate.core.lake.spark import Snapshot, TableColumn
from headgate.core.lake.table import ManagedTable
from headgate.core.ledger.model import DriftKind, FieldDrift, Intent
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.sql.strict_json import EXTRA, MISSING, MISSING_MARK, RETYPED_MARK, UNKNOWN_MARK
from headgate.declarations.columns import Column
from headgate.declarations.types import BIGINT
from headgate.pipeline.columns import add, drop, fit_bronze
from headgate.pipeline.compile.dataset import BRONZE_BATCH, BRONZE_STREAMING, evolved_bronze
from headgate.pipeline.compile.evolution import (
    FRACTION,
    LARGE,
    LONG_FRACTION,
    MOST_COLUMNS,
    NESTED,
    TEXT,
    TRUTH,
    WHOLE,
    Seen,
    evolved_columns,
    folded,
    new_columns,
    type_of,
    with_fractions,
)
from headgate.pipeline.revision import DatasetRevision, fetch, keep
from headgate.pipeline.spec import from_plain

# So many fields of each kind are counted for one batch; how many more there were is said.
MOST_FIELDS = 200
# So many digits a DOUBLE can still tell apart.
_DIGITS = 17
_MARKS = {
    UNKNOWN_MARK: DriftKind.UNKNOWN,
    MISSING_MARK: DriftKind.MISSING,
    RETYPED_MARK: DriftKind.RETYPED,
}


def unknown_fields(table: ManagedTable, staged: Snapshot) -> tuple[Seen, ...]:
    """The fields that the staged rows keep beside their columns, the most frequent first."""
    if not _has_values(table, staged, EXTRA):
        return ()
    entries = F.expr(f"map_entries(from_json({EXTRA}, 'MAP<STRING, VARIANT>'))")
    found = (
        table.appended(staged)
        .where(f"{EXTRA} IS NOT NULL")
        .select(F.posexplode(entries).alias("place", "entry"))
        .selectExpr("entry.key AS field", "place", "to_json(entry.value) AS text")
        .selectExpr("field", "place", f"{_kind()} AS kind")
        .groupBy("field")
        .agg(
            F.count(F.lit(1)).alias("records"),
            F.min("place").alias("place"),
            F.collect_set("kind").alias("kinds"),
        )
    )
    seen = [
        Seen(r["field"], frozenset(r["kinds"]), int(r["records"]), int(r["place"]))
        for r in _most_frequent(found, "records")
    ]
    return (*seen, *_further(found, seen))


def fractions(records: DataFrame, names: Sequence[str]) -> frozenset[str]:
    """Which of these fields have a number with a point or an exponent in some record.

    `_extra` no longer tells: it has 2 where the record says 2.0, and a BIGINT refuses that.
    """
    if not names:
        return frozenset()
    texts = F.expr("map_entries(from_json(CAST(value AS STRING), 'MAP<STRING, STRING>'))")
    found = (
        records.select(F.explode(texts).alias("entry"))
        .where(F.col("entry.key").isin(*names))
        .where(r"entry.value RLIKE r'^-?[0-9]+[.eE]'")
        .select("entry.key")
        .distinct()
    )
    return frozenset(str(row["key"]) for row in found.collect())


def _further(found: DataFrame, seen: Sequence[Seen]) -> tuple[Seen, ...]:
    """How many fields were left uncounted, and how often they stood in a record."""
    if len(seen) < MOST_FIELDS:
        return ()
    total = found.agg(F.count(F.lit(1)).alias("fields"), F.sum("records").alias("times")).first()
    fields = int(total["fields"]) - len(seen) if total else 0
    times = int(total["times"]) - sum(field.records for field in seen) if total else 0
    return (Seen(f"… {fields} further fields", frozenset(), times),) if fields else ()


def missing_fields(table: ManagedTable, staged: Snapshot) -> tuple[FieldDrift, ...]:
    """The declared fields that the staged rows' records lacked."""
    if not _has_values(table, staged, MISSING):
        return ()
    names = F.explode(F.expr(f"from_json({MISSING}, 'ARRAY<STRING>')")).alias("field")
    found = table.appended(staged).where(f"{MISSING} IS NOT NULL").select(names)
    rows = _most_frequent(found.groupBy("field").count(), "count")
    return tuple(FieldDrift(DriftKind.MISSING, r["field"], int(r["count"])) for r in rows)


def refused_fields(session: SparkSession, view: str) -> tuple[FieldDrift, ...]:
    """The fields for which the records of a file's drift view were refused."""
    rows = _most_frequent(session.table(view).groupBy("field").count(), "count")
    return tuple(FieldDrift(_MARKS[r["field"][0]], r["field"][1:], int(r["count"])) for r in rows)


def counts(seen: Iterable[Seen]) -> tuple[FieldDrift, ...]:
    return tuple(FieldDrift(DriftKind.UNKNOWN, field.field, field.records) for field in seen)


def _has_values(table: ManagedTable, staged: Snapshot, column: str) -> bool:
    """False only when it is certain."""
    look = table.look()
    is_there = any(found.name == column for found in look.columns())
    return is_there and look.values_added(staged.id, column) != 0


def _most_frequent(found: DataFrame, count: str) -> list[Row]:
    return found.orderBy(F.desc(count), "field").limit(MOST_FIELDS).collect()


def _kind() -> str:
    """What a value is, as far as the choice of a column's type needs to know; NULL for null.

    Told from its text: to describe a deeply nested value, Spark would need more stack than it has.
    """
    digits = "length(ltrim('0', translate(split_part(text, 'E', 1), '-.', '')))"
    return f"""CASE
      WHEN text = 'null' THEN NULL
      WHEN text IN ('true', 'false') THEN '{TRUTH}'
      WHEN left(text, 1) = '"' THEN '{TEXT}'
      WHEN left(text, 1) IN ('{{', '[') THEN '{NESTED}'
      WHEN text RLIKE '^-?[0-9]{{1,15}}$' THEN '{WHOLE}'
      WHEN try_cast(text AS BIGINT) IS NOT NULL AND text NOT LIKE '%.%' THEN '{LARGE}'
      WHEN {digits} > {_DIGITS} THEN '{LONG_FRACTION}'
      ELSE '{FRACTION}'
    END"""


class Evolution:
    """The columns of one run's bronze table."""

    def __init__(self, session: SparkSession, store: OpsStore, table: str, declared: str) -> None:
        self._session = session
        self._store = store
        self._table = ManagedTable(session, table)
        self._declared = fetch(store, declared)
        columns = fit_bronze(self._table, from_plain(self._declared.manifest))
        self.revision = self._fitted(self._declared, columns)
        self._added: tuple[Column, ...] = ()
        # Fields whose columns would have refused records; they are not tried again in this run.
        self._left: set[str] = set()

    def evolve(self, intent: Intent, seen: Sequence[Seen], records: DataFrame) -> Intent | None:
        """The intent under a revision with columns for these fields; None when none of them gets one."""
        judged_by = fetch(self._store, intent.revisions[0])
        if not can_evolve(judged_by):
            return None
        taken, room = self._room(judged_by)
        self._added = new_columns(seen, taken, room)
        if not self._added:
            return None
        self._added = new_columns(self._as_written(seen, records), taken, room)
        columns = add(self._table, self._added)
        self.revision = self._fitted(self._declared, columns)
        amended = self._store.amend(intent, (self._fitted(judged_by, columns),))
        return replace(amended, run=intent.run)

    def take_back(self, intent: Intent, revisions: tuple[str, ...]) -> Intent:
        """The intent as it was before the columns that were added last, and the table without them."""
        names = [column.name for column in self._added]
        self._left.update(names)
        columns = drop(self._table, names)
        self.revision = self._fitted(self._declared, columns)
        return replace(self._store.amend(intent, revisions), run=intent.run)

    def _as_written(self, seen: Sequence[Seen], records: DataFrame) -> tuple[Seen, ...]:
        """The fields to be columns of whole numbers, looked up once more in the records themselves."""
        chosen = {column.name for column in self._added}
        whole = [f.field for f in seen if f.field in chosen and type_of(f) == BIGINT]
        return with_fractions(seen, fractions(records, whole))

    def _room(self, revision: DatasetRevision) -> tuple[list[str], int]:
        """The names that are taken, and how many more columns may come."""
        columns = self._table.look().columns()
        taken = [*(column.name for column in columns), *self._left]
        taken += [column["name"] for column in revision.manifest["columns"]]
        return taken, MOST_COLUMNS - len(_evolved(columns))

    def _fitted(self, revision: DatasetRevision, columns: Sequence[TableColumn]) -> str:
        return keep(self._store, fitted(revision, columns))


def can_evolve(revision: DatasetRevision) -> bool:
    """An edited bronze file is what runs; nobody but its author can give it a column."""
    return revision.contract == "evolve" and not edited_bronze(revision)


def edited_bronze(revision: DatasetRevision) -> bool:
    return bool({BRONZE_BATCH, BRONZE_STREAMING} & set(revision.custom))


def fitted(revision: DatasetRevision, columns: Sequence[TableColumn]) -> DatasetRevision:
    """The revision with the columns that the topic brought and the manifest still lacks."""
    dataset = from_plain(revision.manifest)
    declared = {folded(column.name) for column in dataset.columns}
    evolved = [column for column in _evolved(columns) if folded(column.name) not in declared]
    if not evolved or not dataset.keeps_drift or edited_bronze(revision):
        return revision
    manifest = f"datasets/{dataset.name}/dataset.yml"
    made = evolved_bronze(dataset, evolved, revision.layouts, manifest)
    templates = {**revision.templates, **{template.file: template.text for template in made}}
    return revision.model_copy(update={"templates": templates})


def _evolved(columns: Sequence[TableColumn]) -> tuple[Column, ...]:
    return evolved_columns((column.name, column.comment) for column in columns)
