"""A comparison of two revisions for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from headgate.quality.diff.rule_diff import RowsDiff, RuleDiff

_SIGNS = {"added": "+", "removed": "-", "changed": "~"}
MOST_FIELDS = 8


def diff_text(found: RuleDiff) -> str:
    return "\n".join(_lines(found))


def _lines(found: RuleDiff) -> Iterator[str]:
    if not found.changes:
        yield f"{found.table}: {found.old} and {found.new} have the same rules"
    else:
        yield f"{found.table}: {found.old} → {found.new}"
    for change in found.changes:
        yield f"  {_SIGNS[change.change]} {change.name}"
        yield from (f"      {words}" for words in change.words)
    yield from (f"  ! {note}" for note in found.notes)
    if found.rows is not None:
        yield from _rows(found.rows)


def _rows(rows: RowsDiff) -> Iterator[str]:
    yield ""
    cannot = f", {rows.unreadable:,} could not be read" if rows.unreadable else ""
    yield f"  {rows.rows:,} rows judged by both{cannot}: {rows.changed:,} change their status"
    yield from (f"    {s.before} → {s.after}: {s.rows:,}" for s in rows.statuses)
    for count in rows.counts:
        gives = f"gives the status of {count.n_before:,} → {count.n_after:,}"
        yield f"    {count.rule}: {gives}, matches {count.matched_before:,} → {count.matched_after:,}"
    for row in rows.samples:
        fields = ", ".join(f"{k}={v}" for k, v in list(row.row.items())[:MOST_FIELDS])
        yield f"    {row.key}: {row.before} → {row.after} ({', '.join(row.rules_after) or 'no rule'}): {fields}"
