"""The dbt staging model gives what the shipped one gives."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.manifests import ORDERS, ROOT, compile_manifest

from headgate.pipeline.compile.dbt_files import quoted
from headgate.pipeline.revision import compiled as compiled_of

SHIPPED = ROOT / "dbt" / "models" / "staging" / "stg_yellow_trips.sql"


def columns(model: str) -> set[str]:
    select = re.search(r"^select\n(.*)^from ", model, re.DOTALL | re.MULTILINE)
    assert select
    return {name.strip() for name in select[1].split(",")}


def test_the_model_of_the_shipped_dataset_is_the_shipped_model() -> None:
    made, shipped = compiled_of(ROOT, "taxi").staging.text, SHIPPED.read_text()
    assert columns(made) == columns(shipped)
    assert made.splitlines()[-1] == shipped.splitlines()[-1]
    assert "{{ config(materialized='table') }}" in made


def test_the_model_is_named_after_its_dataset_and_reads_its_silver_table(tmp_path: Path) -> None:
    model = compile_manifest(tmp_path).staging
    assert model.file == "stg_orders.sql"
    assert model.text.endswith("from {{ source('silver', 'cleaned_orders') }}\n")
    assert columns(model.text) == {
        *("orders_id", "order_id", "created_at", "total_amount", "order_date", "ingestion_ts")
    }


def test_a_name_that_duckdb_would_take_for_something_else_is_quoted(tmp_path: Path) -> None:
    assert (quoted("plain_1"), quoted("Total"), quoted("order")) == (
        "plain_1",
        '"Total"',
        '"order"',
    )
    text = ORDERS.replace("silver_name: total_amount", "silver_name: group")
    assert '    "group",' in compile_manifest(tmp_path, text).staging.text
