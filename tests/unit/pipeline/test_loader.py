from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from headgate.declarations.errors import Declared
from headgate.declarations.project import find_dataset
from headgate.declarations.types import TIMESTAMP_LTZ, decimal, parse_type
from headgate.errors import DeclarationError, Fault, UsageError
from headgate.pipeline.loader import load_dataset
from headgate.pipeline.spec import Dataset

ROOT = Path(__file__).parents[3]
VARIABLES = {"TOPIC": "orders.raw", "DLQ_TOPIC": "orders.raw.dlq"}
ORDERS = """\
name: orders
topic: "${TOPIC}"
dlq_topic: "${DLQ_TOPIC}"
bronze_table: bronze.raw_orders
silver_table: silver.cleaned_orders
event_ts_col: created_at
ts_format: "yyyy-MM-dd''T''HH:mm:ss"
partition_date_col: order_date
partition_date_expr: "CAST(created_at AS DATE)"

columns:
  - name: order_no
    kafka_type: STRING
    bronze_type: STRING
    silver_name: order_no
    silver_type: STRING
    is_event_ts: false

  - name: created_at
    kafka_type: STRING
    bronze_type: TIMESTAMP(3)
    silver_name: created_at
    silver_type: "TIMESTAMP(3)"
    is_event_ts: true

  - name: total_amount
    kafka_type: DOUBLE
    bronze_type: DOUBLE
    silver_name: total_amount
    silver_type: "DECIMAL(10, 2)"
    comment: "Order total in USD"

dedup_key:
  - order_no
  - created_at

quality_filters:
  - "created_at IS NOT NULL"
  - "total_amount > 0"

surrogate_key_fields:
  - order_no
  - created_at
"""
Load = Callable[[str], Declared[Dataset]]
Faults = Callable[[str], list[Fault]]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load(text: str) -> Declared[Dataset]:
        path = tmp_path / "dataset.yml"
        path.write_text(text)
        return load_dataset(path, VARIABLES)

    return load


@pytest.fixture
def faults(load: Load) -> Faults:
    def faults(text: str) -> list[Fault]:
        with pytest.raises(DeclarationError) as caught:
            load(text)
        return list(caught.value.faults)

    return faults


def test_the_documents_example_loads(load: Load) -> None:
    dataset = load(ORDERS).value
    assert dataset.topic == "orders.raw"
    assert dataset.ts_format == "yyyy-MM-dd'T'HH:mm:ss"
    assert dataset.surrogate_key_name == "orders_id"
    assert dataset.event_column is not None
    assert dataset.event_column.bronze_type == parse_type("TIMESTAMP(3)")
    assert dataset.column("total_amount").silver_type == decimal(10, 2)
    assert dataset.quality_filters == ("created_at IS NOT NULL", "total_amount > 0")
    assert dataset.key_field is None


def test_events_without_a_time_take_the_time_of_their_record(load: Load, faults: Faults) -> None:
    timeless = (
        ORDERS.replace("is_event_ts: true", "is_event_ts: false")
        .replace("event_ts_col: created_at", "event_ts_col: kafka_timestamp")
        .replace("CAST(created_at AS DATE)", "CAST(kafka_timestamp AS DATE)")
    )
    dataset = load(timeless).value
    assert dataset.event_column is None
    assert dataset.bronze_types["kafka_timestamp"] == TIMESTAMP_LTZ
    marked = timeless.replace("is_event_ts: false", "is_event_ts: true", 1)
    assert "but the event time is marked at" in faults(marked)[0].what


def test_a_dataset_cannot_be_changed(load: Load) -> None:
    with pytest.raises(FrozenInstanceError):
        load(ORDERS).value.name = "other"  # pyright: ignore[reportAttributeAccessIssue]  the point


@pytest.mark.parametrize("path", sorted(ROOT.glob("datasets/*/dataset.yml")), ids=str)
def test_every_shipped_dataset_loads(path: Path) -> None:
    assert load_dataset(path, VARIABLES).value.name == path.parent.name


