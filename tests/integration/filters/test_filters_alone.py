"""The files of the shipped filters run by hand in plain `spark-sql`, and give what the twin gives."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from tests.support.oracle import read_topic
from tests.support.pipeline import ProducerRecord, create_topic, produce
from tests.support.random_filters import ODD_RECORDS, random_record
from tests.support.services import RunningBroker
from tests.support.spark_sql import run_spark_sql

from headgate.config.settings import Settings
from headgate.core.lake.duckdb_reader import Lake
from headgate.filters.cli.local import compiled_text
from headgate.filters.compile.matcher import Event, event_of, matcher
from headgate.filters.compile.spark_sql import SENT, compile_filter
from headgate.filters.loader import filter_files, load_filter
from headgate.pipeline.build import plan_build, write_build

# A second JVM: half a minute on a quiet machine.
pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
TOPIC = "raw-events-alone"


@dataclass(frozen=True)
class Alone:
    settings: Settings
    records: tuple[bytes | None, ...]


def service_event(rng: Random, number: int) -> bytes:
    header = {"dealerId": f"DEALER-00{rng.randint(1, 4)}", "amountPaid": 450.0}
    event = {
        "id": f"event-{number}",
        "event_type": rng.choice(("CarServiceDone", "LoanCreated")),
        "event_name": "naïve \x1f 😀",
        "header_data": json.dumps(header),
        "__op": rng.choice("ccur"),
        "__ts_ms": number,
    }
    return json.dumps(event, ensure_ascii=False).encode()


@pytest.fixture(scope="module")
def alone(broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Alone:
    folder = tmp_path_factory.mktemp("filters_alone")
    for name in ("datasets", "spark", "rules", "contracts"):
        shutil.copytree(ROOT / name, folder / name)
    settings = Settings.model_validate(
        {
            "root": folder,
            "home": folder / "home",
            "dataset": "taxi",
            "topic": "taxi-filters-alone",
            "dlq_topic": "taxi-filters-alone-dlq",
            "bootstrap_servers": broker.bootstrap,
            "ops_store_url": f"sqlite:///{folder}/ops.db",
            "spark_master": "local[2]",
            "spark_driver_memory": "1g",
        }
    )
    settings.home.mkdir()
    rng = Random(8)
    values = [*ODD_RECORDS, *(random_record(rng) for _ in range(100))]
    values += [service_event(rng, number) for number in range(300)]
    create_topic(broker.bootstrap, TOPIC, 2, 1_048_588)
    produce(broker.bootstrap, TOPIC, [ProducerRecord(value) for value in values])
    write_build(plan_build(settings, "taxi"))
    run_spark_sql(settings, "\n".join(sourced(settings, folder)), folder)
    return Alone(settings, tuple(record.value for record in read_topic(broker.bootstrap, TOPIC)))


def sourced(settings: Settings, folder: Path) -> list[str]:
    """Every shipped filter, reading this test's topic, and a statement that runs it."""
    found: list[str] = []
    for path in filter_files(ROOT):
        document = {**json.loads(path.read_text()), "source": TOPIC}
        file = folder / path.name
        file.write_text(json.dumps(document))
        script = file.with_suffix(".sql")
        script.write_text(compiled_text(settings, file).sql, encoding="utf-8")
        found.append(f"SOURCE {script};")
    return found


@pytest.mark.parametrize("path", filter_files(ROOT), ids=lambda path: path.stem)
def test_the_file_alone_selects_what_the_twin_selects(alone: Alone, path: Path) -> None:
    compiled = compile_filter(load_filter(path))
    read = [event_of(value) for value in alone.records]
    wanted = Counter(
        (event.id.encode(), *(event.columns[name] for name in SENT))
        for event in read
        if isinstance(event, Event) and matcher(compiled)(event)
    )
    names = ", ".join(f'"{name}"' for name in ("key", *SENT))
    with Lake.open(alone.settings) as lake:
        scan = lake.scan_sql(f"filters.{compiled.topic}")
        found = Counter(lake.query(f"SELECT {names} FROM {scan}"))
    assert found == wanted
    assert wanted.total() > 10
