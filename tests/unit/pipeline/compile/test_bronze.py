"""Bronze SQL: readable, complete, and safe whatever the fields are called."""

from __future__ import annotations

from pathlib import Path

from tests.support.manifests import ORDERS, compile_manifest, load_manifest, selected_columns

from headgate.core.sql.script import Script, parse_script
from headgate.core.sql.strict_json import json_type, read_options, read_record
from headgate.pipeline.compile.dataset import BRONZE_BATCH, BRONZE_STREAMING

HOSTILE = "it's x; -- step: accept"


def bronze(folder: Path, text: str = ORDERS) -> Script:
    return parse_script(BRONZE_BATCH, compile_manifest(folder, text).template(BRONZE_BATCH).text)


def with_type(kafka: str, bronze_type: str) -> str:
    return ORDERS.replace(
        "kafka_type: DOUBLE, bronze_type: DOUBLE",
        f"kafka_type: {kafka}, bronze_type: {bronze_type}",
    )


def test_the_steps_that_the_engine_runs_are_there(tmp_path: Path) -> None:
    script = bronze(tmp_path)
    assert [step.name for step in script.steps] == (
        "clock revision source table table table table view accept drift refuse".split()
    )


def test_the_revision_and_the_manifest_stand_in_the_header(tmp_path: Path) -> None:
    made = compile_manifest(tmp_path)
    for file in (BRONZE_BATCH, BRONZE_STREAMING):
        head = made.template(file).text.split("\n\n", 1)[0]
        assert "datasets/orders/dataset.yml" in head
        assert made.revision[:12] in head


def test_bronze_is_iceberg_v2_unpartitioned_with_snappy_set_explicitly(tmp_path: Path) -> None:
    table = bronze(tmp_path).named("table")[1]
    assert "'format-version' = '2'" in table
    assert "'write.parquet.compression-codec' = 'snappy'" in table
    assert "PARTITIONED BY" not in table


def test_columns_keep_their_names_and_say_where_the_row_came_from(tmp_path: Path) -> None:
    accept = bronze(tmp_path).one("accept")
    assert "record.* EXCEPT (_reason_code, _reason, _drift)," in accept
    assert selected_columns(accept)[1:] == (
        "ingestion_ts kafka_topic kafka_partition kafka_offset kafka_timestamp".split()
    )


def test_times_are_read_by_their_pattern_with_its_quotes_escaped(tmp_path: Path) -> None:
    assert r"'timestampNTZFormat', 'yyyy-MM-dd\'T\'HH:mm:ss'" in bronze(tmp_path).text


def test_a_time_in_text_is_read_as_a_time_at_once(tmp_path: Path) -> None:
    dataset = load_manifest(tmp_path).value
    assert json_type(dataset.column("created_at")).spark == "TIMESTAMP_NTZ"
    assert "created_at TIMESTAMP_NTZ" in read_record(dataset)


def test_a_value_of_another_bronze_type_is_cast_by_the_reader(tmp_path: Path) -> None:
    dataset = load_manifest(tmp_path, with_type("STRING", '"DECIMAL(10, 2)"')).value
    assert "total_amount STRING" in read_record(dataset)
    assert read_options(dataset)["casts"] == "total_amount DECIMAL(10, 2)"
    assert "casts" not in read_options(load_manifest(tmp_path).value)


def test_the_reader_knows_json_columns_and_those_that_came_later(tmp_path: Path) -> None:
    dataset = load_manifest(tmp_path, with_type("JSON", "STRING")).value
    assert read_options(dataset, ["created_at"])["json"] == "total_amount"
    assert read_options(dataset, ["created_at"])["evolved"] == "created_at"
    assert "total_amount STRING" in read_record(dataset)


def test_a_hostile_name_cannot_leave_its_place(tmp_path: Path) -> None:
    text = ORDERS.replace("name: order_id, kafka_type", f'name: "{HOSTILE}", kafka_type').replace(
        "[order_id, created_at]", f'["{HOSTILE}", created_at]'
    )
    script = bronze(tmp_path, text)
    assert [step.name for step in script.steps].count("accept") == 1
    assert r"'`it\'s x; -- step: accept` STRING," in script.named("view")[0]


def test_a_hyphen_in_the_datasets_name_does_not_reach_the_views(tmp_path: Path) -> None:
    text = ORDERS.replace("name: orders", "name: orders-eu\nsurrogate_key_name: order_key", 1)
    script = bronze(tmp_path, text)
    assert "FROM orders_eu_read" in script.one("accept")
    assert "'bronze-orders-eu' AS job" in script.one("refuse")


def test_the_batch_time_is_the_variable_even_if_a_field_has_that_name(tmp_path: Path) -> None:
    script = bronze(tmp_path)
    assert "session.batch_time AS ingestion_ts" in script.one("accept")
    assert "session.batch_time AS refused_at" in script.one("refuse")
