"""P8: bronze with ledger and dead-letter split, against the plain Spark query without them.

    python bench/bronze.py BOOTSTRAP [--rows N] [--repeat N]

Both read the same topic in one session, in turn: ours as the engine runs it, and a streaming query
`from_json` → append to an equal table. The figure is the ratio of CPU seconds (driver JVM and
Python, user and system), the best of the repeats against the best. It is taken twice: over records
that are all sound, and over the sample as it is, in which some cannot be parsed.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

import orjson
from rig import Cost, Rig, measured, rig

from headgate.compile.bronze import json_type
from headgate.engine.stream import MAX_OFFSETS_PER_BATCH

GOAL = 1.15
PLAIN = "lake.plain.rows"


def ours(bench: Rig, topic: str) -> Cost:
    bench.drop()
    with bench.home(topic) as home:
        return measured(lambda: home.run("bronze"))


def plain(bench: Rig, topic: str) -> Cost:
    """What a person writes who needs neither ledger nor dead letters."""
    bench.drop()
    bench.runs += 1
    checkpoint = bench.folder / f"run-{bench.runs}"
    columns = ", ".join(f"`{c.name}` {c.bronze_type.spark}" for c in bench.dataset.columns)
    origin = (
        "kafka_topic STRING, kafka_partition INT, kafka_offset BIGINT, kafka_timestamp TIMESTAMP"
    )
    bench.session.sql(
        f"CREATE TABLE {PLAIN} ({columns}, ingestion_ts TIMESTAMP, {origin}) USING iceberg"
        " TBLPROPERTIES ('format-version' = '2', 'write.parquet.compression-codec' = 'snappy')"
    )
    return measured(lambda: query(bench, topic, checkpoint))


def query(bench: Rig, topic: str, checkpoint: Path) -> None:
    dataset = bench.dataset
    schema = ", ".join(f"`{c.name}` {json_type(c).spark}" for c in dataset.columns)
    pattern = dataset.ts_format.replace("'", "\\'")
    rows = (
        bench.session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bench.bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", MAX_OFFSETS_PER_BATCH)
        .load()
        .selectExpr(
            f"from_json(CAST(value AS STRING), '{schema}',"
            f" map('timestampNTZFormat', '{pattern}')) AS row",
            "current_timestamp() AS ingestion_ts",
            "topic AS kafka_topic",
            "partition AS kafka_partition",
            "offset AS kafka_offset",
            "timestamp AS kafka_timestamp",
        )
        .selectExpr("row.*", "* EXCEPT (row)")
    )
    writer = rows.writeStream.format("iceberg").trigger(availableNow=True)
    writer.option("checkpointLocation", str(checkpoint)).toTable(PLAIN).awaitTermination()


def compared(bench: Rig, topic: str, repeat: int) -> dict[str, object]:
    """Both ways in turn, after one pass of each that warms the JVM up."""
    ours(bench, topic), plain(bench, topic)
    pairs = [(ours(bench, topic), plain(bench, topic)) for _ in range(repeat)]
    best = [min(cost.cpu_seconds for cost in costs) for costs in zip(*pairs, strict=True)]
    return {
        "ratio": round(best[0] / best[1], 3),
        "ours_cpu_seconds": best[0],
        "plain_cpu_seconds": best[1],
        "runs": [{"ours": asdict(a), "plain": asdict(b)} for a, b in pairs],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("bootstrap")
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--repeat", type=int, default=3)
    chosen = parser.parse_args()
    found: dict[str, dict[str, object]] = {}
    with rig(chosen.bootstrap) as bench:
        for number, (name, bad) in enumerate((("all sound", False), ("0.15 % bad", True))):
            topic = f"bench-{number}"
            bench.fill(topic, chosen.rows, bad=bad)
            found[name] = compared(bench, topic, chosen.repeat)
    lines = [
        {"what": f"records {name}", "figure": cost["ratio"], "unit": "× plain", "limit": GOAL}
        for name, cost in found.items()
    ]
    report = {"goal": "P8", "lines": lines, "rows": chosen.rows, **found}
    sys.stdout.write(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode() + "\n")


if __name__ == "__main__":
    main()
