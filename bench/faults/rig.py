"""A broker, homes and engines for a fault play; each of them may be killed and started again where it was."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Self

from headgate.config.schema import NAMES
from headgate.config.settings import Settings
from headgate.core.engine.batch import VARIABLE
from headgate.core.kafka.producer import TopicWriter
from headgate.core.kafka.topics import Topics, TopicSpec
from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import OperationError, UnavailableError
from headgate.local import kafka
from headgate.local.process import Child, Command, any_port, read_log, wait_until
from headgate.pipeline.generator.declaration import Sample, find_sample, load_sample
from headgate.pipeline.generator.sample import sample_lines

BRONZE, SILVER = "bronze", "silver"
TOPIC = "faults"
READY_SECONDS = 60.0
ENGINE_SECONDS = 600.0
# Of each round: records that cannot be a row, and tombstones.
HOSTILE = (b"", b"not a record", b"[]", b'{"a":1', b"\xff\xfe", b'{"a":1,"a":2}', b"{} {}")
TOMBSTONES = 2


@dataclass(frozen=True)
class Ended:
    """How one command of ours ended."""

    exit_code: int
    log: str

    @property
    def killed(self) -> bool:
        return self.exit_code == -signal.SIGKILL


class RigBroker:
    """A broker that may be killed; what it holds outlives it, and it comes back where it was."""

    def __init__(self, folder: Path) -> None:
        port = any_port()
        log = folder / "logs" / "broker.log"
        self._place = kafka.Broker(folder / "kafka", port, any_port([port]), log)
        self._runtime = kafka.kafka_runtime()
        kafka.prepare(self._place, self._runtime)
        self._child = self._started()

    @property
    def bootstrap(self) -> str:
        return self._place.bootstrap

    def _started(self) -> Child:
        child = Child(kafka.command(self._place, self._runtime))
        ready = wait_until(
            lambda: kafka.ready(self._place) or child.exit_code is not None, READY_SECONDS
        )
        if not ready or child.exit_code is not None:
            why, fix = kafka.why_it_ended(self._place.log, child.exit_code)
            child.kill()
            raise UnavailableError("the broker did not start", why=why, fix=fix)
        return child

    def kill(self) -> None:
        self._child.kill()

    def start(self) -> None:
        self._child = self._started()

    def stop(self) -> None:
        kafka.stop(self._place, self._runtime, self._child)


class Rig:
    """The topic that all homes read, and the commands that work on it."""

    def __init__(self, settings: Settings, folder: Path, broker: RigBroker) -> None:
        self._settings, self._folder, self.broker = settings, folder, broker
        self._bootstrap = broker.bootstrap
        dataset = settings.need("dataset")
        self._sample: Sample = load_sample(find_sample(settings.root, dataset)).value

    def home(self, name: str) -> Settings:
        """A home of its own on the shared topic; its dead letters go to a topic of its own."""
        dlq_topic = f"{TOPIC}.{name}.dlq"
        Topics(self._bootstrap).create([TopicSpec(TOPIC, 3, 1), TopicSpec(dlq_topic, 1, 1)])
        return Settings(
            root=self._settings.root,
            home=self._folder / name,
            dataset=self._settings.dataset,
            topic=TOPIC,
            dlq_topic=dlq_topic,
            bootstrap_servers=self._bootstrap,
            spark_master=self._settings.spark_master,
            spark_driver_memory=self._settings.spark_driver_memory,
            spark_java_options=self._settings.spark_java_options,
        )

    def send(self, seed: int, rows: int) -> int:
        """One round of records, acknowledged."""
        values, keys = self.round(seed, rows)
        writer = TopicWriter(self._bootstrap)
        writer.send(TOPIC, values, keys)
        writer.flush()
        return len(values)

    def round(self, seed: int, rows: int) -> tuple[list[bytes | None], list[bytes]]:
        """Rows of a sample, some of the round before again, and some that nobody wants."""
        rng = Random(seed)
        again = self._rows(seed - 1, rows // 10)
        bad = [rng.choice(HOSTILE) for _ in range(rng.randrange(1, 6))]
        values: list[bytes | None] = [*self._rows(seed, rows), *again, *bad, *[None] * TOMBSTONES]
        rng.shuffle(values)
        return values, [b"%d" % rng.randrange(50) for _ in values]

    def _rows(self, seed: int, rows: int) -> list[bytes]:
        return sample_lines(self._sample, abs(seed), rows)

    def run(self, home: Settings, job: str, fault: str = "") -> Ended:
        """`headgate job run`, to its end or its death; the engine is this command's own."""
        return ended(self.begin(home, job, "job", "run", job, fault=fault))

    def begin(self, home: Settings, log: str, *words: str, fault: str = "") -> Child:
        """A command of ours under this home's settings."""
        argv = (sys.executable, "-m", "headgate.cli.main", *words)
        env = {**os.environ, **environment(home), VARIABLE: fault}
        return Child(Command(argv, home.home / "logs" / f"{log}.log", self._settings.root, env))

    def finish(self, home: Settings, job: str) -> None:
        """Run the job undisturbed."""
        done = self.run(home, job)
        if done.exit_code:
            raise OperationError(
                f"{job} in {home.home} failed with exit code {done.exit_code}",
                why="\n".join(done.log.strip().splitlines()[-5:]),
            )


