"""Where the state of a reconciliation should live, measured: python -m bench.spikes.reconcile_state

RocksDB: one streaming aggregation in update mode, whose touched states are appended to Iceberg.
MERGE: each batch is reduced on its own and merged into a bucketed Iceberg table.
Both read the same Parquet files of messages, so that neither Kafka nor JSON is part of the figure.
The shapes differ in how one state is written down; all of them have the same meaning.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.sample import ROOT
from bench.timing import cpu_seconds
from pyspark.sql import DataFrame, SparkSession

from headgate.config.settings import load_settings
from headgate.core.engine.session import start_session, stop_session

SIDES = ("onprem", "cloud")
WIDE = """
  max(CASE WHEN side = {n} THEN struct(version, partition, offset, hash, hash_version, action, read_at, row) END) AS {s},
  max(CASE WHEN side = {n} THEN struct(version, -unix_micros(read_at) AS r, -partition AS p, -offset AS o, hash) END) AS {s}_first,
  min(CASE WHEN side = {n} THEN read_at END) AS {s}_least,
  max(CASE WHEN side = {n} THEN struct(partition, offset) END) AS {s}_end"""
# Partition and offset in one number, times as numbers: fewer fields to compare.
PACKED = """
  max(CASE WHEN side = {n} THEN struct(unix_micros(version) AS version, place, hash, hash_version, action, unix_micros(read_at) AS read_at, row) END) AS {s},
  max(CASE WHEN side = {n} THEN struct(unix_micros(version) AS version, -unix_micros(read_at) AS r, -place AS o, hash) END) AS {s}_first,
  min(CASE WHEN side = {n} THEN unix_micros(read_at) END) AS {s}_least,
  max(CASE WHEN side = {n} THEN place END) AS {s}_end"""
# A function with a buffer of objects makes Spark aggregate by hash: structs alone are sorted for.
OBJECTS = ",\n  size(collect_set(CAST(NULL AS INT))) AS nothing"
# The first arrival's hash only tells whether two hashes claim one version: 64 bits of it do.
SHORT = PACKED.replace("-place AS o, hash)", "-place AS o, xxhash64(hash) AS h)")
# Brought together by key before anything is reduced, rows are sorted twice instead of three times.
TOGETHER = "/*+ REPARTITION(2, pk, w) */ "
SHAPES = {
    "sorted": (WIDE, "", ""),
    "hashed": (WIDE, OBJECTS, ""),
    "packed": (PACKED, "", ""),
    "packed-hashed": (PACKED, OBJECTS, ""),
    "sorted-together": (WIDE, "", TOGETHER),
    "packed-together": (PACKED, "", TOGETHER),
    "short-together": (SHORT, "", TOGETHER),
    "short-hashed-together": (SHORT, OBJECTS, TOGETHER),
}


def states(shape: str, source: str) -> str:
    wide, more, hint = SHAPES[shape]
    sides = ",".join(wide.format(n=n, s=s) for n, s in enumerate(SIDES))
    return f"""
SELECT pk, w.start AS window_start,{sides},
  count(*) AS records{more}