def test_the_reference_dataset_has_its_columns_and_keys() -> None:
    dataset = load_dataset(ROOT / "datasets/taxi/dataset.yml", VARIABLES).value
    assert len(dataset.columns) == 19
    assert len(dataset.dedup_key) == len(dataset.surrogate_key_fields) == 7
    assert dataset.key_field == "PULocationID"


def test_lines_are_kept_for_faults_found_later(load: Load) -> None:
    declared = load(ORDERS)
    assert declared.lines["quality_filters[1]"] == 39
    assert declared.lines["columns[2].silver_type"] == 30
    fault = declared.fault("quality_filters[1]", "no such column", "it is not declared", "Add it.")
    assert (fault.line, fault.what) == (39, "no such column: it is not declared")


def test_each_of_the_thirteen_keys_is_required(faults: Faults) -> None:
    keys = """name topic dlq_topic bronze_table silver_table event_ts_col ts_format
    partition_date_col partition_date_expr columns dedup_key quality_filters
    surrogate_key_fields""".split()
    found = faults("manifest_version: 1\n")
    assert [(fault.field, fault.what, fault.line) for fault in found] == [
        (key, f"the key `{key}` is missing", 1) for key in keys
    ]


def test_all_faults_come_at_once_in_the_order_of_lines(faults: Faults) -> None:
    broken = (
        ORDERS.replace("${TOPIC}", "${TOPIK}")
        .replace("bronze.raw_orders", "raw_orders")
        .replace("silver_name: order_no", "silver_nam: order_no")
        .replace("bronze_type: DOUBLE", "bronze_type: DOUBEL")
        .replace("dedup_key:\n  - order_no", "dedup_key:\n  - order_n")
    )
    found = faults(broken)
    assert [(fault.line, fault.field) for fault in found] == [
        (2, "topic"),
        (4, "bronze_table"),
        (12, "columns[0].silver_name"),
        (15, "columns[0].silver_nam"),
        (28, "columns[2].bronze_type"),
        (34, "dedup_key[0]"),
    ]
    assert "Did you mean `TOPIC`?" in found[0].fix
    assert "bronze.raw_orders" in found[1].fix
    assert found[3].fix == "Did you mean `silver_name`?"
    assert found[4].fix == "Did you mean `DOUBLE`?"
    assert found[5].fix == "Did you mean `order_no`?"