def ended(child: Child) -> Ended:
    """How the command ends; one that does not is killed and is an error."""
    log = child.command.log
    if not wait_until(lambda: child.exit_code is not None, ENGINE_SECONDS):
        child.kill()
        words = " ".join(child.command.argv[3:])
        raise UnavailableError(f"{words} did not end within {ENGINE_SECONDS:g} s", why=str(log))
    return Ended(child.exit_code or 0, read_log(log, child.log_from))


def environment(settings: Settings) -> dict[str, str]:
    """Every variable of these settings; an empty one means the default."""
    values = {name: getattr(settings, field) for field, name in NAMES.items()}
    return {
        name: "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in values.items()
    }


@contextmanager
def rig(settings: Settings, folder: Path) -> Generator[Rig]:
    """A rig with its broker running; what the broker holds outlives it."""
    broker = RigBroker(folder)
    try:
        yield Rig(settings, folder, broker)
    finally:
        broker.stop()


ENGINE_READY_SECONDS = 120.0
STOP_SECONDS = 60.0


class StreamEngine:
    """`headgate engine run`; it is gone when the block is left."""

    def __init__(self, place: Rig, home: Settings) -> None:
        self._place, self.home = place, home
        self._child: Child | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._child is not None:
            self._child.stop(STOP_SECONDS)

    def start(self) -> None:
        announced = self.home.home / "engine.json"
        announced.unlink(missing_ok=True)
        child = self._child = self._place.begin(self.home, "engine", "engine", "run")
        if not wait_until(
            lambda: announced.is_file() or child.exit_code is not None, ENGINE_READY_SECONDS
        ):
            raise UnavailableError("the engine did not start", fix=f"read {child.command.log}")

    def kill(self) -> None:
        assert self._child is not None
        self._child.kill()

    def command(self, *words: str) -> None:
        """A command of ours, to its end; it must succeed."""
        done = ended(self._place.begin(self.home, "-".join(words[:3]), *words))
        if done.exit_code:
            raise OperationError(
                f"headgate {' '.join(words)} ended with {done.exit_code}",
                why="\n".join(done.log.strip().splitlines()[-5:]),
            )


def unread(home: Settings, store: OpsStore, job: str) -> int:
    """Offsets on the topic that no batch has settled yet."""
    topic = Topics(home.need("bootstrap_servers")).describe(TOPIC)
    if topic is None:
        raise OperationError(f"topic {TOPIC} is gone")
    settled = store.settled_range(job)
    done: Mapping[str, int] = settled.end if settled else {}
    return sum(end - done.get(str(partition), 0) for partition, end in topic.end.items())