FROM (SELECT {hint}*, window(read_at, '1 hour') AS w FROM {source})
GROUP BY pk, w"""


def columns(side: int) -> list[str]:
    return [
        f"{side} AS side",
        "concat('key-', hex(xxhash64(id))) AS pk",
        "timestamp_micros(1700000000000000 + id) AS version",
        "CAST(id % 3 AS INT) AS partition",
        "id AS offset",
        "((id % 3) << 44) + id AS place",
        "sha2(CAST(id AS STRING), 256) AS hash",
        "2 AS hash_version",
        "'UPSERT' AS action",
        "timestamp_micros(1700000000000000 + id) AS read_at",
        "CAST(NULL AS STRING) AS row",
    ]


def messages(session: SparkSession, folder: Path, batches: int, pairs: int) -> None:
    """Both sides of each key in one batch, as it mostly is; keys in no order."""
    for batch in range(batches):
        for side in range(2):
            frame = session.range(batch * pairs, (batch + 1) * pairs, 1, 1)
            frame = frame.selectExpr(*columns(side))
            frame.write.parquet(str(folder / "made" / f"{batch:04d}-{side}"))
            (file,) = (folder / "made" / f"{batch:04d}-{side}").glob("*.parquet")
            (folder / "in").mkdir(exist_ok=True)
            file.rename(folder / "in" / f"{batch:04d}-{side}.parquet")


class Meter:
    """CPU and wall time since the last batch."""

    def __init__(self, pairs: int) -> None:
        self.pairs, self.lines = pairs, list[dict[str, float]]()
        self.begin()

    def begin(self) -> None:
        self.cpu, self.wall = cpu_seconds(), time.perf_counter()

    def batch(self) -> None:
        cpu, wall = cpu_seconds(), time.perf_counter()
        line = {"cpu": round(cpu - self.cpu, 1), "wall": round(wall - self.wall, 1)}
        line["pairs/s"] = round(self.pairs / (wall - self.wall))
        self.lines.append(line)
        print(len(self.lines), json.dumps(line), flush=True, file=sys.stderr)
        self.cpu, self.wall = cpu, wall


def stream(session: SparkSession, folder: Path) -> DataFrame:
    schema = session.read.parquet(str(folder / "in")).schema
    reader = session.readStream.schema(schema).option("maxFilesPerTrigger", 2)
    return reader.parquet(str(folder / "in"))


def rocksdb(session: SparkSession, folder: Path, shape: str, meter: Meter) -> None:
    timed = stream(session, folder).withWatermark("read_at", "15 minutes")
    timed.createOrReplaceTempView("timed")
    found = session.sql(states(shape, "timed"))
    session.sql("DROP TABLE IF EXISTS lake.spike.states")
    session.createDataFrame([], found.schema).writeTo("lake.spike.states").using("iceberg").create()

    def append(frame: DataFrame, _: int) -> None:
        frame.writeTo("lake.spike.states").append()
        meter.batch()

    run(found, append, folder / f"checkpoint-{shape}")


def preloaded(session: SparkSession, shape: str, keys: int) -> None:
    """States of so many keys that no batch touches."""
    plain = re.sub(
        r"(?:max|min)\(CASE WHEN side = \d THEN (.*) END\) AS", r"\1 AS", states(shape, "loaded")
    )
    plain = plain.replace("count(*) AS records", "2L AS records").replace("GROUP BY pk, w", "")
    session.range(-keys, 0).selectExpr(*columns(0)).createOrReplaceTempView("loaded")
    session.sql(f"INSERT INTO lake.spike.merged {plain}")


def merge(
    session: SparkSession, folder: Path, shape: str, meter: Meter, how: str, preload: int
) -> None:
    session.sql("DROP TABLE IF EXISTS lake.spike.merged")
    session.read.parquet(str(folder / "in")).limit(0).createOrReplaceTempView("timed")
    empty = session.sql(states(shape, "timed")).limit(0)
    empty.createOrReplaceTempView("empty")
    session.sql(
        "CREATE TABLE lake.spike.merged USING iceberg PARTITIONED BY (bucket(16, pk))"
        f" TBLPROPERTIES ('format-version' = '2', 'write.merge.mode' = '{how}') AS SELECT * FROM empty"
    )
    if preload:
        preloaded(session, shape, preload)
    meter.begin()
    greatest = ", ".join(
        f"t.{s} = greatest(t.{s}, s.{s}), t.{s}_first = greatest(t.{s}_first, s.{s}_first),"
        f" t.{s}_least = least(t.{s}_least, s.{s}_least), t.{s}_end = greatest(t.{s}_end, s.{s}_end)"
        for s in SIDES
    )

    def into(frame: DataFrame, _: int) -> None:
        own = frame.sparkSession
        frame.createOrReplaceTempView("timed")
        own.sql(states(shape, "timed")).createOrReplaceTempView("batch")
        own.sql(
            "MERGE INTO lake.spike.merged AS t USING batch AS s ON t.pk = s.pk"
            " AND t.window_start = s.window_start WHEN MATCHED THEN UPDATE SET"
            f" {greatest}, t.records = t.records + s.records WHEN NOT MATCHED THEN INSERT *"
        )
        meter.batch()

    run(stream(session, folder), into, folder / f"checkpoint-{how}")


def run(frame: DataFrame, act: Callable[[DataFrame, int], None], checkpoint: Path) -> None:
    writer = frame.writeStream.outputMode("update").foreachBatch(act)
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    writer.start().awaitTermination()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--ways", default="sorted,hashed,packed,copy-on-write,merge-on-read")
    parser.add_argument("--preload", type=int, default=0, help="keys already in the merged table")
    parser.add_argument("--memory", default="3g")
    chosen = parser.parse_args()
    pairs = chosen.keys // chosen.batches
    with tempfile.TemporaryDirectory(prefix="headgate-spike-") as name:
        folder = Path(name)
        environ = {"HEADGATE_HOME": name, "SPARK_DRIVER_MEMORY": chosen.memory}
        session = start_session(load_settings(ROOT, environ))
        session.conf.set("spark.sql.objectHashAggregate.sortBased.fallbackThreshold", 10_000_000)
        session.sql("CREATE NAMESPACE IF NOT EXISTS lake.spike")
        messages(session, folder, chosen.batches, pairs)
        for way in chosen.ways.split(","):
            print(way, file=sys.stderr, flush=True)
            meter = Meter(pairs)
            if way in SHAPES:
                rocksdb(session, folder, way, meter)
            else:
                merge(session, folder, "short-together", meter, way, chosen.preload)
            print(json.dumps({"way": way, "keys": chosen.keys, "batches": meter.lines}), flush=True)
        stop_session(session)


if __name__ == "__main__":
    main()
