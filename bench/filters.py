"""P5 and P14: routing through many filters, and a dry run of one in Python.

    python bench/filters.py --goal P5 [--rows N] [--repeat N]

P5: events as Debezium writes them are read from Parquet, routed through 10 and through 1,000 equality
filters (each event matches one filter in 1,000) and written to Spark's no-op sink; the ratio of the
CPU seconds counts. P14: 100,000 recorded events are read and judged by the Python twin, as a dry run
does it. Of every form the best of the repeats counts; the forms take turns.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rig import Cost, measured, rig

from headgate.compile.filters.compile import compile_filter
from headgate.compile.filters.model import CompiledFilter
from headgate.compile.filters.routing import router_script
from headgate.compile.filters.twin import Event, event_of, matcher
from headgate.spec.filter_loader import parse_filter

GOALS = ("P5", "P14")
FEW, MANY = 10, 1_000
RATIO, SECONDS = 1.5, 5.0
DRY_RUN = 100_000


def dealer(number: int) -> str:
    return f"DEALER-{number:04}"


def equality_filter(number: int) -> CompiledFilter:
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
                        "value": dealer(number),
                    },
                ],
                "enabled": True,
            }
        )
    )


def records(rows: int) -> Iterator[bytes]:
    """Events of `MANY` dealers, as Debezium writes them."""
    rng = Random(5)
    for number in range(rows):
        header = {
            "uuid": f"event-{number}",
            "carId": f"CAR-2025-{number % 977:03}",
            "dealerId": dealer(rng.randrange(MANY)),
            "amountPaid": round(rng.uniform(50, 2_000), 2),
            "dealerName": "Tesla Service Center - San Francisco",
            "serviceDate": "2025-01-15T10:00:00Z",
            "mileageAtService": rng.randrange(200_000),
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
            "value": pa.array(records(rows), pa.binary()),
            "partition": pa.array([0] * rows, pa.int32()),
            "offset": pa.array(range(rows), pa.int64()),
            "timestamp": pa.nulls(rows, pa.timestamp("us", "UTC")),
        }
    )
    pq.write_table(table, file, row_group_size=max(rows // 8, 1))
    return file


def bind(session: SparkSession, filters: list[CompiledFilter]) -> None:
    script = router_script(filters)
    keys = session.createDataFrame([tuple(key) for key in script.keys], script.schema)
    keys.createOrReplaceTempView("router_keys")
    for view in script.views:
        session.sql(view)


def routed(session: SparkSession, filters: list[CompiledFilter]) -> Cost:
    """One batch: what the router does anew for each is measured, binding the set is not."""
    bind(session, filters)
    frame = session.table("router_routed").write.format("noop").mode("overwrite")
    return measured(frame.save)


def routing(rows: int, repeat: int) -> dict[str, Any]:
    sets = {f"{n} filters": [equality_filter(at) for at in range(n)] for n in (FEW, MANY)}
    with rig("127.0.0.1:1") as bench, tempfile.TemporaryDirectory() as folder:
        file = write_records(Path(folder), rows)
        bench.session.read.parquet(str(file)).createOrReplaceTempView("router_source")
        for filters in sets.values():
            routed(bench.session, filters)  # compiles it, and warms the JVM up
        runs = [
            {name: routed(bench.session, filters) for name, filters in sets.items()}
            for _ in range(repeat)
        ]
    best = {name: min((run[name] for run in runs), key=lambda c: c.cpu_seconds) for name in sets}
    ratio = best[f"{MANY} filters"].cpu_seconds / best[f"{FEW} filters"].cpu_seconds
    line = {
        "what": f"{MANY:,} equality filters against {FEW}, {rows:,} events",
        "figure": round(ratio, 2),
        "unit": "×",
        "limit": RATIO,
    }
    return {"lines": [line], "details": {name: vars(cost) for name, cost in best.items()}}


def dry_run(values: list[bytes], compiled: CompiledFilter) -> tuple[float, int]:
    begun, takes, matched = time.perf_counter(), matcher(compiled), 0
    for value in values:
        event = event_of(value)
        matched += isinstance(event, Event) and takes(event)
    return time.perf_counter() - begun, matched


def dry_running(rows: int, repeat: int) -> dict[str, Any]:
    values = list(records(rows))
    runs = [dry_run(values, equality_filter(7)) for _ in range(repeat)]
    seconds, matched = min(runs)
    line = {
        "what": f"a filter over {rows:,} recorded events in Python",
        "figure": round(seconds, 2),
        "unit": "s",
        "limit": SECONDS * rows / DRY_RUN,
    }
    return {"lines": [line], "details": {"matched": matched}}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--goal", choices=GOALS, required=True)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    measure = routing if given.goal == "P5" else dry_running
    rows = given.rows or (200_000 if given.goal == "P5" else DRY_RUN)
    report = {"goal": given.goal, "rows": rows, **measure(rows, given.repeat)}
    sys.stdout.write(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode() + "\n")


if __name__ == "__main__":
    main()
