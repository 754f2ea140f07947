"""A whole stack under its supervisor, fed without pause while its processes are killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, cast

from tests.support.dataset_events import events
from tests.support.hostile_records import REFUSALS
from tests.support.oracle import Record, expected_bronze, expected_silver, typed_value
from tests.support.pipeline import JVM, ROOT, TYPES, Pipeline, create_topic, environment

from headgate.certify.certificate import broken
from headgate.config.settings import Settings
from headgate.core.engine.lease import SECONDS
from headgate.core.kafka.topics import Topics
from headgate.core.ledger.model import RunState
from headgate.core.ledger.ops_store import OpsStore
from headgate.local import stack
from headgate.local.process import die_with_parent, wait_until
from headgate.local.state import LocalFiles, Phase, ServiceState
from headgate.pipeline.job_kinds import rows_behind

STREAMS = ("bronze", "silver")
RECOVERY_SECONDS = 60.0
# Streams that do not work by then are taken for lost.
LIMIT_SECONDS = 180.0
DRAIN_SECONDS = 180.0
# What each record on the topic must become, for the oracle.
EXPECTED, ACCEPTED, REFUSED = "expected", b"accepted", b"refused"
# Records of a few bytes; what a batch does with large ones is proved elsewhere.
BROKEN = [make for name, _, make in REFUSALS if "MB" not in name and "100,000" not in name]


class Feeder(threading.Thread):
    """Sends small bursts without pause: plain, in transactions, and in transactions it aborts.

    Each has new rows, some of the burst before again, broken records and tombstones. A burst that
    the broker did not take whole is nobody's loss: the oracle goes by what is on the topic.
    """

    def __init__(self, bootstrap: str, topic: str, seed: int) -> None:
        super().__init__(name="feeder", daemon=True)
        self._servers, self._topic, self._rng = bootstrap, topic, Random(seed)
        self._seed = seed
        self._enough = threading.Event()
        self._producers: dict[bool, Any] = {}
        self.bursts, self.aborted, self.failed = 0, 0, 0

    def run(self) -> None:
        while not self._enough.wait(0.4):
            in_transaction = self.bursts % 3 > 0
            try:
                self._send(in_transaction)
            except Exception:  # the broker is away, or was: the transaction is given up
                self.failed += 1
                self._producers.pop(in_transaction, None)
            self.bursts += 1

    def stop(self) -> None:
        self._enough.set()
        self.join(120)
        assert not self.is_alive()

    def _send(self, in_transaction: bool) -> None:
        producer = self._producer(in_transaction)
        abort = in_transaction and self._rng.random() < 0.4
        if in_transaction:
            producer.begin_transaction()
        for value, expected in self._burst():
            headers = [(EXPECTED, expected)]
            producer.produce(self._topic, value, b"%d" % self._rng.randrange(50), headers=headers)
        producer.flush(10)
        if abort:
            producer.abort_transaction(10)
            self.aborted += 1
        elif in_transaction:
            producer.commit_transaction(10)

    def _producer(self, in_transaction: bool) -> Any:
        from confluent_kafka import Producer

        if in_transaction not in self._producers:
            options: dict[str, Any] = {"bootstrap.servers": self._servers, "log_level": 0}
            if in_transaction:
                options["transactional.id"] = f"feeder-{self._topic}"
            producer = Producer(options)
            if in_transaction:
                producer.init_transactions(30)
            self._producers[in_transaction] = producer
        return self._producers[in_transaction]

    def _burst(self) -> list[tuple[bytes | None, bytes]]:
        number, seed = self.bursts, self._seed + self.bursts
        sound = events(seed, 30, number * 30)
        again = events(seed - 1, 5, (number - 1) * 30) if number else []
        records: list[tuple[bytes | None, bytes]] = [(v, ACCEPTED) for v in (*sound, *again)]
        records += [(self._rng.choice(BROKEN)(self._rng), REFUSED) for _ in range(3)]
        records += [(None, b"tombstone")] * 2
        self._rng.shuffle(records)
        return records


@dataclass(frozen=True)
class Kill:
    """One kill, and the seconds until every stream had begun and settled a new batch."""

    kind: str
    seconds: float


class Stack:
    """`headgate local up` in a home of its own, with one dataset whose two streams run."""

    def __init__(self, folder: Path) -> None:
        root = folder / "project"
        shutil.copytree(ROOT / "datasets" / "_template", root / "datasets" / "_template")
        self.settings = Settings(
            root=root,
            home=folder / "home",
            dataset="kills",
            topic="kills",
            dlq_topic="kills-dlq",
            trigger_seconds=1.0,
            **dict.fromkeys(("kafka_port", "connect_port", "spark_ui_port", "metrics_port"), 0),
            **JVM,
        )
        self.files = LocalFiles(self.settings.home)
        self.kills: list[Kill] = []
        self._second = folder / "second"

    @contextmanager
    def running(self) -> Iterator[Pipeline]:
        """Start the stack, its topics and both streams; yield a pipeline to inspect them with."""
        try:
            self.command("local", "up")
            bootstrap = self.service("broker").address
            assert bootstrap
            for name, partitions in (("kills", 2), ("kills-dlq", 1)):
                create_topic(bootstrap, name, partitions, 1_048_588)
            reached = self.settings.model_copy(update={"bootstrap_servers": bootstrap})
            with OpsStore.open(self.settings.ops_store_url) as store:
                self.pipeline = Pipeline("kills", reached, store, cast("Any", None))
                self.pipeline.declare()
                self.command("job", "start", *STREAMS)
                yield self.pipeline
        finally:
            stack.down(self.settings.home)

    def command(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "headgate.cli.main", *words],
            cwd=self.settings.root,
            env=environment(self.settings),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def service(self, name: str) -> ServiceState:
        state = self.files.read_state()
        service = state.service(name) if state else None
        assert service is not None
        return service

    def strike(self, kind: str) -> None:
        """Kill or freeze what `kind` names, and wait until every stream works again by itself.

        The recovery time is checked at the end, when the tables have been checked.
        """
        began = STRIKES[kind](self)
        seconds = self.wait_until_all_work(began)
        self.kills.append(Kill(kind, seconds))
        print(f"{len(self.kills)}: {kind}, all streams at work after {seconds:.1f} s", flush=True)
        if seconds > RECOVERY_SECONDS:
            print(self.supervised_since(began), flush=True)
        assert seconds < LIMIT_SECONDS, self.command("job", "list")
        runs = [self.pipeline.store.latest(f"{kind}-kills") for kind in STREAMS]
        assert {(run.number, run.state) for run in runs if run} == {(1, RunState.RUNNING)}

    def supervised_since(self, moment: datetime) -> str:
        """The supervisor's log since then: it shows where the time went."""
        lines = (self.settings.home / "logs" / "supervisor.log").read_text().splitlines()
        stamped = [line for line in lines if line[:4].isdigit()]
        since = [line for line in stamped if datetime.fromisoformat(line.split()[0]) >= moment]
        return "\n".join(f"    {line}" for line in since)

    def engine_processes(self) -> tuple[int, int]:
        """The engine's Python process and its JVM."""
        assert wait_until(lambda: self.service("engine").state == Phase.READY, 120)
        parent = self.service("engine").pid
        assert parent
        return parent, find_jvm(parent)

    def kill_parent(self) -> datetime:
        os.kill(self.engine_processes()[0], signal.SIGKILL)
        return datetime.now(UTC)

    def kill_jvm(self) -> datetime:
        os.kill(self.engine_processes()[1], signal.SIGKILL)
        return datetime.now(UTC)

    def kill_both(self) -> datetime:
        for pid in reversed(self.engine_processes()):
            os.kill(pid, signal.SIGKILL)
        return datetime.now(UTC)

    def kill_broker(self) -> datetime:
        pid = self.service("broker").pid
        assert pid
        os.kill(pid, signal.SIGKILL)
        return datetime.now(UTC)

    def freeze(self) -> datetime:
        """Nobody takes the lease meanwhile: the engine goes on where it stood."""
        with freeze_processes(self.engine_processes()):
            time.sleep(SECONDS + 3)
        return datetime.now(UTC)

    def freeze_beside_another(self) -> datetime:
        """A second engine takes the lease over and works; the first wakes up and must step back."""
        self._second.mkdir(exist_ok=True)
        with suppress(FileExistsError):  # streaming state belongs to the tables, not to an engine
            (self._second / "checkpoints").symlink_to(self.settings.home / "checkpoints")
        shared = ("warehouse", "catalog_uri", "ops_store_url")
        settings = Settings.model_validate(
            {
                **self.pipeline.settings.model_dump(exclude_unset=True),
                **{name: getattr(self.pipeline.settings, name) for name in shared},
                "home": self._second,
            }
        )
        log = self._second / "engine.log"
        with log.open("w") as file:
            other = subprocess.Popen(
                [sys.executable, "-m", "headgate.cli.main", "engine", "run"],
                cwd=settings.root,
                env=environment(settings),
                stdout=file,
                stderr=file,
                start_new_session=True,
                preexec_fn=die_with_parent(),
            )
        try:
            assert wait_until(lambda: "standing by" in log.read_text(), 60)
            with freeze_processes(self.engine_processes()):
                taken = self.wait_until_all_work(datetime.now(UTC))
                assert taken < RECOVERY_SECONDS + SECONDS, log.read_text()
                print(f"a second engine had taken over after {taken:.1f} s", flush=True)
            restarts = self.service("engine").restarts
            assert wait_until(lambda: self.service("engine").restarts > restarts, 60)
            os.kill(other.pid, signal.SIGTERM)
            other.wait(90)
            return datetime.now(UTC)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(other.pid, signal.SIGKILL)
            other.wait(30)

    def wait_until_all_work(self, since: datetime) -> float:
        """Seconds until each stream has settled a batch that it began after this moment."""

        def all_work() -> bool:
            newest = [self.pipeline.store.newest_batches(f"{kind}-kills", 1) for kind in STREAMS]
            return all(rows and rows[-1].batch_time > since for rows in newest)

        wait_until(all_work, LIMIT_SECONDS, pause=0.2)
        return (datetime.now(UTC) - since).total_seconds()

    def drain(self) -> None:
        """Wait until both streams have read everything, and stop them."""
        pipeline = self.pipeline

        def is_read() -> bool:
            topic = Topics(str(pipeline.settings.bootstrap_servers)).describe(pipeline.topic)
            settled = pipeline.store.settled_range("bronze-kills")
            assert topic
            ends = {str(partition): end for partition, end in topic.end.items()}
            return settled is not None and dict(settled.end) == ends

        assert wait_until(is_read, DRAIN_SECONDS, pause=0.5)
        assert wait_until(lambda: rows_behind(pipeline.store, "kills") == 0, DRAIN_SECONDS)
        for kind in STREAMS:
            self.command("job", "stop", kind)

    def check(self) -> dict[str, int]:
        """Hold the tables against the oracle; how many records became what."""
        pipeline, records = self.pipeline, self.pipeline.records()
        sound = [record for record in records if record.header(EXPECTED) == ACCEPTED.decode()]
        refused = [record for record in records if record.header(EXPECTED) == REFUSED.decode()]
        tombstones = [record for record in records if record.value is None]
        assert len(sound) + len(refused) + len(tombstones) == len(records)
        assert pipeline.bronze() == expected_bronze(sound, TYPES)
        letters = [(letter.partition, letter.offset) for letter in pipeline.dead_letters()]
        assert letters == [(record.partition, record.offset) for record in refused]
        expected = expected_silver([bronze_fields(record) for record in sound])
        assert pipeline.silver() == expected.rows
        outcomes = Counter(pipeline.outcomes())
        assert (outcomes["accepted"], outcomes["refused"]) == (len(sound), len(refused))
        assert outcomes.total() == len(records)
        assert broken(pipeline.certify()) == ()
        recheck = pipeline.recheck()
        assert recheck.returncode == 0, recheck.stdout
        silver = {"silver": expected.rows.total()}
        return {**outcomes, "records": len(records), **silver}


STRIKES: dict[str, Callable[[Stack], datetime]] = {
    "jvm": Stack.kill_jvm,
    "parent": Stack.kill_parent,
    "both": Stack.kill_both,
    "broker": Stack.kill_broker,
    "freeze": Stack.freeze,
    "freeze beside another engine": Stack.freeze_beside_another,
}


@contextmanager
def freeze_processes(pids: tuple[int, ...]) -> Iterator[None]:
    """Suspend these processes (SIGSTOP) until the block ends."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def find_jvm(parent: int) -> int:
    """The pid of the JVM that this process has started."""
    files = Path(f"/proc/{parent}/task").glob("*/children")
    children = [int(pid) for file in files for pid in file.read_text().split()]
    (jvm,) = [pid for pid in children if b"java" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return jvm


def bronze_fields(record: Record) -> dict[str, Any]:
    """A record's fields as the oracle of silver reads them."""
    assert record.value is not None
    fields = json.loads(record.value, parse_float=Decimal)
    origin = {
        "kafka_timestamp": record.timestamp_ms,
        "kafka_partition": record.partition,
        "kafka_offset": record.offset,
    }
    return {name: typed_value(fields.get(name), kind) for name, kind in TYPES.items()} | origin
