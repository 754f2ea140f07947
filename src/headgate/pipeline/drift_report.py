"""Report the fields of a topic that deviate from the manifest: counts, consequences, likely renames.

Reads the ledger's drift counts and the bronze table; proposes manifest lines that declare them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, cast

from headgate.config.settings import Settings
from headgate.core.lake.duckdb_reader import Lake
from headgate.core.ledger.model import Drifted, DriftKind
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.sql.fragments import job_name
from headgate.core.sql.strict_json import EXTRA
from headgate.declarations.columns import Column
from headgate.declarations.types import JSON, SqlType
from headgate.pipeline.compile.evolution import (
    evolved_column,
    evolved_columns,
    folded,
    why_no_column,
)
from headgate.pipeline.spec import Dataset

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Words that YAML reads as something else than text.
_YAML_WORDS = frozenset({"y", "n", "yes", "no", "true", "false", "on", "off", "null"})


@dataclass(frozen=True)
class Brought:
    """A column that came by itself: how many rows have a value in it."""

    column: Column
    rows: int


@dataclass(frozen=True)
class Deviation:
    """One field that deviates: how often, since when, what becomes of it, what it may mean."""

    field: str
    kind: str
    records: int
    batches: int
    first_seen: str
    last_seen: str
    becomes: str
    hint: str = ""


@dataclass(frozen=True)
class DriftReport:
    """The drift of one dataset, and the manifest lines that would declare it."""

    dataset: str
    contract: str
    deviations: tuple[Deviation, ...]
    columns: Mapping[str, int]
    lines: str


def drift_report(settings: Settings, store: OpsStore, dataset: Dataset) -> DriftReport:
    """What has been seen so far; nothing is read from the topic."""
    drifted = store.drift(job_name("bronze", dataset.name))
    return report(dataset, drifted, brought_columns(settings, dataset))


def report(dataset: Dataset, drifted: Sequence[Drifted], brought: Sequence[Brought]) -> DriftReport:
    renamed = renames(dataset, drifted, brought)
    return DriftReport(
        dataset=dataset.name,
        contract=dataset.contract,
        deviations=tuple(_deviation(dataset, d, renamed, brought) for d in drifted),
        columns={b.column.name: b.rows for b in brought},
        lines=manifest_lines(_to_declare(dataset, drifted, brought)),
    )


def brought_columns(settings: Settings, dataset: Dataset) -> tuple[Brought, ...]:
    """The columns of bronze that the manifest lacks and the topic brought."""
    with Lake.open(settings) as lake:
        if not lake.exists(dataset.bronze_table):
            return ()
        declared = {folded(column.name) for column in dataset.columns}
        told = _told(lake.location(dataset.bronze_table).metadata)
        columns = [c for c in evolved_columns(told) if folded(c.name) not in declared]
        if not columns:
            return ()
        counted = ", ".join(f"count({_quoted(column.name)})" for column in columns)
        rows = lake.query(f"SELECT {counted} FROM {lake.scan_sql(dataset.bronze_table)}")[0]
        return tuple(
            Brought(column, cast("int", n)) for column, n in zip(columns, rows, strict=True)
        )


def _told(metadata: Mapping[str, object]) -> list[tuple[str, str]]:
    """Name and comment of each column, as the table's current schema has them."""
    schemas = cast("list[dict[str, Any]]", metadata["schemas"])
    current = next(s for s in schemas if s["schema-id"] == metadata["current-schema-id"])
    return [(field["name"], field.get("doc", "")) for field in current["fields"]]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _deviation(
    dataset: Dataset, drifted: Drifted, renamed: Mapping[str, str], brought: Sequence[Brought]
) -> Deviation:
    other = renamed.get(drifted.field) if drifted.kind is DriftKind.MISSING else None
    return Deviation(
        field=drifted.field,
        kind=drifted.kind.value,
        records=drifted.records,
        batches=drifted.batches,
        first_seen=drifted.first_seen.isoformat(timespec="seconds"),
        last_seen=drifted.last_seen.isoformat(timespec="seconds"),
        becomes=becomes(dataset, drifted, brought),
        hint=f"renamed to {other}?" if other else "",
    )


