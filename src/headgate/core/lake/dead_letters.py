"""Send the dead letters of a batch from their Iceberg table to a Kafka topic.

Value = the original bytes, facts in `headgate.*` headers. The table is the authority: a record too
large for a message travels as a reference to its table row. Used by every job that refuses records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.conditions.literals import spark_literal
from headgate.core.lake.spark import sql
from headgate.core.ledger.model import Intent
from headgate.core.ledger.ranges import OffsetRange, TopicRange
from headgate.core.sql.fragments import DEAD_LETTERS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Below the broker's usual limit of 1 MiB for a message, with room for our own headers.
LARGEST = 900_000
# What of an oversized record still travels with its reference.
LARGEST_KEY = 10_000


def send_dead_letters(
    session: SparkSession, intent: Intent, bootstrap: str, topic: str, source: str | None = None
) -> None:
    """Send this batch's dead letters; one too large to send is a reference to its table row.

    `source` is the topic they come from, where the batch has more than one.
    """
    sql(session, _letters(intent, source)).write.format("kafka").options(
        **{"kafka.bootstrap.servers": bootstrap, "topic": topic}
    ).save()


def _letters(intent: Intent, source: str | None = None) -> str:
    facts = {
        "headgate.topic": "kafka_topic",
        "headgate.partition": "CAST(kafka_partition AS STRING)",
        "headgate.offset": "CAST(kafka_offset AS STRING)",
        "headgate.timestamp": "CAST(kafka_timestamp AS STRING)",
        "headgate.job": "job",
        "headgate.revision": "revision",
        "headgate.reason_code": "reason_code",
        "headgate.reason": "reason",
        "headgate.reference": f"if({_too_large()}, {spark_literal(DEAD_LETTERS)}, NULL)",
    }
    headers = ", ".join(
        f"struct({spark_literal(name)} AS key, CAST({value} AS BINARY) AS value)"
        for name, value in facts.items()
    )
    return f"""
SELECT
  if({_too_large()} AND octet_length(kafka_key) > {LARGEST_KEY}, NULL, kafka_key) AS key,
  if({_too_large()}, CAST(NULL AS BINARY), kafka_value) AS value,
  concat(
    if({_too_large()}, array(), coalesce(kafka_headers, array())),
    filter(array({headers}), header -> header.value IS NOT NULL)
  ) AS headers
FROM {DEAD_LETTERS}
WHERE job = {spark_literal(intent.job)}
  AND refused_at = {spark_literal(intent.batch_time)}
  AND ({_inside(intent, source)})"""


def _too_large() -> str:
    """Key, value and headers together; any of the three can be the large one."""
    headers = "aggregate(coalesce(kafka_headers, array()), 0, (sum, header) -> sum + 10"
    headers += " + octet_length(header.key) + coalesce(octet_length(header.value), 0))"
    sizes = f"coalesce(octet_length(kafka_key), 0) + octet_length(kafka_value) + {headers}"
    return f"{sizes} > {LARGEST}"


def _inside(intent: Intent, source: str | None) -> str:
    own = intent.range.topic if isinstance(intent.range, TopicRange) else intent.range.source
    topic = spark_literal(source or own)
    if not isinstance(intent.range, OffsetRange):
        return f"kafka_topic = {topic}"
    parts = (
        f"(kafka_partition = {int(key)} AND kafka_offset >= {intent.range.start.get(key, 0)}"
        f" AND kafka_offset < {end})"
        for key, end in intent.range.end.items()
    )
    return f"kafka_topic = {topic} AND ({' OR '.join(parts)})"
