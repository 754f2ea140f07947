"""All faults of a manifest at once: of every key, with line and suggestion."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.manifests import ORDERS

from headgate.errors import DeclarationError, Fault
from headgate.pipeline.loader import load_checked

KEYS = """name topic dlq_topic bronze_table silver_table event_ts_col ts_format partition_date_col
partition_date_expr columns dedup_key quality_filters surrogate_key_fields""".split()
BROKEN = """\
name: or/ders
topic: ${TOPIK}
dlq_topic: not a topic
bronze_table: raw_orders
silver_table: headgate.orders
event_ts_col: createdat
ts_format: "YYYY-MM-dd"
partition_date_col: order date
partition_date_expr: "CAST(createdat AS DATE)"
columns:
  - {name: order_id, kafka_type: STRING, bronze_type: STRNG,
     silver_name: order_id, silver_type: STRING}
  - {name: created_at, kafka_type: STRING, bronze_type: TIMESTAMP(3),
     silver_name: created_at, silver_type: TIMESTAMP(3), is_event_ts: true}
  - {name: total_amount, kafka_type: DOUBLE, bronze_type: DOUBLE,
     silver_name: total_amount, silver_type: "DECIMAL(10, 2)"}
dedup_key: [ordr_id, created_at]
quality_filters: ["created_at IS NOT NULL", "total_amont > 0"]
surrogate_key_fields: [order_id, created]
"""


def faults(folder: Path, text: str) -> tuple[Fault, ...]:
    path = folder / "dataset.yml"
    path.write_text(text)
    with pytest.raises(DeclarationError) as caught:
        load_checked(path, {"TOPIC": "a", "DLQ_TOPIC": "b"})
    return caught.value.faults


@pytest.mark.parametrize("key", KEYS)
def test_of_a_manifest_broken_in_every_key_each_key_is_told(key: str, tmp_path: Path) -> None:
    lines = BROKEN.splitlines()
    found = [f for f in faults(tmp_path, BROKEN) if f.field.partition("[")[0] == key]
    assert found
    for fault in found:
        assert fault.line is not None
        assert key == "columns" or lines[fault.line - 1].startswith(f"{key}:")
        assert fault.what
        assert fault.fix


def test_they_come_in_the_order_of_lines_and_none_twice(tmp_path: Path) -> None:
    found = faults(tmp_path, BROKEN)
    assert [f.line for f in found] == sorted(f.line or 0 for f in found)
    assert len({(f.field, f.what) for f in found}) == len(found)


def test_near_misses_are_named(tmp_path: Path) -> None:
    fixes = {fault.field: fault.fix for fault in faults(tmp_path, BROKEN)}
    assert "`total_amount`" in fixes["quality_filters[1]"]
    assert "`created_at`" in fixes["partition_date_expr"]
    assert "`order_id`" in fixes["dedup_key[0]"]
    assert "`created_at`" in fixes["surrogate_key_fields[1]"]
    assert "`STRING`" in fixes["columns[0].bronze_type"]
    assert "`TOPIC`" in fixes["topic"]


def test_what_refers_to_a_column_at_fault_waits_until_that_is_mended(tmp_path: Path) -> None:
    text = ORDERS.replace("bronze_type: DOUBLE", "bronze_type: DOUBEL")
    assert [fault.field for fault in faults(tmp_path, text)] == ["columns[2].bronze_type"]


def test_a_file_that_is_no_manifest_has_no_expressions(tmp_path: Path) -> None:
    assert len(faults(tmp_path, "- 1\n")) == 1
    with pytest.raises(DeclarationError, match="one fault"):
        load_checked(tmp_path / "nowhere.yml", {})
