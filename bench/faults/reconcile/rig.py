"""Kafka, Cassandra, Connect, a hasher and an engine over one home; each of them may be killed."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from bench.faults.rig import RigBroker, ended, environment
from headgate.config.settings import Settings
from headgate.core.kafka.connect_rest import ConnectRest
from headgate.errors import OperationError, UnavailableError
from headgate.local.cassandra import CassandraServer
from headgate.local.connect import ConnectServer
from headgate.local.process import Child, Command, any_port, read_log, wait_until
from headgate.local.service import Running
from headgate.local.service_kinds import connect_plugins
from headgate.local.state import LocalFiles

TABLE = "business"
JOB = f"reconcile-{TABLE}"
ENGINE_SECONDS = 180.0
HASHER_SECONDS = 90.0
STOP_SECONDS = 60.0
_SAMPLE = re.compile(r"^(?P<name>[a-z_]+)(?P<labels>\{[^}]*\})? (?P<value>[0-9.e+-]+)$", re.M)


@dataclass(frozen=True)
class Times:
    """How long sides wait for each other and how often a batch is read, in seconds."""

    window: int
    grace: int
    trigger: float = 2.0

    @property
    def settled_after(self) -> int:
        return self.window + self.grace


class PairRig:
    """What a play has at hand."""

    def __init__(
        self,
        home: Settings,
        broker: RigBroker,
        cassandra: Running[CassandraServer],
        connect: Running[ConnectServer] | None,
    ) -> None:
        self.home, self.broker, self.cassandra, self.connect = home, broker, cassandra, connect
        self.hasher: Child | None = None
        self.engine: Child | None = None
        self._metrics_port = any_port()

    def begin(self, log: str, *words: str) -> Child:
        """A command of ours under this home's settings."""
        argv = (sys.executable, "-m", "headgate.cli.main", *words)
        env = {**os.environ, **environment(self.home), "PYTHONUNBUFFERED": "1"}
        return Child(Command(argv, self.home.home / "logs" / f"{log}.log", self.home.root, env))

    def command(self, *words: str) -> str:
        """A command of ours, to its end; it must succeed."""
        done = ended(self.begin("-".join(words[:3]), *words))
        if done.exit_code:
            raise OperationError(
                f"headgate {' '.join(words)} ended with {done.exit_code}",
                why="\n".join(done.log.strip().splitlines()[-8:]),
            )
        return done.log

    def start_engine(self) -> None:
        announced = LocalFiles(self.home.home)
        announced.engine.unlink(missing_ok=True)
        child = self.engine = self.begin("engine", "engine", "run")

        def stands() -> bool:
            found = announced.read_engine()
            ready = found is not None and found.pid == child.pid and found.state == "ready"
            return ready or child.exit_code is not None

        if not wait_until(stands, ENGINE_SECONDS) or child.exit_code is not None:
            raise UnavailableError("the engine did not start", fix=f"read {child.command.log}")

    def start_hasher(self, reread_after: float) -> None:
        words = ("--reread-after", f"{reread_after:g}", "--metrics-port", f"{self._metrics_port}")
        child = self.hasher = self.begin("hasher", "reconcile", "hasher", TABLE, *words)
        if not wait_until(lambda: bool(self.hasher_metrics()), HASHER_SECONDS):
            raise UnavailableError("the hasher did not start", fix=f"read {child.command.log}")

    def hasher_metrics(self) -> Mapping[str, float]:
        """What the hasher counts, summed by name; empty when it does not answer."""
        return samples(f"http://127.0.0.1:{self._metrics_port}/metrics")

    def connect_metrics(self) -> Mapping[str, float]:
        return samples(self.connect.service.metrics_url) if self.connect else {}

    def rest(self) -> ConnectRest:
        return ConnectRest(self.home.need("kafka_connect_url"), 5.0)

    def running_engine(self) -> Settings:
        """The settings with which a client reaches the engine."""
        found = LocalFiles(self.home.home).read_engine()
        if found is None:
            raise UnavailableError("no engine is running here")
        url = f"sc://localhost:{found.connect_port}"
        changes = {"connect_url": url, "connect_token": found.connect_token}
        return self.home.model_copy(update=changes)

    def stop(self) -> None:
        """Children first, so that none meets a broker that is gone."""
        for child in (self.hasher, self.engine):
            if child is not None and child.exit_code is None:
                child.stop(STOP_SECONDS)


def samples(url: str) -> dict[str, float]:
    """Prometheus text as numbers by name, labels summed away."""
    try:
        with urlopen(url, timeout=3.0) as answer:
            text = answer.read().decode()
    except (URLError, OSError):
        return {}
    found: dict[str, float] = {}
    for sample in _SAMPLE.finditer(text):
        found[sample["name"]] = found.get(sample["name"], 0.0) + float(sample["value"])
    return found


def new_words(child: Child | None, since: int) -> list[str]:
    """What a child has said since its log was so long."""
    if child is None:
        return []
    lines = read_log(child.command.log, since).splitlines()
    return [line.strip() for line in lines if line.strip()]


def log_size(log: Path) -> int:
    return log.stat().st_size if log.is_file() else 0


@contextmanager
def pair_rig(
    settings: Settings, folder: Path, times: Times, *, with_connect: bool
) -> Generator[PairRig]:
    """Broker, Cassandra and, if wanted, Connect running; all of them gone afterwards."""
    with ExitStack() as stack:
        broker = RigBroker(folder)
        stack.callback(broker.stop)
        node = stack.enter_context(Running(CassandraServer(folder / "cassandra")))
        worker = None
        if with_connect:
            plugins = connect_plugins(settings.root) or folder / "plugins"
            server = ConnectServer(folder / "connect", broker.bootstrap, plugins)
            worker = stack.enter_context(Running(server))
        home = _home(settings, folder, times, broker, node, worker)
        rig = PairRig(home, broker, node, worker)
        stack.callback(rig.stop)
        yield rig


def _home(
    settings: Settings,
    folder: Path,
    times: Times,
    broker: RigBroker,
    node: Running[CassandraServer],
    worker: Running[ConnectServer] | None,
) -> Settings:
    return Settings(
        root=settings.root,
        home=folder / "home",
        dataset=settings.dataset,
        bootstrap_servers=broker.bootstrap,
        cassandra_contact_points=node.service.contact_points,
        cassandra_port=node.service.port,
        kafka_connect_url=worker.service.url if worker else None,
        kafka_connect_metrics_url=worker.service.metrics_url if worker else None,
        trigger_seconds=times.trigger,
        reconcile_window=f"{times.window} SECONDS",
        reconcile_grace=f"{times.grace} SECONDS",
        connect_port=0,
        spark_ui_port=0,
        metrics_port=0,
        spark_master=settings.spark_master,
        spark_driver_memory=settings.spark_driver_memory,
        spark_java_options=settings.spark_java_options,
    )
