"""Parts of a stack without a supervisor, each of which may be killed and started again; and `headgate` commands."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from headgate.config.schema import NAMES
from headgate.config.settings import Settings
from headgate.core.engine.batch import VARIABLE
from headgate.core.kafka.producer import TopicWriter
from headgate.core.kafka.topics import Topics, TopicSpec
from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import OperationError, UnavailableError
from headgate.local.process import Child, Command, read_log, release_ports, wait_until
from headgate.local.service import Running
from headgate.local.service_kinds import BrokerService, EngineService
from headgate.local.state import BROKER, LocalFiles, Plan
from headgate.pipeline.generator.declaration import Sample, find_sample, load_sample
from headgate.pipeline.generator.sample import sample_lines

BRONZE, SILVER = "bronze", "silver"
TOPIC = "faults"
COMMAND_SECONDS = 600.0
ENGINE_READY_SECONDS = 180.0
# Of each round: records that cannot be a row, and tombstones.
HOSTILE = (b"", b"not a record", b"[]", b'{"a":1', b"\xff\xfe", b'{"a":1,"a":2}', b"{} {}")
TOMBSTONES = 2


@dataclass(frozen=True)
class CommandResult:
    """How one `headgate` command ended."""

    exit_code: int
    log: str

    @property
    def was_killed(self) -> bool:
        return self.exit_code == -signal.SIGKILL

    def last_lines(self, count: int = 5) -> str:
        return "\n".join(self.log.strip().splitlines()[-count:])


def environment(settings: Settings, fault: str = "") -> dict[str, str]:
    """This process's environment with every variable of these settings; an empty one is the default."""
    values = {name: getattr(settings, field) for field, name in NAMES.items()}
    texts = {
        name: "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in values.items()
    }
    return {**os.environ, **texts, VARIABLE: fault, "PYTHONUNBUFFERED": "1"}


def start_command(home: Settings, log: str, *words: str, fault: str = "") -> Child:
    """Start a `headgate` command under the settings of a home; `fault` is where it is to die."""
    argv = (sys.executable, "-m", "headgate.cli.main", *words)
    file = home.home / "logs" / f"{log}.log"
    return Child(Command(argv, file, home.root, environment(home, fault)))


def wait_for_end(child: Child) -> CommandResult:
    """Wait until the command ends; one that does not end is killed and is an error."""
    log = child.command.log
    if not wait_until(lambda: child.exit_code is not None, COMMAND_SECONDS):
        child.kill()
        raise UnavailableError(
            f"{_command_line(child)} did not end within {COMMAND_SECONDS:g} s", why=str(log)
        )
    return CommandResult(child.exit_code or 0, read_log(log, child.log_from))


def require_success(child: Child) -> None:
    """Wait until the command ends; it must succeed."""
    result = wait_for_end(child)
    if result.exit_code:
        raise OperationError(
            f"{_command_line(child)} ended with {result.exit_code}", why=result.last_lines(8)
        )


def run_command(home: Settings, *words: str) -> None:
    """Run a `headgate` command to its end; it must succeed."""
    require_success(start_command(home, "-".join(words[:3]), *words))


def _command_line(child: Child) -> str:
    return f"headgate {' '.join(child.command.argv[3:])}"


class HomeEngine(EngineService):
    """The engine of one home, which gets the home's settings by its environment."""

    def __init__(self, home: Settings) -> None:
        super().__init__(LocalFiles(home.home), _plan(home.root))
        self._settings = home

    def command(self) -> Command:
        return replace(super().command(), env=environment(self._settings))


@contextmanager
def engine_of(home: Settings) -> Generator[Running[HomeEngine]]:
    """The engine of a home, not started yet; it is gone when the block is left."""
    engine = Running(HomeEngine(home), ENGINE_READY_SECONDS)
    try:
        yield engine
    finally:
        engine.stop()


@contextmanager
def running_broker(root: Path, folder: Path) -> Generator[Running[BrokerService]]:
    """A broker on ports of its own, its data below the folder; what it holds outlives a kill."""
    try:
        with Running(BrokerService(LocalFiles(folder), _plan(root))) as broker:
            yield broker
    finally:
        release_ports(BROKER)


def _plan(root: Path) -> Plan:
    """Any free ports."""
    return Plan(root=root, services=(), kafka_port=0, exact_port=False, asked_at=datetime.now(UTC))


def bootstrap_of(broker: Running[BrokerService]) -> str:
    return str(broker.service.address)


def count_unread(home: Settings, store: OpsStore, job: str, topics: Mapping[str, str]) -> int:
    """Offsets that no batch of the job has settled; topics by the prefix of their partitions in the ledger."""
    settled = store.settled_range(job)
    done: Mapping[str, int] = settled.end if settled else {}
    broker = Topics(home.need("bootstrap_servers"))
    return sum(
        end - done.get(f"{prefix}{partition}", 0)
        for prefix, topic in topics.items()
        for partition, end in broker.found(topic).end.items()
    )


class TopicRig:
    """A broker with one topic of dirty records, and homes that all read it."""

    def __init__(self, settings: Settings, folder: Path, broker: Running[BrokerService]) -> None:
        self._settings, self._folder, self.broker = settings, folder, broker
        self.bootstrap = bootstrap_of(broker)
        dataset = settings.need("dataset")
        self._sample: Sample = load_sample(find_sample(settings.root, dataset)).value

    def create_home(self, name: str) -> Settings:
        """A home of its own on the shared topic; its dead letters go to a topic of its own."""
        dlq_topic = f"{TOPIC}.{name}.dlq"
        Topics(self.bootstrap).create([TopicSpec(TOPIC, 3, 1), TopicSpec(dlq_topic, 1, 1)])
        return Settings(
            root=self._settings.root,
            home=self._folder / name,
            dataset=self._settings.dataset,
            topic=TOPIC,
            dlq_topic=dlq_topic,
            bootstrap_servers=self.bootstrap,
            spark_master=self._settings.spark_master,
            spark_driver_memory=self._settings.spark_driver_memory,
            spark_java_options=self._settings.spark_java_options,
        )

    def send_round(self, seed: int, rows: int) -> int:
        """Send one round of records and wait until they are acknowledged; how many there were."""
        values, keys = self.draw_round(seed, rows)
        writer = TopicWriter(self.bootstrap)
        writer.send(TOPIC, values, keys)
        writer.flush()
        return len(values)

    def draw_round(self, seed: int, rows: int) -> tuple[list[bytes | None], list[bytes]]:
        """Rows of a sample, some of the round before again, records that cannot be a row, tombstones."""
        rng = Random(seed)
        again = self._draw_rows(seed - 1, rows // 10)
        bad = [rng.choice(HOSTILE) for _ in range(rng.randrange(1, 6))]
        new = self._draw_rows(seed, rows)
        values: list[bytes | None] = [*new, *again, *bad, *[None] * TOMBSTONES]
        rng.shuffle(values)
        return values, [b"%d" % rng.randrange(50) for _ in values]

    def _draw_rows(self, seed: int, rows: int) -> list[bytes]:
        return sample_lines(self._sample, abs(seed), rows)


@contextmanager
def open_rig(settings: Settings, folder: Path) -> Generator[TopicRig]:
    """A rig with its broker running."""
    with running_broker(settings.root, folder) as broker:
        yield TopicRig(settings, folder, broker)
