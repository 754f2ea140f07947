"""Drift of one batch: which fields deviated from the declaration, in how many of its records.

Accepted rows tell it themselves, in the columns that bronze has for it; the refused ones in the
view that their file makes. Iceberg's own counts say at once when there is nothing to look for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from headgate.core.lake.iceberg import ManagedTable
from headgate.core.lake.jvm import Snapshot
from headgate.core.ledger.store_model import DriftKind, FieldDrift
from headgate.core.sql.drift import EXTRA, MISSING, MISSING_MARK, RETYPED_MARK, UNKNOWN_MARK
from headgate.pipeline.compile import evolution
from headgate.pipeline.compile.evolution import Seen

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
      WHEN text IN ('true', 'false') THEN '{evolution.TRUTH}'
      WHEN left(text, 1) = '"' THEN '{evolution.TEXT}'
      WHEN left(text, 1) IN ('{{', '[') THEN '{evolution.NESTED}'
      WHEN text RLIKE '^-?[0-9]{{1,15}}$' THEN '{evolution.WHOLE}'
      WHEN try_cast(text AS BIGINT) IS NOT NULL AND text NOT LIKE '%.%' THEN '{evolution.LARGE}'
      WHEN {digits} > {_DIGITS} THEN '{evolution.LONG_FRACTION}'
      ELSE '{evolution.FRACTION}'
    END"""
