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

from headgate.axes import NAMES
from headgate.engine.faults import VARIABLE
from headgate.engine.topics import Topics, TopicSpec
from headgate.errors import OperationError, UnavailableError
from headgate.feeds.sample_lines import sample_lines
from headgate.feeds.topic_writer import TopicWriter
from headgate.local import kafka
from headgate.local.process import Child, Command, any_port, read_log, wait_until
from headgate.settings import Settings
from headgate.spec.sample import Sample
from headgate.spec.sample_loader import find_sample, load_sample

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


class Rig:
    """The topic that all homes read, and the commands that work on it."""

    def __init__(self, settings: Settings, folder: Path, bootstrap: str) -> None:
        self._settings, self._folder, self._bootstrap = settings, folder, bootstrap
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
        """Rows of a sample, some of the round before again, and some that nobody wants."""
        rng = Random(seed)
        again = self._rows(seed - 1, rows // 10)
        bad = [rng.choice(HOSTILE) for _ in range(rng.randrange(1, 6))]
        values: list[bytes | None] = [*self._rows(seed, rows), *again, *bad, *[None] * TOMBSTONES]
        rng.shuffle(values)
        keys = [b"%d" % rng.randrange(50) for _ in values]
        writer = TopicWriter(self._bootstrap)
        writer.send(TOPIC, values, keys)
        writer.flush()
        return len(values)

    def _rows(self, seed: int, rows: int) -> list[bytes]:
        return sample_lines(self._sample, abs(seed), rows)

    def run(self, home: Settings, job: str, fault: str = "") -> Ended:
        """`headgate job run`, to its end or its death; the engine is this command's own."""
        log = home.home / "logs" / f"{job}.log"
        argv = (sys.executable, "-m", "headgate.cli.main", "job", "run", job)
        env = {**os.environ, **environment(home), VARIABLE: fault}
        child = Child(Command(argv, log, self._settings.root, env))
        if not wait_until(lambda: child.exit_code is not None, ENGINE_SECONDS):
            child.kill()
            raise UnavailableError(f"{job} did not end within {ENGINE_SECONDS:g} s", why=str(log))
        return Ended(child.exit_code or 0, read_log(log, child.log_from))

    def finish(self, home: Settings, job: str) -> None:
        """Run the job undisturbed."""
        ended = self.run(home, job)
        if ended.exit_code:
            raise OperationError(
                f"{job} in {home.home} failed with exit code {ended.exit_code}",
                why="\n".join(ended.log.strip().splitlines()[-5:]),
            )


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
    port = any_port()
    place = kafka.Broker(folder / "kafka", port, any_port([port]), folder / "logs" / "broker.log")
    runtime = kafka.kafka_runtime()
    kafka.prepare(place, runtime)
    child = Child(kafka.command(place, runtime))
    try:
        ready = wait_until(lambda: kafka.ready(place) or child.exit_code is not None, READY_SECONDS)
        if not ready or child.exit_code is not None:
            why, fix = kafka.why_it_ended(place.log, child.exit_code)
            raise UnavailableError("the broker did not start", why=why, fix=fix)
        yield Rig(settings, folder, place.bootstrap)
    finally:
        kafka.stop(place, runtime, child)
