"""P7: a reconciliation as a stream, from Kafka to committed verdicts.

Both topics are filled first, a message of each side for every key. The job then reads them in
batches, as the engine runs it. Measuring begins when the first batches, which warm up the JVM, are
in the ledger. A pair is done when its verdict, its state, its counts and its ledger row are committed.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import orjson
from confluent_kafka import Producer

from bench.goals import Figure, Measurement
from bench.session import BenchSession, open_session
from bench.timing import cpu_seconds, report_progress
from headgate.core.engine.job_kind import JOBS
from headgate.core.kafka.topics import Topics, TopicSpec
from headgate.core.ledger.model import LedgerRow
from headgate.core.ledger.ops_store import OpsStore

TARGET = 20_000
JOB = "reconcile-business"
PARTITIONS = {"topic1": 3, "topic2": 6}
PROGRESS_EVERY = 100_000


def measure_stream(
    bootstrap: str, pairs: int = 1_600_000, batch: int = 200_000, warm: int = 2
) -> Measurement:
    """`batch` is pairs in a batch, `warm` the batches before the figure."""
    with open_session(bootstrap) as bench:
        fill_topics(bootstrap, pairs)
        report_progress(f"sent {pairs:,} pairs")
        rows, cpu = run_job(bench, batch)
    # The last batch is only what the others have left.
    if len(rows) > warm + 1 and rows[-1].read < rows[-2].read // 2:
        rows = rows[:-1]
    measured = rows[warm:]
    seconds = [
        (row.committed_at - before.committed_at).total_seconds()
        for before, row in zip(rows[warm - 1 :], measured, strict=False)
    ]
    done = sum(row.read for row in measured) // 2
    spent = cpu[len(rows) - 1] - cpu[warm - 1]
    figure = Figure(
        what=f"pairs a second, {done:,} pairs in batches of {batch:,}",
        value=round(done / sum(seconds)),
        unit="pairs/s",
        target=TARGET,
        better="more",
    )
    details = {
        "pairs_per_second_by_batch": [
            round(row.read / 2 / each) for row, each in zip(measured, seconds, strict=True)
        ],
        "cpu_seconds": round(spent, 1),
        "cpu_microseconds_per_pair": round(spent * 1e6 / done, 1),
    }
    return Measurement(figures=(figure,), details=details)


def fill_topics(bootstrap: str, pairs: int) -> None:
    """Keys in order on both topics, a thousandth of them with a different hash."""
    topics = [TopicSpec(name, partitions, 1) for name, partitions in PARTITIONS.items()]
    beside = [*(f"{name}.dlq" for name in PARTITIONS), "dq-metrics", "dq_reconciliation_audit"]
    Topics(bootstrap).create([*topics, *(TopicSpec(name, 1, 1) for name in beside)])
    options = {"bootstrap.servers": bootstrap, "linger.ms": 50, "batch.size": 1_000_000}
    producer = Producer({**options, "queue.buffering.max.messages": 1_000_000, "log_level": 0})
    begin = datetime.now(UTC) - timedelta(minutes=2)
    for number in range(pairs):
        if number % PROGRESS_EVERY == 0:
            report_progress(f"sent {number:,} of {pairs:,} pairs")
        at = (begin + timedelta(microseconds=50 * number)).isoformat().replace("+00:00", "Z")
        for topic, key, value in make_messages(number, at):
            while True:
                try:
                    producer.produce(topic, value, key)
                    break
                except BufferError:
                    producer.poll(0.5)
    producer.flush(120)


def make_messages(number: int, at: str) -> Iterator[tuple[str, bytes, bytes]]:
    """Topic, key and value of the messages of one pair."""
    key = f"customer-{number:09d}"
    digest = hashlib.sha256(key.encode()).hexdigest()
    other = digest if number % 1000 else hashlib.sha256(b"other").hexdigest()
    onprem = {"event_id": f"e-{number}", "action": "UPSERT", "hash_onprem": digest}
    onprem |= {"hash_version": 2, "partitionColumns": [{"type": "PK", "value": key}]}
    cloud = {"pk": key, "hash_cloud": other, "hash_version": 2, "cloud_ts": at}
    yield "topic1", key.encode(), orjson.dumps({**onprem, "event_ts": at})
    yield "topic2", key.encode(), orjson.dumps(cloud)


def run_job(bench: BenchSession, batch: int) -> tuple[Sequence[LedgerRow], list[float]]:
    """Run the shipped job to the end of both topics; its batches, and the CPU up to each one's end."""
    home = bench.new_folder()
    url = f"sqlite:///{home}/ops.db"
    update = {"home": home, "max_offsets_per_batch": 2 * batch, "ops_store_url": url}
    settings = bench.settings.model_copy(update=update)
    with OpsStore.open(url) as store:
        context = bench.claim_job(settings, store, JOB)
        with meter_batches(store, JOB) as cpu:
            JOBS["reconcile"](context)
        return store.ledger(JOB), cpu


@contextmanager
def meter_batches(store: OpsStore, job: str) -> Iterator[list[float]]:
    """CPU seconds so far whenever a batch is found in the ledger."""
    cpu: list[float] = []
    done = threading.Event()

    def add_new_batches() -> None:
        if new := len(store.ledger(job)) - len(cpu):
            cpu.extend([cpu_seconds()] * new)
            report_progress(f"batches committed: {len(cpu)}")

    def watch() -> None:
        while not done.wait(0.2):
            add_new_batches()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield cpu
    finally:
        done.set()
        thread.join()
        add_new_batches()
