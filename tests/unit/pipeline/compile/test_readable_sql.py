"""T5: a reviewer reads the generated SQL whole. Its length is bounded, and a table of contents leads through it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.rule_tables import ROOT, compile_shipped, load_rule_table

from headgate.core.sql.fragments import LONGEST_LINE
from headgate.quality.compile.file import compile_table

GOLDEN = ROOT / "tests" / "golden"
TABLES = ("business", "customer", "orders", "taxi")
MOST_LINES = {
    "rules/taxi/dq_generated.sql": 320,
    "rules/business/dq_generated.sql": 420,
    "rules/customer/dq_generated.sql": 420,
    "rules/orders/dq_generated.sql": 420,
    **{f"rules/{name}/engine.sql": 150 for name in TABLES},
    "taxi/05_bronze_batch.sql": 190,
    "taxi/07_bronze_streaming.sql": 190,
    "orders/05_bronze_batch.sql": 150,
    "orders/07_bronze_streaming.sql": 150,
    "taxi/06_silver.sql": 210,
}
FIVE_RULES = """
    {name: negative, description: the amount is negative, when: "amount < 0"}
    {name: no_amount, description: the amount is missing, type: required, field: amount}
    {name: huge, type: range, field: amount, max: 1000000, severity: WARN}
    {name: odd_name, type: regex, field: name, pattern: "^[A-Z]+$", severity: WARN}
    {name: old, type: timestamp_freshness, field: at, max_age_seconds: 3600, severity: INFO}
"""
FILES = sorted(path.relative_to(GOLDEN).as_posix() for path in GOLDEN.rglob("*.sql"))


@pytest.mark.parametrize("file", [*MOST_LINES, "one source with five rules"])
def test_a_file_is_short_enough_to_be_read(file: str, tmp_path: Path) -> None:
    if file in MOST_LINES:
        assert (GOLDEN / file).read_text("utf-8").count("\n") <= MOST_LINES[file]
        return
    compiled = compile_table(load_rule_table(tmp_path, FIVE_RULES), "rules.yml")
    assert len(compiled.rules) == 5
    assert compiled.text.count("\n") <= 160
    assert compiled.engine.count("\n") <= 150


@pytest.mark.parametrize("file", FILES)
def test_a_line_is_short_enough_to_be_read(file: str) -> None:
    lines = (GOLDEN / file).read_text("utf-8").splitlines()
    assert [line for line in lines if len(line) > LONGEST_LINE] == []


@pytest.mark.parametrize("name", TABLES)
def test_the_file_for_readers_changes_nothing_and_has_no_marks(name: str) -> None:
    text = (GOLDEN / "rules" / name / "dq_generated.sql").read_text("utf-8")
    assert not re.search(r"\bINSERT\b|\bCREATE TABLE\b|^-- step:", text, re.MULTILINE)
    views = set(re.findall(r"^(?:CREATE|DECLARE)(?: OR REPLACE)?(?: TEMPORARY)? \w+", text, re.M))
    assert views == {"CREATE OR REPLACE TEMPORARY VIEW", "DECLARE OR REPLACE VARIABLE"}


# The first view of each section of the file.
PAIR = "{a}_source {b}_source dq_messages_{t} dq_facts_{t} dq_decided_{t} dq_results_{t} dq_counts_{t} dq_metrics_{t}"
FIRST_VIEWS = {
    "business": PAIR.format(a="topic1_onprem", b="topic2_cloud", t="business"),
    "customer": PAIR.format(a="onprem_customer_events", b="cloud_customer_hash", t="customer"),
    "orders": PAIR.format(a="onprem_orders_events", b="cloud_orders_hash", t="orders"),
    "taxi": "taxi_trips_source dq_known_keys_taxi dq_results_taxi dq_counts_taxi dq_metrics_taxi",
    "things": "things_seen_source dq_judged_things dq_results_things dq_counts_things dq_metrics_things",
}


@pytest.mark.parametrize("name", FIRST_VIEWS)
def test_the_table_of_contents_names_the_line_on_which_a_section_begins(
    name: str, tmp_path: Path
) -> None:
    if name == "things":
        text = compile_table(load_rule_table(tmp_path, FIVE_RULES), "rules.yml").text
    else:
        text = compile_shipped(name).text
    lines = text.splitlines()
    contents = re.findall(r"^--   line +(\d+)  (.+)$", text, re.MULTILINE)
    begins = [int(number) - 1 for number, _ in contents]
    assert all(lines[at].startswith("-- ") and lines[at - 1] == "" for at in begins)
    statements = [
        "\n".join(lines[at:]).split("\nCREATE OR REPLACE TEMPORARY VIEW ")[1] for at in begins
    ]
    assert " ".join(sql.split()[0] for sql in statements) == FIRST_VIEWS[name]
