"""A bronze table that the test fills itself, for tests in which only its commits and rows matter."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from tests.support.pipeline import Pipeline
from tests.support.run_requests import REBUILD_SILVER
from tests.support.streams import stream_job

from headgate.core.lake.table import ManagedTable
from headgate.pipeline.compile.dataset import BRONZE_BATCH
from headgate.pipeline.revision import declared_revision

SCHEMA = (
    "id BIGINT, at TIMESTAMP_NTZ, seen TIMESTAMP, name STRING, amount DOUBLE,"
    " price DECIMAL(10, 2), flag BOOLEAN, n INT, day DATE, ingestion_ts TIMESTAMP,"
    " kafka_topic STRING, kafka_partition INT, kafka_offset BIGINT, kafka_timestamp TIMESTAMP"
)
MOMENT = datetime(2024, 1, 1, 12, tzinfo=UTC)
TIMES = (None, datetime(2024, 1, 1), datetime(2024, 1, 1, 10), datetime(2024, 2, 9, 8))
AMOUNTS = (None, 0.0, 1.0, 1.005, 2.675, 99_999_999.99, 99_999_999.995, 1e12, -1.0, -0.001)
IDS = (None, 1, 2, 3, 2**31 - 1, 2**31)

Row = dict[str, Any]


def random_row(rng: Random, offset: int) -> Row:
    """Few keys, so that most rows meet another; timestamps tie and run backwards."""
    return {
        **dict.fromkeys(("seen", "price", "flag", "n", "day")),
        "id": rng.choice(IDS),
        "at": rng.choice((*TIMES, datetime(2023, 12, 31, 23, 59, 59))),
        "name": f"row {offset}",
        "amount": rng.choice(AMOUNTS),
        "ingestion_ts": MOMENT,
        "kafka_topic": "played",
        "kafka_partition": rng.randrange(3),
        "kafka_offset": offset,
        "kafka_timestamp": MOMENT + timedelta(seconds=rng.randrange(4)),
    }


def valid_row(offset: int, day: int) -> Row:
    """A row of January 2024 that passes all filters, under a key of its own."""
    row = random_row(Random(offset), offset)
    return {**row, "id": offset, "at": datetime(2024, 1, day, 8), "amount": 1.0}


def create_bronze_table(pipeline: Pipeline) -> None:
    """Create the pipeline's bronze table as its job would."""
    revision = declared_revision(pipeline.settings, pipeline.name)
    for statement in revision.script(BRONZE_BATCH, pipeline.settings).named("table"):
        pipeline.session.sql(statement)


def append_rows(pipeline: Pipeline, rows: Sequence[Row]) -> None:
    """Append these rows to bronze in one commit."""
    names = [column.split()[0] for column in SCHEMA.replace("(10, 2)", "").split(", ")]
    values = [tuple(row[name] for name in names) for row in rows]
    frame = pipeline.session.createDataFrame(values, SCHEMA)
    frame.writeTo(f"lake.bronze.{pipeline.name}").append()


@contextmanager
def stream_silver(pipeline: Pipeline) -> Generator[None]:
    """Run silver as a stream meanwhile; at the end it has merged the newest snapshot of bronze."""
    with stream_job(pipeline, "silver") as stream:
        yield
        bronze = ManagedTable(pipeline.session, f"lake.bronze.{pipeline.name}").look().current()
        assert bronze is not None
        coverage = pipeline.store.coverage
        stream.wait_for(lambda: coverage(stream.run.job).get("snapshot") == bronze.id)
    assert stream.error is None


def assert_consistent(pipeline: Pipeline) -> None:
    """Assert that the certificate holds, its re-check agrees, and a full rebuild of silver gives the same rows."""
    merged = pipeline.silver()
    certificate = pipeline.certify()
    assert certificate.holds, certificate
    rechecked = pipeline.recheck()
    assert rechecked.returncode == 0, rechecked.stdout
    pipeline.process("silver", request=REBUILD_SILVER)
    assert pipeline.silver() == merged
