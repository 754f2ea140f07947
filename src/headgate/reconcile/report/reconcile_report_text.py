"""A reconciliation's report for a terminal and for scripts: text in short, JSON with everything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import cast

import orjson

from headgate.plurals import count_of
from headgate.reconcile.report.make import Before
from headgate.reconcile.report.model import SCHEMA_VERSION, ReconcileReport
from headgate.terminal.report_page import percent
from headgate.terminal.report_text import adding_up, changed, named, parts_text, whole_json
from headgate.terminal.text_columns import aligned

MOST_SHOWN = 10


def report_json(report: ReconcileReport) -> bytes:
    return whole_json(report, SCHEMA_VERSION)


def read_before(file: Path) -> Before | None:
    """What an earlier report says; None when it is not one that we can read."""
    try:
        data = cast("dict[str, object]", orjson.loads(file.read_bytes()))
        if data["schema_version"] != SCHEMA_VERSION:
            return None
        header = cast("Mapping[str, object]", data["header"])
        return Before(
            made_at=str(header["made_at"]),
            as_of=datetime.fromisoformat(str(header["as_of"])).isoformat(" "),
            file=file.name,
            statuses=_counts(data["statuses"], "status", "keys"),
            letters=_counts(data["letters"], "code", "records"),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _counts(lines: object, name: str, n: str) -> dict[str, int]:
    found = cast("Sequence[Mapping[str, object]]", lines)
    return {str(line[name]): int(str(line[n])) for line in found}


def report_text(report: ReconcileReport) -> str:
    return parts_text(
        _head(report), _statuses(report), _since(report), _kinds(report), _rest(report)
    )


def _head(report: ReconcileReport) -> Iterator[str]:
    h = report.header
    yield f"{h.table}: {' against '.join(h.sources)}, {h.state}, {count_of(h.batches, 'batch', 'batches')}"
    yield f"window {h.window}, grace {h.grace}; verdicts from {h.first_change} to {h.last_change}"
    rollups = ", ".join(f"{r.keys:,} {r.rollup} ({percent(r.share)})" for r in report.rollups)
    yield f"{report.keys:,} keys: {rollups}"
    yield from adding_up(report, named(report.outcomes) or "nothing read")
    o = report.objective
    yield (
        f"{'✓' if o.met else '✗'} {percent(o.share)} settled within window and grace, "
        f"goal {percent(o.target)}"
    )
    yield from (f"! {note}" for note in report.notes)


def _statuses(report: ReconcileReport) -> Iterator[str]:
    rows = [("STATUS", "KEYS", "SHARE", "CHANGE", "WHICH MEANS")]
    for line in report.statuses:
        counts = (f"{line.keys:,}", percent(line.share), changed(line.change))
        rows.append((line.status, *counts, line.reason))
    if report.statuses:
        yield from aligned(rows)


def _since(report: ReconcileReport) -> Iterator[str]:
    if report.since is None:
        return
    yield f"{report.since.keys:,} keys changed since {report.since.made_at}"
    for move in report.since.moves[:MOST_SHOWN]:
        yield f"  {move.before or '(new)'} → {move.after}: {move.keys:,}"


def _kinds(report: ReconcileReport) -> Iterator[str]:
    kinds = report.kinds
    if kinds.note:
        yield kinds.note
    if not kinds.read:
        return
    yield f"{kinds.read:,} of {kinds.differing:,} differing keys read on both sides"
    rows = [("KIND", "KEYS", "COLUMNS", "FOR EXAMPLE")]
    for line in kinds.lines:
        first = line.examples[0]
        shown = f"{first.key}: {first.onprem or 'NULL'} / {first.cloud or 'NULL'}"
        rows.append((line.kind, f"{line.keys:,}", ", ".join(line.columns), shown))
    yield from aligned(rows)
    if kinds.equal:
        yield f"{kinds.equal:,} have equal rows: only a hash was wrong, or the row has followed since"


def _rest(report: ReconcileReport) -> Iterator[str]:
    repair, pending = report.repair, report.pending
    by_status = named(repair.by_status)
    yield f"{repair.keys:,} keys to send again{f': {by_status}' if by_status else ''}"
    yield f"{pending.keys:,} keys wait, {pending.overdue:,} of them past their deadline"
    letters = ", ".join(f"{line.records:,} {line.code}" for line in report.letters)
    yield f"dead letters: {letters or 'none'}"
