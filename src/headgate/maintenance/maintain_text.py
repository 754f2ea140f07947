"""A maintenance plan and its report, for a person."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import groupby

from headgate.maintenance.maintain_plan import Plan, Report, SnapshotPlan, TablePlan, TableReport

PARTS_SHOWN = FILES_SHOWN = 10


def plan_text(plan: Plan) -> str:
    """What would be done, table by table."""
    tables = ["\n".join([table.table, *_planned(table, plan.made_at)]) for table in plan.tables]
    title = f"Plan of {plan.job}, {plan.made_at:%Y-%m-%d %H:%M:%S} UTC"
    return "\n\n".join([title, *(tables or ["no table is there yet"])])


def _planned(table: TablePlan, now: datetime) -> Iterator[str]:
    size = table.size
    within = "" if size.parts is None else f" in {_n(size.parts, 'part')}"
    yield (
        f"  {_n(size.files, 'file')}{within}, {_bytes(size.bytes)};"
        f" {_n(size.snapshots, 'snapshot')}, {_n(size.manifests, 'manifest')},"
        f" {_n(size.metadata_files, 'metadata file')}"
    )
    if table.compact is not None:
        files = sum(part.small_files for part in table.compact)
        yield f"  compact: {_n(files, 'small file')} in {_n(len(table.compact), 'part')}"
        for part in table.compact[:PARTS_SHOWN]:
            yield f"    {part.name:<12} {part.small_files:>6,} files  {_bytes(part.small_bytes):>10}"
        yield from _more(len(table.compact), PARTS_SHOWN)
    if table.rewrite_manifests:
        yield f"  rewrite {_n(size.manifests, 'manifest')}"
    if table.expire is not None:
        yield f"  expire: {_n(len(table.going), 'snapshot')} of {len(table.expire):,}"
        yield from _verdicts(table.expire, now)
    if table.orphans is not None:
        total = sum(file.bytes for file in table.orphans)
        yield f"  vacuum: {_n(len(table.orphans), 'orphan file')}, {_bytes(total)}"
        for file in table.orphans[:FILES_SHOWN]:
            yield f"    {file.path}  {_bytes(file.bytes)}"
        yield from _more(len(table.orphans), FILES_SHOWN)


def _verdicts(snapshots: tuple[SnapshotPlan, ...], now: datetime) -> Iterator[str]:
    """Neighbours that share a verdict and its reason stand in one line, newest first."""
    for (goes, why), found in groupby(snapshots, lambda s: (s.goes, s.why)):
        group = list(found)
        which = str(group[0].id) if len(group) == 1 else _n(len(group), "snapshot")
        ages = dict.fromkeys((_age(group[0].at, now), _age(group[-1].at, now)))
        yield f"    {'goes' if goes else 'stays'}  {which}, {' to '.join(ages)} old: {why}"


def report_text(report: Report) -> str:
    """What was done, table by table; where nothing was, a table is left out."""
    told = (table for table in report.tables if table.is_worth_telling)
    tables = ["\n".join([table.table, *_done(table)]) for table in told]
    title = f"Report of {report.job} run {report.run}: {report.sentence}"
    return "\n\n".join([title, *tables])


def _done(table: TableReport) -> Iterator[str]:
    before, after = table.before, table.after
    for name, old, new in (
        ("files", before.files, after.files),
        ("small files", before.small_files, after.small_files),
        ("bytes", _bytes(before.bytes), _bytes(after.bytes)),
        ("manifests", before.manifests, after.manifests),
        ("snapshots", before.snapshots, after.snapshots),
        ("metadata files", before.metadata_files, after.metadata_files),
    ):
        if old is not None and new is not None:
            yield f"  {name:<15} {_told(old):>10} → {_told(new):>10}"
    if table.parts_compacted or table.parts_left:
        yield f"  compacted {_n(table.parts_compacted, 'part')}, {table.retries} tried again"
    if table.parts_left:
        yield f"  left for the next time, since others wrote there: {', '.join(table.parts_left)}"
    if table.manifests_rewritten:
        yield f"  rewrote {_n(table.manifests_rewritten, 'manifest')}"
    if table.snapshots_expired:
        yield f"  expired {_n(table.snapshots_expired, 'snapshot')}, deleted {_n(table.files_deleted, 'file')}"
    if table.orphans_removed:
        yield f"  removed {_n(table.orphans_removed, 'orphan file')}, {_bytes(table.orphan_bytes)}"
    yield from (f"  {note}" for note in table.notes)


def _more(count: int, shown: int) -> Iterator[str]:
    if count > shown:
        yield f"    and {count - shown:,} more"


def _told(value: int | str) -> str:
    return value if isinstance(value, str) else f"{value:,}"


def _n(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _age(at: datetime, now: datetime) -> str:
    seconds = max((now - at).total_seconds(), 0)
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TB"
