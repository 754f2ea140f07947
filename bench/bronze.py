"""P8: bronze with its ledger and dead letters, beside a plain Spark query without them.

Both read the same topic in one session, in turns: the bronze job as the engine runs it, and a
streaming query `from_json` → append to an equal table. The figure is the median of the ratios of
CPU seconds, over records that are all sound, with 0.15 % and with 5 % that cannot be parsed.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from statistics import median

from bench.goals import Figure, Measurement
from bench.sample import load_taxi
from bench.session import BenchSession, open_session
from bench.timing import Cost, measure_cost, report_progress
from headgate.core.sql.strict_json import json_type

PLAIN = "lake.plain.rows"
# What share of the records cannot be parsed, and the ratio to reach.
SHARES = {"all sound": (0.0, 0.85), "0.15 % bad": (0.0015, 1.25), "5 % bad": (0.05, 1.3)}


def measure_bronze(bootstrap: str, rows: int = 300_000, repeat: int = 5) -> Measurement:
    figures: list[Figure] = []
    details: dict[str, object] = {}
    with open_session(bootstrap) as bench:
        for number, (name, (bad_share, target)) in enumerate(SHARES.items()):
            topic = f"bench-bronze-{number}"
            accepted = rows - bench.fill_topic(topic, rows, bad_share)
            pairs = measure_pairs(bench, topic, name, repeat, accepted)
            ratio = median(ours.cpu_seconds / plain.cpu_seconds for ours, plain in pairs)
            best = [min(cost.cpu_seconds for cost in costs) for costs in zip(*pairs, strict=True)]
            figures.append(
                Figure(
                    what=f"{rows:,} records, {name}, median of {repeat}",
                    value=round(ratio, 3),
                    unit="× plain",
                    target=target,
                    beside=f"best: {best[0]:.2f} to {best[1]:.2f} CPU s",
                )
            )
            details[name] = [{"ours": asdict(a), "plain": asdict(b)} for a, b in pairs]
    return Measurement(figures=tuple(figures), details=details)


def measure_pairs(
    bench: BenchSession, topic: str, name: str, repeat: int, accepted: int
) -> list[tuple[Cost, Cost]]:
    """Both queries in turns, after one turn that warms up the JVM."""
    pairs: list[tuple[Cost, Cost]] = []
    for turn in range(repeat + 1):
        report_progress(f"{name}: turn {turn} of {repeat}")
        pairs.append((run_bronze(bench, topic, accepted), run_plain(bench, topic)))
    return pairs[1:]


def run_bronze(bench: BenchSession, topic: str, accepted: int) -> Cost:
    """The bronze job; it must accept all records but the bad ones."""
    bench.drop_tables()
    with bench.open_jobs(topic) as jobs:
        cost = measure_cost(lambda: jobs.run_batch("bronze"))
        if (count := jobs.count_accepted("bronze")) != accepted:
            raise SystemExit(f"{count} records were accepted, {accepted} are not bad")
    return cost


def run_plain(bench: BenchSession, topic: str) -> Cost:
    """What one writes who needs neither ledger nor dead letters."""
    bench.drop_tables()
    types = ", ".join(f"`{c.name}` {c.bronze_type.spark}" for c in load_taxi(topic).value.columns)
    origin = (
        "kafka_topic STRING, kafka_partition INT, kafka_offset BIGINT, kafka_timestamp TIMESTAMP"
    )
    bench.spark.sql(
        f"CREATE TABLE {PLAIN} ({types}, ingestion_ts TIMESTAMP, {origin}) USING iceberg"
        " TBLPROPERTIES ('format-version' = '2', 'write.parquet.compression-codec' = 'snappy')"
    )
    checkpoint = bench.new_folder()
    return measure_cost(lambda: append_plain(bench, topic, checkpoint))


def append_plain(bench: BenchSession, topic: str, checkpoint: Path) -> None:
    dataset = load_taxi(topic).value
    schema = ", ".join(f"`{c.name}` {json_type(c).spark}" for c in dataset.columns)
    pattern = dataset.ts_format.replace("'", "\\'")
    rows = (
        bench.spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bench.bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", bench.settings.max_offsets_per_batch)
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
