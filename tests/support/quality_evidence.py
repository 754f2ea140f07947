"""Evidence of a quality run as values, for tests of its report."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from headgate.conditions.parser import parse_condition
from headgate.core.ledger.model import LedgerRow, RuleCount, Run, RunState
from headgate.core.ledger.ranges import TopicRange
from headgate.declarations.types import parse_type
from headgate.quality.compile.resolve import JudgedRule, JudgedTable, Unique
from headgate.quality.report.build import Evidence, StatusCount
from headgate.quality.report.model import Sample, VerdictLine, WindowLine, Windows
from headgate.quality.report.rows import FailedRow, sensitive_columns, shown_row
from headgate.quality.spec.rule_set import (
    SEVERITIES,
    RuleColumn,
    RuleSet,
    RuleSource,
    RuleTable,
    Severity,
)

CANARY = "canary-7f3a"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOSTILE = "<img src=x onerror=alert(1)>"


def rule_table(name: str = "orders", sensitive: tuple[str, ...] = ("mail",)) -> RuleTable:
    kinds = {"order_id": "STRING", "mail": "STRING", "amount": "DOUBLE", "ts": "TIMESTAMP(3)"}
    columns = {n: RuleColumn(parse_type(kind), n in sensitive) for n, kind in kinds.items()}
    source = RuleSource(table="orders_in", columns=columns, topic="orders.raw", event_time="ts")
    return RuleTable(name=name, pk="order_id", sources={"onprem": source})


def judged_table(rules: int = 0, table: RuleTable | None = None) -> JudgedTable:
    table = table or rule_table()
    types = table.first.types
    named: tuple[tuple[str, str, Severity, str], ...] = (
        ("no_mail", "mail IS NULL", "ERROR", "INVALID"),
        ("amount_below_zero", "amount < 0 OR amount IS NULL", "ERROR", "INVALID"),
        ("amount_high", "amount > 1000", "WARN", "QUARANTINE"),
    )
    found = [
        JudgedRule(
            name, f"reason of {name}", status, name, severity, "keep", parse_condition(text, types)
        )
        for name, text, severity, status in named
    ]
    again = Unique(("order_id",), timedelta(days=1))
    found.append(
        JudgedRule("seen_before", HOSTILE, "DUPLICATE", "seen_before", "INFO", "keep", unique=again)
    )
    found += [
        JudgedRule(
            f"amount_is_not_{n}", "", "WARNED", f"m{n}", SEVERITIES[n % 3], "keep",
            parse_condition(f"amount = {n}", types),
        )
        for n in range(rules)
    ]  # fmt: skip
    return JudgedTable(RuleSet(version=2, tables=(table,)), table, tuple(found), (), dict(types))


def ledger_row(number: int, run: int, judged_rows: int = 1000, refused: int = 3) -> LedgerRow:
    at = NOON + timedelta(minutes=number)
    outcomes = {"accepted": judged_rows - 10, "dead_letter": 10, "refused": refused, "tombstone": 0}
    start, end = (number - 1) * 1003, number * 1003
    return LedgerRow(
        number, "quality-orders", run, TopicRange("orders.raw", "id", {"0": start}, {"0": end}),
        ("ab" * 32,), at, number, judged_rows + refused, judged_rows + refused, 0, outcomes, {}, at,
    )  # fmt: skip


def quality_run(number: int = 1, mode: str = "batch") -> Run:
    return Run(
        "quality-orders", number, "quality", "orders", mode, "ab" * 32, {}, RunState.FINISHED, 0, NOON,
        NOON, NOON + timedelta(minutes=9),
    )  # fmt: skip


def failed_row(n: int, rules: tuple[str, ...], status: str, row: str | None = None) -> FailedRow:
    return FailedRow(
        f"key-{n}", None, status, "ERROR", "failed", rules, "a reason", NOON, "orders.raw", 0, n,
        row or f'{{"order_id": "key-{n}", "mail": "{CANARY}", "amount": -{n}.5, "ts": null}}',
    )  # fmt: skip


def evidence(table: JudgedTable, runs: int = 3, mode: str = "batch", late: int = 2) -> Evidence:
    """The evidence of the newest of so many runs, or of one stream."""
    batches = tuple(
        ledger_row(number, number if mode == "batch" else 1) for number in range(1, runs + 1)
    )
    counts = {row.id or 0: _counts(table, row.id or 0) for row in batches}
    own = [row for row in batches if row.run == (runs if mode == "batch" else 1)]
    sums: dict[tuple[str, str], int] = {}
    for row in own:
        for count in counts[row.id or 0]:
            status = next(r.status for r in table.rules if r.name == count.rule)
            sums[status, count.severity] = sums.get((status, count.severity), 0) + count.n
    statuses = [StatusCount(s, "failed", v, n) for (s, v), n in sums.items()]
    clean = 1000 * len(own) - sum(sums.values())
    words = {rule.name: f"words of {rule.name}" for rule in table.rules}
    hidden = sensitive_columns(table.table)
    rows = [
        *(failed_row(n, ("no_mail", "amount_high"), "INVALID") for n in range(1, 5)),
        failed_row(
            9, ("seen_before",), "DUPLICATE", f'{{"note": "{HOSTILE}", "mail": "{CANARY}"}}'
        ),
    ]
    return Evidence(
        quality_run(runs if mode == "batch" else 1, mode), batches, counts,
        (*statuses, StatusCount("VALID", "clean", None, clean)),
        window_lines(12, late),
        (VerdictLine("enough", "the number of rows", "2026-03-01 12:00:00 UTC", "", "7", "at least 100", "ERROR", False),
         VerdictLine("filled", "the share of rows without mail", "2026-03-01 12:00:00 UTC", "amount = 5", "0.01", "at most 0.1", "WARN", True)),
        Sample(5, 200, 75, tuple(shown_row(row, table.table, words, hidden) for row in rows)),
    )  # fmt: skip


def _counts(table: JudgedTable, number: int) -> tuple[RuleCount, ...]:
    """The first rules count something, the more the earlier they are and the later the batch is."""
    few = table.rules[:4] if len(table.rules) < 10 else table.rules[:60]
    return tuple(
        RuleCount(r.name, r.metric, r.severity, n, n + 5)
        for at, r in enumerate(few)
        if (n := max(0, (40 if len(few) < 10 else 6) // (at + 1) + number))
    )


def window_lines(count: int, late: int) -> Windows:
    lines = [
        WindowLine(
            f"{NOON + timedelta(minutes=n):%Y-%m-%d %H:%M:%S} UTC", 100 + n,
            {"ERROR": 3 * n % 13, "WARN": n % 5, "INFO": n % 3}, 7 if n < late else 0,
        )
        for n in range(count)
    ]  # fmt: skip
    return Windows(tuple(lines), earlier=40, late=late)
