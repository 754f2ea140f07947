"""`headgate rules explain` as a person and a script see it."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.support.quality_evidence import NOON, ledger_row

from headgate.cli.main import cli
from headgate.config.settings import load_settings
from headgate.core.ledger.model import Intent, JobSpec, Judged, RuleCount
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.windows import JudgedRows
from headgate.errors import UsageError

ROOT = Path(__file__).parents[3]
RULES = """\
version: 2
tables:
  - name: sales
    pk: order_id
    sources:
      onprem:
        topic: orders.raw
        table: orders_in
        event_time: ts
        columns: {order_id: STRING, amount: DOUBLE, mail: {type: STRING, sensitive: true}, ts: TIMESTAMP(3)}
    rules:
      - name: amount_odd
        description: amounts are positive
        when: "amount < 0 OR amount IS NULL"
        emit: {dq_status: INVALID, metric: odd, severity: ERROR}
      - {name: again, type: unique, fields: [order_id], severity: WARN}
    aggregates:
      - {name: enough, measure: row_count, min: 10}
"""


@pytest.fixture(autouse=True)
def here(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (project / "rules").mkdir()
    (project / "rules" / "sales.yml").write_text(RULES)
    shutil.copy(ROOT / "rules.yaml", project / "rules.yaml")
    monkeypatch.chdir(project)
    return project


def explain(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["rules", "explain", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def count(rule: str, n: int, matched: int, number: int) -> None:
    """A settled batch in which the rule counted."""
    row = replace(ledger_row(number, run=1), job="quality-sales")
    with OpsStore.open(load_settings().ops_store_url) as store:
        if not store.runs("quality-sales"):
            store.submit(JobSpec("quality-sales", "quality", "sales", "batch", row.revisions[0]))
        intent = store.begin(
            Intent(None, row.job, 1, row.range, row.revisions, row.batch_time, row.batch_id)
        )
        judged = Judged((RuleCount(rule, "odd", "ERROR", n, matched),))
        store.settle(intent, row, (JudgedRows(judged),))


def test_every_rule_is_told_in_words_with_its_sql_and_what_it_emits() -> None:
    text = explain("sales")
    assert "1. amount_odd  ERROR → INVALID, metric odd, on_fail keep" in text
    assert "matches when amount is below 0, or is missing" in text
    assert "SQL: amount < 0 OR amount IS NULL" in text
    assert "reason: amounts are positive" in text
    assert "matches when order_id came before within 1 day" in text
    assert "each window: the number of rows must be at least 10" in text
    assert "nothing counted yet" in text


def test_the_last_counts_and_the_sums_are_those_of_the_ledger() -> None:
    count("amount_odd", 5, 7, number=1)
    count("amount_odd", 2, 3, number=2)
    told = f"last batch ({NOON + timedelta(minutes=2):%Y-%m-%d %H:%M:%S} UTC)"
    assert f"{told}: status of 2 rows, matched 3; in all: status of 7 rows, matched 10" in explain(
        "sales"
    )


def test_without_a_table_all_are_told() -> None:
    text = explain()
    assert "customer (rules.yaml)" in text
    assert "sales (rules/sales.yml)" in text


def test_one_rule_alone() -> None:
    text = explain("sales", "--rule", "again")
    assert "amount_odd" not in text
    assert "order_id came before" in text
    assert explain("--rule", "enough").count("each window") == 1


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(UsageError, match="no rule `amount_od`"):
        explain("sales", "--rule", "amount_od")


def test_a_script_gets_the_same() -> None:
    result = CliRunner().invoke(cli, ["-o", "json", "rules", "explain", "customer"])
    tables = json.loads(result.stdout)["tables"]
    assert tables[0]["table"] == "customer"
    assert {"words", "sql", "severity", "status", "metric", "on_fail", "last"} <= set(
        tables[0]["rules"][0]
    )
