"""`headgate feed`: what the command makes of settings and options."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.config.settings import Settings
from headgate.errors import UnavailableError
from headgate.pipeline.cli.feed import plan_from, sample_words
from headgate.pipeline.generator.parquet_to_kafka import Plan
from headgate.pipeline.generator.sample import Planted, SampleFile

ROOT = Path(__file__).parents[3]


def plan(file: Path | None = None, *, of: str = "taxi", **values: object) -> Plan:
    given = {
        "root": ROOT,
        "topic": "t",
        "dlq_topic": "t.dlq",
        "data_path": "/data/a.parquet",
        "host_data_dir": "data",
        "schema_path": "/schemas/taxi_trip.json",
        "bootstrap_servers": "localhost:9092",
        **values,
    }
    settings = Settings.model_validate(given)
    return plan_from(settings, of, file, mode="burst", rate=1, max_events=0)


def test_the_plan_names_the_variables_that_point_to_the_file() -> None:
    made = plan()
    assert made.file == ROOT / "data" / "a.parquet"
    assert made.said == "HOST_DATA_DIR=data and DATA_PATH=/data/a.parquet"
    assert made.topics == ("t",)
    assert made.metrics_file == ROOT / ".headgate" / "metrics" / "generator.json"


def test_a_file_given_by_hand_comes_first() -> None:
    made = plan(Path("b.parquet"))
    assert (made.file, made.said) == (Path("b.parquet"), "--file")


def test_validation_adds_the_schema_and_the_dead_letter_topic() -> None:
    made = plan(validate_schema=True)
    assert made.schema_file == ROOT / "schemas" / "taxi_trip.json"
    assert made.topics == ("t", "t.dlq")


def test_another_dataset_than_the_active_one_has_its_own_file_topic_and_schema() -> None:
    made = plan(of="orders", dataset="taxi", validate_schema=True)
    assert made.file == ROOT / "data" / "orders.parquet"
    assert made.said == "HOST_DATA_DIR=data and --dataset orders"
    assert made.topics == ("orders.raw_orders", "orders.raw_orders.dlq")
    assert made.schema_file == ROOT / "schemas" / "orders.json"
    assert (ROOT / "schemas" / "orders.json").is_file()


def test_without_a_running_broker_it_says_how_to_start_one() -> None:
    with pytest.raises(UnavailableError, match="no broker is running") as caught:
        plan(bootstrap_servers=None)
    assert "headgate local up" in caught.value.fix


def test_the_report_of_a_sample_counts_every_row_once() -> None:
    planted = Planted(rows=10, clean=6, duplicates=1, bad=1, filtered=2, kinds={})
    words = sample_words(SampleFile("f", "f.planted.json", 42, 1_000, 0.1, planted))
    numbers = [int(line.split()[1]) for line in words.splitlines()[1:5]]
    assert sum(numbers) == 10
