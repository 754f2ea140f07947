"""Sample records of the taxi dataset, written to Parquet and sent to a topic."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from headgate.core.kafka.topics import Topics, TopicSpec
from headgate.declarations.errors import Declared
from headgate.pipeline.generator.declaration import load_sample
from headgate.pipeline.generator.parquet_to_kafka import Generated, Plan, generate
from headgate.pipeline.generator.sample import write_sample
from headgate.pipeline.loader import load_dataset
from headgate.pipeline.spec import Dataset

ROOT = Path(__file__).resolve().parents[1]
DATASET = "taxi"


class NoProgress:
    """The generator reports its progress to nobody."""

    def begin(self, total: int) -> None: ...

    def advance(self, rows: int) -> None: ...


def load_taxi(topic: str) -> Declared[Dataset]:
    """The shipped dataset, reading this topic."""
    variables = {"TOPIC": topic, "DLQ_TOPIC": f"{topic}.dlq"}
    return load_dataset(ROOT / f"datasets/{DATASET}/dataset.yml", variables)


def write_taxi_sample(file: Path, rows: int, bad_share: float | None = None) -> int:
    """Write a sample, of which `bad_share` cannot be parsed (0.15 % as shipped); the bad rows."""
    sample = load_sample(ROOT / f"datasets/{DATASET}/sample.yml").value
    if bad_share is not None:
        factor = bad_share / sum(planting.share for planting in sample.bad)
        bad = tuple(replace(each, share=each.share * factor) for each in sample.bad)
        sample = replace(sample, bad=bad if bad_share else ())
    return write_sample(sample, file, rows).planted.bad


def create_topics(bootstrap: str, topic: str) -> None:
    """Create a topic and its dead letter topic."""
    Topics(bootstrap).create([TopicSpec(topic, 3, 1), TopicSpec(f"{topic}.dlq", 1, 1)])


def send_sample(file: Path, bootstrap: str, topic: str, schema_file: Path | None = None) -> int:
    """Send the rows of a sample to a topic, validated if there is a schema; the number of rows."""
    plan = Plan(
        file=file,
        said="the benchmark",
        dataset=load_taxi(topic),
        bootstrap=bootstrap,
        broker="bench",
        mode="burst",
        rate=1,
        max_events=0,
        schema_file=schema_file,
        metrics_file=file.with_name("metrics.json"),
    )
    generated: Generated = generate(plan, NoProgress())
    return generated.events + generated.invalid
