"""P5 and P14: routing through many filters, and a dry run of one in Python."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench.goals import Figure, Measurement
from bench.session import open_session
from bench.timing import best_cpu, measure_in_turns
from headgate.filters.compile.matcher import Event, event_of, matcher
from headgate.filters.compile.routing import router_script
from headgate.filters.compile.spark_sql import CompiledFilter, compile_filter
from headgate.filters.loader import parse_filter

DEALERS = 1_000
DRY_RUN_ROWS, DRY_RUN_SECONDS = 100_000, 5.0


def measure_routing(
    rows: int = 200_000, repeat: int = 3, few: int = 10, many: int = DEALERS
) -> Measurement:
    """P5: events as Debezium writes them, from Parquet through equality filters to a no-op sink.

    Each event matches one of 1,000 filters. Binding the filters is not part of the figure: the
    router does that once for all batches.
    """
    with open_session() as bench:
        file = write_records(bench.folder, rows)
        bench.spark.read.parquet(str(file)).createOrReplaceTempView("router_source")
        forms = {str(count): prepare_routing(bench.spark, count) for count in (few, many)}
        cpu = best_cpu(measure_in_turns(forms, repeat))
    what = f"{rows:,} events through {many:,} equality filters, CPU of {few}"
    figure = Figure.of_ratio(what, cpu[str(many)], cpu[str(few)], 1.5)
    return Measurement(figures=(figure,))


def prepare_routing(spark: SparkSession, count: int) -> Callable[[], None]:
    """Bind so many filters; the function routes all records through them."""
    script = router_script([compile_equality_filter(number) for number in range(count)])
    keys = spark.createDataFrame([tuple(key) for key in script.keys], script.schema)
    keys.createOrReplaceTempView("router_keys")
    for view in script.views:
        spark.sql(view)
    # The frame keeps its plan when the views are replaced by those of other filters.
    routed = spark.table("router_routed")
    return lambda: routed.write.format("noop").mode("overwrite").save()


def measure_dry_run(rows: int = DRY_RUN_ROWS, repeat: int = 3) -> Measurement:
    """P14: recorded events judged by the reference evaluator, as a dry run does it.

    Reading them from Kafka is not part of the figure.
    """
    values = list(make_records(rows))
    seconds, matched = min(dry_run(values, compile_equality_filter(7)) for _ in range(repeat))
    figure = Figure(
        what=f"a filter over {rows:,} recorded events in Python",
        value=round(seconds, 2),
        unit="s",
        target=DRY_RUN_SECONDS * rows / DRY_RUN_ROWS,
    )
    return Measurement(figures=(figure,), details={"matched": matched})


def dry_run(values: list[bytes], compiled: CompiledFilter) -> tuple[float, int]:
    """Seconds taken and events matched."""
    begun = time.perf_counter()
    takes = matcher(compiled)
    matched = 0
    for value in values:
        event = event_of(value)
        matched += isinstance(event, Event) and takes(event)
    return time.perf_counter() - begun, matched


def dealer_id(number: int) -> str:
    return f"DEALER-{number:04}"


def compile_equality_filter(number: int) -> CompiledFilter:
    return compile_filter(
        parse_filter(
            {
                "id": f"service-by-dealer-{number:04}",
                "name": f"Service Events for Dealer {number:04}",
                "consumerId": f"dealer-{number:04}-service-consumer",
                "outputTopic": f"filtered-service-events-dealer-{number:04}",
                "conditions": [
                    {"field": "event_type", "operator": "equals", "value": "CarServiceDone"},
                    {
                        "field": "header_data.dealerId",
                        "operator": "equals",
                        "value": dealer_id(number),
                    },
                ],
                "enabled": True,
            }
        )
    )


def make_records(rows: int) -> Iterator[bytes]:
    """Events of 1,000 dealers, as Debezium writes them."""
    random = Random(5)
    for number in range(rows):
        header = {
            "uuid": f"event-{number}",
            "carId": f"CAR-2025-{number % 977:03}",
            "dealerId": dealer_id(random.randrange(DEALERS)),
            "amountPaid": round(random.uniform(50, 2_000), 2),
            "dealerName": "Tesla Service Center - San Francisco",
            "serviceDate": "2025-01-15T10:00:00Z",
            "mileageAtService": random.randrange(200_000),
        }
        event = {
            "id": f"event-{number}",
            "event_name": "Car Service Done",
            "event_type": "CarServiceDone",
            "created_date": "2025-01-15T10:00:00.123456Z",
            "saved_date": "2025-01-15T10:00:01.000000Z",
            "header_data": orjson.dumps(header).decode(),
            "__op": "c",
            "__table": "event_headers",
            "__ts_ms": 1_736_935_200_000 + number,
        }
        yield orjson.dumps(event)


def write_records(folder: Path, rows: int) -> Path:
    file = folder / "records.parquet"
    table = pa.table(
        {
            "value": pa.array(make_records(rows), pa.binary()),
            "partition": pa.array([0] * rows, pa.int32()),
            "offset": pa.array(range(rows), pa.int64()),
            "timestamp": pa.nulls(rows, pa.timestamp("us", "UTC")),
        }
    )
    pq.write_table(table, file, row_group_size=max(rows // 8, 1))
    return file
