"""A reconciliation's report for a terminal and for scripts: text in short, JSON with everything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import cast

import orjson

from headgate.checks.reconcile_report import SCHEMA_VERSION, ReconcileReport
from headgate.checks.reconcile_report_make import Before
from headgate.checks.report_page import percent

MOST_SHOWN = 10


def report_json(report: ReconcileReport) -> bytes:
    """The whole report; `schema_version` tells a reader what to expect."""
    fields = {name: getattr(report, name) for name in report.__dataclass_fields__}
    body = {"schema_version": SCHEMA_VERSION, "adds_up": report.adds_up, **fields}
    return orjson.dumps(body, option=orjson.OPT_INDENT_2)


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
    parts = [_head(report), _statuses(report), _since(report), _kinds(report), _rest(report)]
    return "\n\n".join(text for part in parts if (text := "\n".join(part)))


def _head(report: ReconcileReport) -> Iterator[str]:
    h = report.header
    yield f"{h.table}: {' against '.join(h.sources)}, {h.state}, {h.batches:,} batches"
    yield f"window {h.window}, grace {h.grace}; verdicts from {h.first_change} to {h.last_change}"
    rollups = ", ".join(f"{r.keys:,} {r.rollup} ({percent(r.share)})" for r in report.rollups)
    yield f"{report.keys:,} keys: {rollups}"
    outcomes = ", ".join(f"{n:,} {name}" for name, n in report.outcomes.items() if n)
    yield f"{'✓ adds up' if report.adds_up else '✗ does not add up'}: {outcomes or 'nothing read'}"
    yield from (f"✗ {s.words}: {s.left:,} ≠ {s.right:,}" for s in report.sums if not s.holds)
    o = report.objective
    yield (
        f"{'✓' if o.met else '✗'} {percent(o.share)} settled within window and grace, "
        f"goal {percent(o.target)}"
    )
    yield from (f"! {note}" for note in report.notes)


def _statuses(report: ReconcileReport) -> Iterator[str]:
    rows = [("STATUS", "KEYS", "SHARE", "CHANGE", "WHICH MEANS")]
    for line in report.statuses:
        change = "" if line.change is None else f"{line.change:+,}" if line.change else "="
        rows.append((line.status, f"{line.keys:,}", percent(line.share), change, line.reason))
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
    by_status = ", ".join(f"{n:,} {status}" for status, n in repair.by_status.items())
    yield f"{repair.keys:,} keys to send again{f': {by_status}' if by_status else ''}"
    yield f"{pending.keys:,} keys wait, {pending.overdue:,} of them past their deadline"
    letters = ", ".join(f"{line.records:,} {line.code}" for line in report.letters)
    yield f"dead letters: {letters or 'none'}"


def aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield "  ".join([*cells, row[-1]]).rstrip()
