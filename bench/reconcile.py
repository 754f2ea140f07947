"""P7: a reconciliation as a stream, from Kafka to committed verdicts: python bench/reconcile.py BOOTSTRAP

Both topics are filled first, a message of each side for every key. The job then reads them as the
engine runs it, in batches; what is measured begins when the first ones, which warm the JVM up, are
settled. A pair is done when its verdict, its state, its counts and its ledger row are committed.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import orjson
from confluent_kafka import Producer
from rig import ROOT, Rig, cpu_seconds, rig

from headgate.engine.context import RunContext
from headgate.engine.topics import Topics, TopicSpec
from headgate.jobs.registry import JOBS
from headgate.jobs.requests import ask_for
from headgate.settings import Settings
from headgate.store.model import LedgerRow
from headgate.store.ops import OpsStore

GOAL = 20_000
TABLE = "business"
PARTITIONS = {"topic1": 3, "topic2": 6}


def fill(bootstrap: str, pairs: int) -> None:
    """Keys in order on both topics, a thousandth of them with another hash."""
    specs = [TopicSpec(name, partitions, 1) for name, partitions in PARTITIONS.items()]
    beside = [*(f"{name}.dlq" for name in PARTITIONS), "dq-metrics", "dq_reconciliation_audit"]
    Topics(bootstrap).create([*specs, *(TopicSpec(name, 1, 1) for name in beside)])
    options = {"bootstrap.servers": bootstrap, "linger.ms": 50, "batch.size": 1_000_000}
    producer = Producer({**options, "queue.buffering.max.messages": 1_000_000, "log_level": 0})
    begin = datetime.now(UTC) - timedelta(minutes=2)
    for number in range(pairs):
        at = (begin + timedelta(microseconds=50 * number)).isoformat().replace("+00:00", "Z")
        for topic, key, value in messages(number, at):
            while True:
                try:
                    producer.produce(topic, value, key)
                    break
                except BufferError:
                    producer.poll(0.5)
    producer.flush(120)


def messages(number: int, at: str) -> Iterator[tuple[str, bytes, bytes]]:
    key = f"customer-{number:09d}"
    digest = hashlib.sha256(key.encode()).hexdigest()
    other = digest if number % 1000 else hashlib.sha256(b"other").hexdigest()
    onprem = {"event_id": f"e-{number}", "action": "UPSERT", "hash_onprem": digest}
    onprem |= {"hash_version": 2, "partitionColumns": [{"type": "PK", "value": key}]}
    cloud = {"pk": key, "hash_cloud": other, "hash_version": 2, "cloud_ts": at}
    yield "topic1", key.encode(), orjson.dumps({**onprem, "event_ts": at})
    yield "topic2", key.encode(), orjson.dumps(cloud)


@contextmanager
def home(bench: Rig, batch: int) -> Iterator[tuple[Settings, OpsStore]]:
    """The shipped declaration, with batches of so many pairs."""
    changed = {
        "home": bench.folder / "reconcile",
        "root": ROOT,
        "max_offsets_per_batch": 2 * batch,
        "ops_store_url": f"sqlite:///{bench.folder}/reconcile/ops.db",
    }
    settings = bench.settings.model_copy(update=changed)
    with OpsStore.open(settings.ops_store_url) as store:
        yield settings, store


def run(bench: Rig, batch: int) -> tuple[tuple[LedgerRow, ...], list[float]]:
    """The job to the end of both topics; its batches, and all the CPU up to the end of each."""
    with home(bench, batch) as (settings, store):
        asked = ask_for(settings, store, f"reconcile-{TABLE}", "batch", {})
        claimed = store.claim(asked.job, asked.number, "bench")
        context = RunContext(claimed, settings, bench.session, store, lambda: None)
        with metered(store, asked.job) as spent:
            JOBS["reconcile"](context)
        return store.ledger(asked.job), spent


@contextmanager
def metered(store: OpsStore, job: str) -> Iterator[list[float]]:
    """What was spent when each batch was found settled: of a machine that others use, CPU tells more."""
    spent: list[float] = []
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.2):
            new = len(store.ledger(job)) - len(spent)
            spent.extend([cpu_seconds()] * new)

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield spent
    finally:
        done.set()
        watching.join()
        spent.extend([cpu_seconds()] * (len(store.ledger(job)) - len(spent)))


def sustained(rows: tuple[LedgerRow, ...], spent: list[float], warm: int) -> dict[str, object]:
    """Over the batches behind the first ones; the last is only what they have left."""
    rows = rows[:-1] if len(rows) > warm + 1 and rows[-1].read < rows[-2].read // 2 else rows
    measured, before = rows[warm:], rows[warm - 1]
    seconds = (measured[-1].committed_at - before.committed_at).total_seconds()
    pairs = sum(row.read for row in measured) // 2
    by_batch = [
        round(row.read / 2 / (row.committed_at - earlier.committed_at).total_seconds())
        for earlier, row in zip((before, *measured), measured, strict=False)
    ]
    cpu = spent[len(rows) - 1] - spent[warm - 1]
    return {"pairs": pairs, "seconds": round(seconds, 1), "by_batch": by_batch,
            "pairs_per_second": round(pairs / seconds), "cpu_seconds": round(cpu, 1),
            "cpu_microseconds_per_pair": round(cpu * 1e6 / pairs, 1)}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("bootstrap")
    parser.add_argument("--pairs", type=int, default=1_600_000)
    parser.add_argument("--batch", type=int, default=200_000, help="pairs in a batch")
    parser.add_argument("--warm", type=int, default=2, help="batches before the figure")
    chosen = parser.parse_args()
    with rig(chosen.bootstrap) as bench:
        began = time.perf_counter()
        fill(chosen.bootstrap, chosen.pairs)
        filled = round(time.perf_counter() - began, 1)
        rows, spent = run(bench, chosen.batch)
    found = sustained(rows, spent, chosen.warm)
    line = {"what": "pairs a second, sustained", "figure": found["pairs_per_second"]}
    report = {
        "goal": "P7",
        "lines": [{**line, "unit": "pairs/s", "limit": GOAL, "better": "more"}],
        "fill_seconds": filled,
        **found,
    }
    sys.stdout.write(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode() + "\n")


if __name__ == "__main__":
    main()
