"""The picture of the flow: every count once, all in one column."""

from __future__ import annotations

import re

from headgate.demo.cli import Flow, render_flow

FLOW = Flow(
    file="events.parquet",
    rows=50_000,
    topic="orders",
    produced=50_000,
    bronze_table="bronze.orders",
    bronze=49_912,
    dead_letters=88,
    tombstones=0,
    silver_table="silver.orders_with_a_long_name",
    silver=48_938,
    filtered=487,
    duplicates=487,
    models=16,
    tests=51,
    marts={"fct_orders": 48_938, "mart_a": 31},
    planted_bad=88,
    planted_duplicates=487,
    planted_filtered=487,
)


def test_all_counts_end_in_one_column() -> None:
    ends = {
        found.end()
        for line in render_flow(FLOW).splitlines()
        if (found := re.search(r" [\d,]+(?=  |$)", line))
    }
    assert len(ends) == 1


def test_only_the_last_mart_closes_the_branch() -> None:
    lines = render_flow(FLOW).splitlines()
    assert lines[-2].split()[:2] == ["├─►", "fct_orders"]
    assert lines[-1].split()[:2] == ["└─►", "mart_a"]
