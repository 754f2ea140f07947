"""Pipelines on the session's Spark: each has topics, tables, a checkpoint and an ops store of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.oracle import Record, read_topic
from tests.support.recheck import recheck_certificate

from headgate.config.schema import NAMES
from headgate.config.settings import Settings
from headgate.core.engine.batch import VARIABLE, Faults, Point
from headgate.core.engine.submit import AS_DECLARED, ask_for
from headgate.core.kafka.topics import Topics
from headgate.core.ledger.model import LedgerRow, Run, RunOptions, RunState
from headgate.core.ledger.ops_store import OpsStore
from headgate.local.process import die_with_parent, wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.certify.certificate import Certificate
    from headgate.core.engine.run import RunContext

ROOT = Path(__file__).parents[2]
# Much is compiled here that runs only a few times: the quick compiler alone takes less time.
# With it alone the JVM reserves so little for compiled code that after a minute or two of many
# different queries there is no room left, and everything is interpreted from then on.
JVM: dict[str, Any] = {
    "spark_master": "local[2]",
    "spark_java_options": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m",
}
SECOND = 1_000  # of record timestamps
MORNING = 1_704_103_200_000  # 2024-01-01 10:00 UTC
LETTER_COLUMNS = (
    "reason_code, reason, kafka_partition, kafka_offset, kafka_timestamp, kafka_key, kafka_value,"
    " kafka_headers"
)
MANIFEST = """
manifest_version: 1
name: {name}
topic: {topic}
dlq_topic: {topic}-dlq
bronze_table: bronze.{name}
silver_table: silver.{name}
event_ts_col: at
ts_format: "{ts_format}"
partition_date_col: on_day
partition_date_expr: "CAST(at AS DATE)"
key_field: id
columns:
  - {{name: id, kafka_type: BIGINT, bronze_type: BIGINT, silver_name: event_id, silver_type: INT}}
  - {{name: at, kafka_type: STRING, bronze_type: TIMESTAMP(3), silver_name: happened_at,
     silver_type: TIMESTAMP(3), is_event_ts: true}}
  - {{name: seen, kafka_type: STRING, bronze_type: TIMESTAMP_LTZ(3), silver_name: seen,
     silver_type: TIMESTAMP_LTZ(3)}}
  - {{name: name, kafka_type: STRING, bronze_type: STRING, silver_name: name, silver_type: STRING}}
  - {{name: amount, kafka_type: DOUBLE, bronze_type: DOUBLE, silver_name: amount,
     silver_type: "DECIMAL(10, 2)"}}
  - {{name: price, kafka_type: "DECIMAL(10, 2)", bronze_type: "DECIMAL(10, 2)", silver_name: price,
     silver_type: "DECIMAL(10, 2)"}}
  - {{name: flag, kafka_type: BOOLEAN, bronze_type: BOOLEAN, silver_name: flag, silver_type: BOOLEAN}}
  - {{name: n, kafka_type: INT, bronze_type: INT, silver_name: n, silver_type: INT}}
  - {{name: day, kafka_type: STRING, bronze_type: DATE, silver_name: day, silver_type: DATE}}
dedup_key: {key}
quality_filters: {filters}
surrogate_key_fields: [id, at]
"""
FILTERS = '["amount IS NULL OR amount >= 0", "at IS NULL OR year(at) = 2024"]'
TYPES = {
    "id": "BIGINT", "at": "TIMESTAMP", "seen": "TIMESTAMP_LTZ", "name": "STRING",
    "amount": "DOUBLE", "price": "DECIMAL", "flag": "BOOLEAN", "n": "INT", "day": "DATE",
}  # fmt: skip
SILVER_COLUMNS = "event_id, happened_at, amount, name, on_day, kafka_partition, kafka_offset"


@dataclass(frozen=True)
class ProducerRecord:
    """One record for a topic; without a partition Kafka picks one by the key."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes]] = ()
    partition: int | None = None
    timestamp: int = MORNING