def becomes(dataset: Dataset, drifted: Drifted, brought: Sequence[Brought]) -> str:
    """What the present contract makes of such a field."""
    column = next((b.column for b in brought if b.column.name == drifted.field), None)
    if drifted.kind is not DriftKind.UNKNOWN:
        refused = drifted.kind is DriftKind.RETYPED or not dataset.keeps_drift
        return "dead letter" if refused else "NULL"
    if any(declared.name == drifted.field for declared in dataset.columns):
        return "declared now"
    if not dataset.keeps_drift:
        return "dead letter"
    if column is not None:
        return f"column, {column.bronze_type}"
    why = _why_kept(dataset, drifted.field, brought) if dataset.contract == "evolve" else None
    return f"kept in {EXTRA}" + (f": {why}" if why else "")


def _why_kept(dataset: Dataset, field: str, brought: Iterable[Brought]) -> str | None:
    taken = {folded(column.name) for column in dataset.columns}
    return why_no_column(field, taken | {folded(b.column.name) for b in brought})


def renames(
    dataset: Dataset, drifted: Sequence[Drifted], brought: Sequence[Brought]
) -> dict[str, str]:
    """For a missing field an unknown one that may be it: there as often, its values of a fitting type.

    Each is named once; where several fit, the names that are most alike go together.
    """
    came = {b.column.name: b for b in brought}
    declared = {column.name: column.kafka_type for column in dataset.columns}
    pairs = [
        (_alikeness(lost.field, new.field), lost.field, new.field)
        for lost in drifted
        for new in drifted
        if (lost.kind, new.kind) == (DriftKind.MISSING, DriftKind.UNKNOWN)
        and lost.field in declared
        and _may_be(declared[lost.field], lost.records, new, came.get(new.field))
    ]
    found: dict[str, str] = {}
    for _, lost, new in sorted(pairs, key=lambda pair: (-pair[0], *pair[1:])):
        if lost not in found and new not in found.values():
            found[lost] = new
    return found


def _may_be(kind: SqlType, records: int, new: Drifted, came: Brought | None) -> bool:
    if came is None:  # it is no column, so nothing is known of its values
        return new.records == records
    return came.rows == records and fits(came.column.kafka_type, kind)


def fits(seen: SqlType, declared: SqlType) -> bool:
    """Whether values that made a column of this type could be those of the declared one."""
    if declared.name == "JSON" or seen.name == declared.name:
        return True
    if seen.is_integral:
        return declared.is_numeric
    return seen.is_numeric and declared.is_numeric and not declared.is_integral


def _alikeness(one: str, other: str) -> float:
    return SequenceMatcher(None, folded(one), folded(other)).ratio()


def _to_declare(
    dataset: Dataset, drifted: Iterable[Drifted], brought: Sequence[Brought]
) -> list[Column]:
    """Columns that came by themselves with their types; what is kept elsewhere as any JSON value."""
    columns = [b.column for b in brought]
    taken = {folded(c.name) for c in (*dataset.columns, *columns)}
    for field in (d.field for d in drifted if d.kind is DriftKind.UNKNOWN):
        if why_no_column(field, taken) is None:
            taken.add(folded(field))
            columns.append(evolved_column(field, JSON))
    return columns


def manifest_lines(columns: Iterable[Column]) -> str:
    """The columns as they would stand under `columns:` of the manifest."""
    return "\n".join(
        f"  - name: {_yaml(c.name)}\n"
        f"    kafka_type: {c.kafka_type}\n"
        f"    bronze_type: {c.bronze_type}\n"
        f"    silver_name: {_yaml(plain_name(c.name))}\n"
        f"    silver_type: {c.silver_type}\n"
        for c in columns
    )


def plain_name(name: str) -> str:
    """A name as silver takes it."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", snake).strip("_").lower()
    return plain if _PLAIN.fullmatch(plain) else f"field_{plain}".rstrip("_")


def _yaml(name: str) -> str:
    is_plain = _PLAIN.fullmatch(name) and name.lower() not in _YAML_WORDS
    return name if is_plain else json.dumps(name, ensure_ascii=False)
