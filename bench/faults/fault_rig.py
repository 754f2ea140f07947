"""A place to break things in: a broker and homes of its own, and engines that may be killed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from headgate.config.schema import NAMES
from headgate.config.settings import Settings
from headgate.core.engine.faults import VARIABLE
from headgate.core.kafka.engine_topics import Topics, TopicSpec
from headgate.core.kafka.topic_writer import TopicWriter
from headgate.errors import OperationError, UnavailableError
from headgate.local import kafka
from headgate.local.process import Child, Command, any_port, read_log, wait_until
from headgate.pipeline.generator.sample_lines import sample_lines
from headgate.pipeline.generator.sample_loader import find_sample, load_sample
from headgate.pipeline.generator.spec_sample import Sample

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