@pytest.mark.parametrize(
    ("old", "new", "field", "words"),
    [
        ("is_event_ts: true", "is_event_ts: false", "columns", "no column is the event time"),
        ("is_event_ts: false", "is_event_ts: true", "columns[1].is_event_ts", "second event time"),
        ("is_event_ts: true", "is_event_ts: 'yes'", "columns[1].is_event_ts", "true or false"),
        ("event_ts_col: created_at", "event_ts_col: order_no", "event_ts_col", "marked"),
        ("bronze_type: TIMESTAMP(3)", "bronze_type: STRING", "columns[1].bronze_type", "no"),
        ("name: total_amount", "name: order_no", "columns[2].name", "line 12"),
        ("name: total_amount", "name: Order_No", "columns[2].name", "line 12"),
        ("silver_name: order_no", "silver_name: total_amount", "columns[2].silver_name", "line 15"),
        ("silver_name: order_no", "silver_name: order no", "columns[0].silver_name", "plain"),
        ("name: total_amount", "name: ingestion_ts", "columns[2].name", "Headgate adds"),
        ("name: total_amount", "name: kafka_offset", "columns[2].name", "Headgate adds"),
        ("name: total_amount", "name: a.b", "columns[2].name", "dot"),
        ("name: total_amount", "name: 5", "columns[2].name", "must be text, not a number"),
        ("kafka_type: DOUBLE", "kafka_type: DATE", "columns[2].bronze_type", "cannot become"),
        ("ts_format: \"yyyy", "ts_format: \"YYYY", "ts_format", "`Y`"),
        ("silver.cleaned_orders", "bronze.raw_orders", "silver_table", "bronze table"),
        ("silver.cleaned_orders", "headgate.x", "silver_table", "own tables"),
        ("silver.cleaned_orders", "a.b.c", "silver_table", "schema.table"),
        ("${DLQ_TOPIC}", "orders.raw", "dlq_topic", "go back"),
        ("${DLQ_TOPIC}", "not a topic", "dlq_topic", "not a topic name"),
        ("name: orders", "name: or/ders", "name", "not a name"),
        ("partition_date_col: order_date", "partition_date_col: order_no", "partition_date_col", "already"),
        ("silver_name: order_no", "silver_name: orders_id", "name", "already"),
        ("dedup_key:\n  - order_no\n", "dedup_key:\n  - created_at\n", "dedup_key[1]", "twice"),
        ("name: orders\n", "name: orders\nname: other\n", "name", "given twice, first on line 1"),
        ("name: orders\n", "name: orders\nkey_field: nope\n", "key_field", "no column"),
        ("name: orders\n", "name: orders\nmanifest_version: 2\n", "manifest_version", ""),
        ("name: orders\n", "name: ''\n", "name", "empty"),
        ("quality_filters:\n  - \"created_at IS NOT NULL\"\n  - \"total_amount > 0\"",
         "quality_filters: []", "quality_filters", "empty"),
        ("columns:\n", "columns: 5\nx:\n", "columns", "must be a list"),
    ],
)  # fmt: skip
def test_a_fault_names_its_field(
    old: str, new: str, field: str, words: str, faults: Faults
) -> None:
    found = faults(ORDERS.replace(old, new, 1))
    assert any(fault.field == field and words in fault.what for fault in found), found
    assert all(fault.line and fault.fix for fault in found)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "empty"),
        ("# nothing\n", 1, "empty"),
        ("- a\n- b\n", 1, "not a mapping"),
        ("name: [1, 2\ntopic: x\n", 2, "not YAML"),
        ("name: a\n  topic: b\n", 2, "not YAML"),
        ("name: \x07\n", 1, "character"),
        ("a: &x [*x]\n", 1, "alias"),
        ("? [a]\n: b\n", 1, "key"),
        ("---\na: 1\n---\nb: 2\n", 3, "not YAML"),
    ],
)
def test_what_is_not_a_manifest_is_a_fault_with_its_line(
    text: str, line: int, words: str, faults: Faults
) -> None:
    (fault,) = [found for found in faults(text) if words in found.what]
    assert fault.line == line


def test_a_doubled_dollar_stands_for_itself(load: Load) -> None:
    text = ORDERS.replace("Order total in USD", "$${TOPIC} and ${TOPIC}")
    assert load(text).value.column("total_amount").comment == "${TOPIC} and orders.raw"


def test_the_folder_gives_the_name(tmp_path: Path) -> None:
    path = tmp_path / "datasets" / "returns" / "dataset.yml"
    path.parent.mkdir(parents=True)
    path.write_text(ORDERS)
    with pytest.raises(DeclarationError, match="one fault") as caught:
        load_dataset(path, VARIABLES)
    assert caught.value.faults[0].fix == "Write name: returns."


def test_a_missing_file_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(DeclarationError) as caught:
        load_dataset(tmp_path / "dataset.yml", VARIABLES)
    assert "does not exist" in caught.value.faults[0].what


def test_an_unknown_dataset_is_refused_with_those_there_are(tmp_path: Path) -> None:
    for name in ("orders", "returns"):
        (tmp_path / "datasets" / name).mkdir(parents=True)
        (tmp_path / "datasets" / name / "dataset.yml").write_text(ORDERS)
    assert find_dataset(tmp_path, "orders").name == "dataset.yml"
    with pytest.raises(UsageError) as caught:
        find_dataset(tmp_path, "ordres")
    assert "Did you mean `orders`?" in caught.value.fix
    assert "Available: orders, returns." in caught.value.fix
    with pytest.raises(UsageError) as caught:
        find_dataset(tmp_path, "x")
    assert caught.value.fix == "Known datasets: orders, returns."
    with pytest.raises(UsageError):
        find_dataset(tmp_path, "../orders")