@dataclass
class Pipeline:
    """A dataset with topics, tables, checkpoint and ops store of its own, processed in this JVM."""

    name: str
    settings: Settings
    store: OpsStore
    session: SparkSession
    _processed: list[Run] = field(default_factory=list)

    @property
    def topic(self) -> str:
        return str(self.settings.topic)

    @property
    def checkpoint(self) -> Path:
        return Path(self.settings.checkpoints) / f"bronze-{self.name}"

    def declare(
        self,
        ts_format: str = "yyyy-MM-dd''T''HH:mm:ss",
        filters: str = FILTERS,
        key: str = "[id, at]",
    ) -> None:
        """Write the manifest; again with other values is another revision."""
        folder = self.settings.root / "datasets" / self.name
        folder.mkdir(parents=True, exist_ok=True)
        text = MANIFEST.format(
            name=self.name, topic=self.topic, ts_format=ts_format, filters=filters, key=key
        )
        (folder / "dataset.yml").write_text(text)

    def produce(self, records: Iterable[ProducerRecord | bytes]) -> None:
        produce(
            str(self.settings.bootstrap_servers),
            self.topic,
            [r if isinstance(r, ProducerRecord) else ProducerRecord(r) for r in records],
        )

    def process(
        self, kind: str, faults: Faults | None = None, request: RunOptions = AS_DECLARED
    ) -> Run:
        """Run the job once, as an engine would; its failure is noted in the store and raised."""
        run = self.ask_for(kind, request=request)
        try:
            self.carry_out(run, faults)
        except Exception as error:
            code = getattr(error, "code", None)
            self.store.move(run.job, run.number, RunState.FAILED, code)
            raise
        return self.store.move(run.job, run.number, RunState.FINISHED)

    def ask_for(self, kind: str, mode: str = "batch", request: RunOptions = AS_DECLARED) -> Run:
        """Submit a run of the pipeline's job of this kind, and claim it for the test."""
        run = ask_for(self.settings, self.store, f"{kind}-{self.name}", mode, request)
        return self.store.claim(run.job, run.number, "this test")

    def carry_out(self, run: Run, faults: Faults | None = None) -> None:
        from headgate.core.engine.job_kind import JOBS

        JOBS[run.kind](self.context(run, faults))

    def context(
        self,
        run: Run,
        faults: Faults | None = None,
        still_mine: Callable[[], None] = lambda: None,
    ) -> RunContext:
        from headgate.core.engine.run import RunContext

        session = self.session.newSession()
        return RunContext(
            run, self.settings, session, self.store, still_mine, faults=faults or Faults()
        )

    def select(self, columns: str, table: str, where: str = "TRUE") -> list[tuple[Any, ...]]:
        """Rows of a table, read by DuckDB in no order."""
        from headgate.core.lake.duckdb_reader import Lake

        with Lake.open(self.settings) as lake:
            sql = f"SELECT {columns} FROM {lake.scan_sql(table)} WHERE {where}"
            return [tuple(row) for row in lake.query(sql)]

    def bronze(self) -> Counter[tuple[Any, ...]]:
        """Bronze as a multiset, without the ingestion time."""
        names = ", ".join(f'"{name}"' for name in TYPES)
        origin = "kafka_topic, kafka_partition, kafka_offset, epoch_ms(kafka_timestamp)"
        return Counter(self.select(f"{names}, {origin}", f"bronze.{self.name}"))

    def silver(self) -> Counter[tuple[Any, ...]]:
        """Silver as a multiset, in the columns of the oracle."""
        return Counter(self.select(f"{self.name}_id, {SILVER_COLUMNS}", f"silver.{self.name}"))

    def dead_letters(self) -> list[DeadLetter]:
        rows = self.select(LETTER_COLUMNS, "headgate.dead_letters", f"job = 'bronze-{self.name}'")
        return sorted((DeadLetter(*row) for row in rows), key=lambda letter: letter.origin)

    def records(self) -> list[Record]:
        """All records of the topic, read without Spark."""
        return read_topic(str(self.settings.bootstrap_servers), self.topic)

    def dead_letters_on_topic(self) -> list[Record]:
        return read_topic(str(self.settings.bootstrap_servers), str(self.settings.dlq_topic))

    def ledger(self, kind: str = "bronze") -> tuple[LedgerRow, ...]:
        return self.store.ledger(f"{kind}-{self.name}")

    def outcomes(self, kind: str = "bronze") -> dict[str, int]:
        """The ledger's outcomes, summed; they must add up to the records read."""
        rows = self.ledger(kind)
        summed: Counter[str] = Counter()
        for row in rows:
            summed.update(row.outcomes)
        assert summed.total() == sum(row.read for row in rows)
        return {name: n for name, n in summed.items() if n}

    def certify(self) -> Certificate:
        from headgate.certify.certificate import run_certification, write

        certificate = run_certification(self.settings)
        write(certificate, self.certificate_file)
        return certificate

    def command(self, *words: str, fault: str = "") -> subprocess.Popen[str]:
        """Start a command under this pipeline's settings, in a process group of its own.

        The kernel ends it with this process, so that a broken-off test run leaves none behind.
        """
        return subprocess.Popen(
            [sys.executable, "-m", "headgate.cli.main", *words],
            cwd=self.settings.root,
            env=environment(self.settings, **{VARIABLE: fault}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=die_with_parent(),
        )

    @property
    def certificate_file(self) -> Path:
        return self.settings.root / "certificate.json"

    def recheck(self) -> subprocess.CompletedProcess[str]:
        """Run the re-check script, which imports nothing of ours, over the last certificate."""
        catalog = str(self.settings.catalog_uri).removeprefix("jdbc:sqlite:")
        return recheck_certificate(self.certificate_file, "--catalog", catalog)


class Interruption(Faults):
    """Calls a function at a point of a batch instead of killing the process; `hits` counts the calls."""

    def __init__(self, point: Point, act: Callable[[], object]) -> None:
        super().__init__()
        self._at, self._act = point, act
        self.hits = 0

    def at(self, point: Point) -> None:
        if point is self._at:
            self.hits += 1
            self._act()


class InjectedFaultError(Exception):
    """Raised by `fail_at` to abort a batch."""


def fail_at(point: Point, time: int = 1) -> Interruption:
    """A fault that aborts the batch at this point, when it comes there for the first time or a later one."""

    def act() -> None:
        if fault.hits >= time:
            raise InjectedFaultError(point)

    fault = Interruption(point, act)
    return fault


@dataclass(frozen=True)
class DeadLetter:
    """A row of the dead-letter table."""

    code: str
    reason: str
    partition: int
    offset: int
    timestamp: object
    key: bytes | None
    value: bytes
    headers: Sequence[Mapping[str, Any]] | None

    @property
    def origin(self) -> tuple[int, int]:
        return self.partition, self.offset


def environment(settings: Settings, **more: str) -> dict[str, str]:
    """All given settings as environment variables of a command."""
    given = {
        NAMES[name]: str(getattr(settings, name)) for name in settings.model_fields_set - {"root"}
    }
    return {**os.environ, **given, **more}


def produce(bootstrap: str, topic: str, records: Iterable[ProducerRecord]) -> None:
    """Produce records and wait until all are acknowledged."""
    from confluent_kafka import Producer

    failures: list[object] = []
    options = {"bootstrap.servers": bootstrap, "message.max.bytes": 20_000_000, "linger.ms": 5}
    producer = Producer({**options, "acks": "all", "log_level": 0})

    def note(error: object, _: object) -> None:
        if error is not None:
            failures.append(error)

    for record in records:
        where: dict[str, Any] = {} if record.partition is None else {"partition": record.partition}
        while True:
            try:
                producer.produce(
                    topic,
                    record.value,
                    record.key,
                    headers=list(record.headers),
                    timestamp=record.timestamp,
                    on_delivery=note,
                    **where,
                )
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(120) == 0
    assert failures == []


def produce_in_transaction(
    bootstrap: str, topic: str, values: list[bytes], *, commit: bool
) -> None:
    """Produce values to partition 0 in one transaction that is committed or aborted.

    Returns once its end marker stands in the topic: the broker writes it after the commit returned.
    """
    from confluent_kafka import Producer

    end = Topics(bootstrap).found(topic).end[0] + len(values) + 1
    options = {"bootstrap.servers": bootstrap, "transactional.id": topic, "log_level": 0}
    producer = Producer(options)
    producer.init_transactions(120)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    producer.flush(120)
    (producer.commit_transaction if commit else producer.abort_transaction)(120)
    assert wait_until(lambda: Topics(bootstrap).found(topic).end[0] == end, 60)


def create_topic(bootstrap: str, name: str, partitions: int, largest: int) -> None:
    """Create a topic without retention, whose messages may have `largest` bytes."""
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    # The records bear timestamps of 2024: by age, the broker would delete them.
    config = {"max.message.bytes": str(largest), "retention.ms": "-1"}
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for future in admin.create_topics([NewTopic(name, partitions, 1, config=config)]).values():
        future.result(60)
    assert wait_until(lambda: Topics(bootstrap).describe(name) is not None, 60)
