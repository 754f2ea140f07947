"""Records routed and refused by filters on Spark, and by the reference evaluator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headgate.filters.compile.matcher import Event, Refused, event_of, matcher, output_of
from headgate.filters.compile.routing import router_script
from headgate.filters.compile.spark_sql import CompiledFilter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = "value BINARY, partition INT, offset BIGINT, timestamp TIMESTAMP"


def create_router_views(
    spark: SparkSession, records: Sequence[bytes | None], filters: Sequence[CompiledFilter]
) -> None:
    """Create the router's views over these records in the session."""
    script = router_script(filters)
    rows = [(value, 0, at, None) for at, value in enumerate(records)]
    spark.createDataFrame(rows, SOURCE).cache().createOrReplaceTempView("router_source")
    keys = spark.createDataFrame([tuple(key) for key in script.keys], script.schema)
    keys.createOrReplaceTempView("router_keys")
    for view in script.views:
        spark.sql(view)


def routed_by_spark(spark: SparkSession) -> Counter[tuple[object, ...]]:
    """What the router's SQL sends: offset, filter, topic, key, value."""
    rows = spark.sql("SELECT offset, filter, topic, key, value FROM router_routed").collect()
    return Counter((r[0], r[1], r[2], bytes(r[3]), bytes(r[4])) for r in rows)


def routed_by_reference(
    records: Sequence[bytes | None], filters: Sequence[CompiledFilter]
) -> Counter[tuple[object, ...]]:
    """The same by the reference evaluator."""
    asked = [(at, made.topic, matcher(made)) for at, made in enumerate(filters)]
    found: Counter[tuple[object, ...]] = Counter()
    for offset, value in enumerate(records):
        event = event_of(value)
        if isinstance(event, Event):
            written = output_of(event)
            found.update((offset, at, topic, *written) for at, topic, ask in asked if ask(event))
    return found


def refused_by_spark(spark: SparkSession) -> dict[int, str]:
    """Reason code of each offset that has no event, tombstones included."""
    query = "SELECT offset, reason_code FROM router_read WHERE reason_code IS NOT NULL"
    return {row[0]: row[1] for row in spark.sql(query).collect()}


def refused_by_reference(records: Sequence[bytes | None]) -> dict[int, Refused]:
    """Each offset that has no event by the reference evaluator, which knows no reason codes."""
    read = [event_of(value) for value in records]
    return {at: found for at, found in enumerate(read) if isinstance(found, Refused)}
