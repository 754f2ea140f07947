"""Records to many topics in one write: each row names its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A broker that restarts is back within it; what then still fails is tried again with the whole batch.
DELIVER_MS, ANSWER_MS = 60_000, 15_000
# The producer's own limit must not be the one that is met: the topics have theirs.
LEAST_REQUEST = 1_048_576


def send_each(rows: DataFrame, bootstrap: str, largest: int) -> None:
    """Send rows with the columns topic, key, value and headers; returns once all are confirmed."""
    rows.select("topic", "key", "value", "headers").write.format("kafka").options(
        **{
            "kafka.bootstrap.servers": bootstrap,
            "kafka.max.block.ms": str(ANSWER_MS),
            "kafka.request.timeout.ms": str(ANSWER_MS),
            "kafka.delivery.timeout.ms": str(DELIVER_MS),
            "kafka.max.request.size": str(max(LEAST_REQUEST, largest)),
            "kafka.compression.type": "lz4",
        }
    ).save()
