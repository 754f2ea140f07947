"""The training run of the driver's class archive: a session runs the kinds of statements that jobs run, then ends.

The JVM writes the classes it has loaded into the archive when it exits; `core.runtime.class_archive` starts this
module as a process of its own.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.config.settings import Settings
from headgate.core.engine.session import start_session, stop_session
from headgate.core.engine.spark_options import quote_java_options
from headgate.core.lake.spark import sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STATEMENTS = (
    "CREATE NAMESPACE lake.training",
    """CREATE TABLE lake.training.rows (id BIGINT, text STRING, day DATE, amount DECIMAL(10, 2))
       USING iceberg PARTITIONED BY (day) TBLPROPERTIES ('write.wap.enabled' = 'true')""",
    """INSERT OVERWRITE lake.training.rows
       SELECT id, text, day, amount FROM (
         SELECT *, row_number() OVER (PARTITION BY id ORDER BY text DESC) AS newest FROM source
       ) WHERE newest = 1""",
    """MERGE INTO lake.training.rows AS held
       USING (SELECT 5L AS id, 'x' AS text, DATE '2024-01-01' AS day, 1.00BD AS amount) AS fresh
       ON held.id <=> fresh.id AND held.day <=> fresh.day
       WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *""",
)
SOURCE = """
SELECT
  id, to_json(struct(id)) AS text, DATE '2024-01-01' AS day,
  try_cast(md5(CAST(id AS STRING)) AS DECIMAL(10, 2)) AS amount, record.*
FROM (
  SELECT
    id,
    strict_json(
      CAST(IF(id % 9 = 0, 'x', to_json(struct(id AS number, current_timestamp() AS at))) AS BINARY),
      'number BIGINT, at TIMESTAMP'
    ) AS record
  FROM range(500)
)"""


def train(home: Path, archive: Path) -> None:
    """Load the classes that jobs need; the JVM writes them to `archive` when it ends."""
    options = quote_java_options(f"-XX:ArchiveClassesAtExit={archive}", "-Xlog:cds=off")
    settings = Settings(root=home, spark_master="local[2]", spark_java_options=options)
    session = start_session(settings)
    sql(session, SOURCE).createOrReplaceTempView("source")
    for statement in STATEMENTS:
        sql(session, statement)
    sql(session, "SELECT count(*) FROM lake.training.rows").collect()
    _stream(session, home)
    stop_session(session)


def _stream(session: SparkSession, home: Path) -> None:
    def count(frame: DataFrame, batch_id: int) -> None:
        frame.count()

    source = session.readStream.format("rate-micro-batch").option("rowsPerBatch", "10").load()
    query = (
        source.writeStream.foreachBatch(count)
        .option("checkpointLocation", str(home / "checkpoint"))
        .start()
    )
    query.awaitTermination(3)
    query.stop()


if __name__ == "__main__":
    train(Path(sys.argv[1]), Path(sys.argv[2]))
