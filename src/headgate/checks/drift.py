"""What has drifted in a dataset's topic: the counts of the ledger, held against manifest and table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from headgate.checks.lake import Lake
from headgate.compile.drift import EXTRA
from headgate.compile.evolution import evolved_column, evolved_columns, folded, why_no_column
from headgate.compile.fragments import job_name
from headgate.settings import Settings
from headgate.spec.dataset import Column, Dataset
from headgate.spec.types import JSON
from headgate.store.model import Drifted, DriftKind
from headgate.store.ops import OpsStore

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Words that YAML reads as something else than text.
_YAML_WORDS = frozenset({"y", "n", "yes", "no", "true", "false", "on", "off", "null"})
# A hint that names more fields than this is none.
_MOST_GUESSES = 3


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
    return DriftReport(
        dataset=dataset.name,
        contract=dataset.contract,
        deviations=tuple(_deviation(dataset, d, drifted, brought) for d in drifted),
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
    dataset: Dataset, drifted: Drifted, all_: Sequence[Drifted], brought: Sequence[Brought]
) -> Deviation:
    return Deviation(
        field=drifted.field,
        kind=drifted.kind.value,
        records=drifted.records,
        batches=drifted.batches,
        first_seen=drifted.first_seen.isoformat(timespec="seconds"),
        last_seen=drifted.last_seen.isoformat(timespec="seconds"),
        becomes=becomes(dataset, drifted, brought),
        hint=hint(drifted, all_, brought),
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


def hint(drifted: Drifted, all_: Sequence[Drifted], brought: Sequence[Brought]) -> str:
    """A field that is missing as often as an unknown one is there may have been renamed."""
    if drifted.kind is not DriftKind.MISSING:
        return ""
    rows = {b.column.name: b.rows for b in brought}
    guesses = [
        other.field
        for other in all_
        if other.kind is DriftKind.UNKNOWN
        and rows.get(other.field, other.records) == drifted.records
    ]
    return f"renamed to {' or '.join(guesses)}?" if 0 < len(guesses) <= _MOST_GUESSES else ""


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
