"""Evidence of a reconciliation as values, for tests of its report."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from headgate.reconcile.report.make import Before, Evidence, Step
from headgate.reconcile.report.model import (
    Header,
    Move,
    Objective,
    Pending,
    PendingLine,
    RepairLine,
    RepairList,
)
from headgate.reconcile.row_diff import Difference, Kind, RowDifference

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOSTILE = "</script><img src=x onerror=alert(1)> & 'K'"
STATUSES = {
    "MATCH": 17_900,
    "LATE_MATCH": 360,
    "DELETE_EVENT": 260,
    "MISMATCH": 500,
    "LATE_MISMATCH": 100,
    "ZOMBIE": 260,
    "VERSION_SKEW": 100,
    "INVALID_HASH": 120,
    "MISSING_CLOUD": 300,
    "MISSING_ONPREM": 200,
    "PENDING": 40,
}


def header(run: int = 3) -> Header:
    return Header(
        table="business",
        job="reconcile-business",
        run=run,
        state="running",
        revision="0c56fe12ab90",
        sources=("topic1", "topic2"),
        window="10 MINUTES",
        grace="5 MINUTES",
        horizon="1 HOUR",
        batches=42,
        first_change="2026-03-01 12:00:00",
        last_change="2026-03-01 12:20:00",
        made_at="2026-03-01 12:20:05",
        as_of="2026-03-01T12:20:05.123456+00:00",
    )


def steps() -> tuple[Step, ...]:
    """All keys are pending at first, and settle over twenty minutes."""
    keys = sum(STATUSES.values())
    found = [Step(NOON, "PENDING", keys)]
    for minute in range(1, 21):
        at = NOON + timedelta(minutes=minute)
        for status, n in STATUSES.items():
            if status == "PENDING":
                continue
            part = n * minute // 20 - n * (minute - 1) // 20
            found += [Step(at, status, part), Step(at, "PENDING", -part)]
    return tuple(found)


def differing_rows() -> tuple[tuple[str, RowDifference], ...]:
    kinds: tuple[tuple[Kind, str, str | None, str | None], ...] = (
        ("null_empty", "col1", None, "''"),
        ("zone_shift", "col3", "2026-02-28T10:00:00Z", "2026-02-28T12:00:00Z"),
        ("unicode_form", "col1", "'Ren\\xe9e'", "'Rene\\u0301e'"),
        ("real", "col2", "12.34", HOSTILE),
    )
    found = [
        ("MISMATCH", RowDifference(f"K{n}-{at}", "different", (Difference(column, kind, a, b),)))
        for at, (kind, column, a, b) in enumerate(kinds)
        for n in range(100 * (at + 1))
    ]
    return (*found, ("MISMATCH", RowDifference("K-equal", "equal")))


def evidence(*, before: bool = True, hostile: str = HOSTILE) -> Evidence:
    repairs = tuple(
        RepairLine(f"{hostile}{n}", "MISSING_CLOUD", f"2026-03-01 11:{n:02d}:00", "", "12:01:00")
        for n in range(50)
    )
    waiting = PendingLine(hostile, "PENDING", "MISMATCH", "12:10:00", "12:25:00", overdue=False)
    return Evidence(
        statuses=STATUSES,
        severities={},
        steps=steps(),
        flags={"stale": 160, "conflict": 160},
        pending=Pending(40, 0, (waiting,)),
        letters={"dq_missing_pk": ("no key", 60), "not_json": (hostile, 60)},
        objective=Objective(0.999, 20_000, 19_990),
        repair=RepairList(700, {"MISSING_CLOUD": 300, "MISMATCH": 400}, repairs),
        outcomes={"accepted": 40_000, "tombstone": 200, "refused": 120},
        read=40_320,
        differing=differing_rows(),
        unequal=600,
        moves=(Move(None, "MATCH", 100), Move("PENDING", "MISMATCH", 20)) if before else (),
        before=Before(
            "2026-03-01 11:00:00",
            "2026-03-01 11:00:00.5+00:00",
            "old.json",
            {"MATCH": 17_800, "MISMATCH": 480},
            {},
        )
        if before
        else None,
    )
