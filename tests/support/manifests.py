"""A manifest of an orders dataset, compiled with the shipped templates."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import sqlglot
from sqlglot import exp

from headgate.core.sql.script import PLACEHOLDERS
from headgate.declarations.errors import Declared
from headgate.pipeline.compile.dataset import CompiledDataset, compile_dataset
from headgate.pipeline.loader import load_dataset
from headgate.pipeline.spec import Dataset

ROOT = Path(__file__).parents[2]
ORDERS = dedent("""\
    name: orders
    topic: ${TOPIC}
    dlq_topic: ${DLQ_TOPIC}
    bronze_table: bronze.raw_orders
    silver_table: silver.cleaned_orders
    event_ts_col: created_at
    ts_format: "yyyy-MM-dd''T''HH:mm:ss"
    partition_date_col: order_date
    partition_date_expr: "CAST(created_at AS DATE)"
    columns:
      - {name: order_id, kafka_type: STRING, bronze_type: STRING,
         silver_name: order_id, silver_type: STRING}
      - {name: created_at, kafka_type: STRING, bronze_type: TIMESTAMP(3),
         silver_name: created_at, silver_type: TIMESTAMP(3), is_event_ts: true}
      - {name: total_amount, kafka_type: DOUBLE, bronze_type: DOUBLE,
         silver_name: total_amount, silver_type: "DECIMAL(10, 2)", comment: "in USD"}
    dedup_key: [order_id, created_at]
    quality_filters: ["created_at IS NOT NULL", "total_amount > 0"]
    surrogate_key_fields: [order_id, created_at]
    """)


def load_templates() -> dict[str, str]:
    """The shipped templates by file name."""
    return {file.name: file.read_text() for file in (ROOT / "datasets/_template").glob("*.j2")}


def load_manifest(folder: Path, text: str = ORDERS) -> Declared[Dataset]:
    """Write a manifest to the folder and load it."""
    path = folder / "dataset.yml"
    path.write_text(text)
    return load_dataset(path, PLACEHOLDERS)


def compile_manifest(folder: Path, text: str = ORDERS) -> CompiledDataset:
    """The SQL of a manifest."""
    return compile_dataset(
        load_manifest(folder, text), load_templates(), "datasets/orders/dataset.yml"
    )


def selected_columns(statement: str) -> list[str]:
    """The names of the columns that an INSERT … SELECT gives."""
    select = sqlglot.parse_one(statement, read="spark").find(exp.Select)
    assert select is not None
    return select.named_selects
