"""Dead letters of an evaluation as a whole, which sees each record again every time."""

from __future__ import annotations

from headgate.compile.fragments import DEAD_LETTERS
from headgate.expr.literals import spark_literal

# What tells two letters apart: the record, by where it stood and what it was, and the reason.
SAME = (
    "reason_code",
    "kafka_topic",
    "kafka_partition",
    "kafka_offset",
    "kafka_timestamp",
    "kafka_key",
    "kafka_value",
)


def new_letters(refuse: str, job: str) -> str:
    """The statement that refuses, without what an earlier evaluation has refused for that reason."""
    head, select, query = refuse.partition("\nSELECT")
    same = "\n  AND ".join(f"found.{name} <=> earlier.{name}" for name in SAME)
    return f"""{head}
SELECT found.*
FROM ({select.strip()}{query}) AS found
LEFT ANTI JOIN {DEAD_LETTERS} AS earlier
  ON earlier.job = {spark_literal(job)}
  AND {same}"""
