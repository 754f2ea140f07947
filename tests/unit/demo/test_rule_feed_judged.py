"""The shipped feeds promise what the rules say: every message is read and judged by the twin."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from headgate.demo.quality.declaration import find_feed, load_feed, require_fit
from headgate.demo.quality.planting import Feeding, Order
from headgate.pipeline.generator.declaration import find_sample, load_sample
from headgate.quality.compile.resolve import JudgedTable, judged_table
from headgate.quality.evaluator import RowVerdict, judge_row, judge_rows, row_values
from headgate.quality.spec.loader import find_table, load_rules
from headgate.quality.spec.rule_set import Side

ROOT = Path(__file__).resolve().parents[3]
START = datetime(2024, 1, 5, tzinfo=UTC)
NOW = datetime(2024, 6, 1, tzinfo=UTC)
SEED, ROWS = 20240105, 1000


def feeding(name: str) -> tuple[Feeding, JudgedTable]:
    rules = load_rules(find_table(ROOT, name), {"TOPIC": "events"})
    table = judged_table(rules, rules.value.table(name))
    feed = load_feed(find_feed(ROOT, name))
    require_fit(feed, table)
    dataset = feed.value.dataset
    sample = load_sample(find_sample(ROOT, dataset)).value if dataset else None
    return Feeding(feed.value, table, Order(ROWS, SEED, START, {}), sample), table


def rows_of(feed: Feeding, side: Side, pk: str) -> list[dict[str, Any]]:
    """What can be read of a side's messages and has a key, in the order of sending."""
    found: list[dict[str, Any]] = []
    for block in feed.blocks():
        for message in block[side]:
            try:
                row = orjson.loads(message.value or b"")
            except orjson.JSONDecodeError:
                continue
            if row.get(pk) is not None:
                found.append(row)
    return found


def counted(verdicts: list[RowVerdict]) -> tuple[dict[str, int], dict[str, int]]:
    statuses = Counter(verdict.status for verdict in verdicts)
    rules = Counter(name for verdict in verdicts for name in verdict.rules)
    return dict(sorted(statuses.items())), dict(sorted(rules.items()))


@pytest.mark.parametrize("name", ["customer", "orders"])
def test_pairs_are_judged_as_the_feed_promises(name: str) -> None:
    print(f"seed {SEED}")
    feed, table = feeding(name)
    pk = table.table.pk
    newest: dict[str, dict[str, Any]] = {}
    for side in table.table.sides:
        for row in sorted(rows_of(feed, side, pk), key=lambda row: row["ts"]):
            newest.setdefault(row[pk], {})[side] = row
    verdicts = [judge_row(table, row_values(table, pair), NOW) for pair in newest.values()]
    planted = feed.planted()
    # The evaluator lists no verdict of the decision table among the rules, as results do.
    matched = {
        rule.rule: rule.matched
        for rule in planted.rules
        if rule.matched and not rule.rule.startswith("verdict_")
    }
    assert counted(verdicts) == (planted.statuses, dict(sorted(matched.items())))


def test_trips_are_judged_as_the_feed_promises_and_every_rule_but_one_is_met() -> None:
    print(f"seed {SEED}")
    feed, table = feeding("taxi")
    rows = [row_values(table, row) for row in rows_of(feed, "onprem", table.table.pk)]
    planted = feed.planted()
    matched = {rule.rule: rule.matched for rule in planted.rules if rule.matched}
    assert counted(list(judge_rows(table, rows, NOW))) == (
        planted.statuses,
        dict(sorted(matched.items())),
    )
    # A pickup in the future would close every window before it.
    assert {rule.name for rule in table.rules} - set(matched) == {"not_there_yet"}


@pytest.mark.parametrize("name", ["customer", "orders", "taxi"])
def test_every_metric_of_the_rule_set_is_planted(name: str) -> None:
    feed, table = feeding(name)
    planted = feed.planted().metrics
    namespace = table.rule_set.metrics.namespace
    none = {rule.metric for rule in table.rules if not planted[f"{namespace}.{rule.metric}"]}
    assert none <= {"from_the_future"}
