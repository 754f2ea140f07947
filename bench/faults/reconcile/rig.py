"""Kafka, Cassandra, Connect, a hasher and an engine over one home; each of them may be killed."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.faults.rig import HomeEngine, bootstrap_of, engine_of, running_broker, start_command
from headgate.config.settings import Settings
from headgate.core.metrics.prometheus import parse_samples
from headgate.core.runtime.http import read_text
from headgate.core.runtime.ports import any_port
from headgate.errors import UnavailableError
from headgate.local.cassandra import CassandraServer
from headgate.local.connect import ConnectServer
from headgate.local.process import Child, wait_until
from headgate.local.service import Running
from headgate.local.service_kinds import BrokerService, connect_plugins

TABLE = "business"
JOB = f"reconcile-{TABLE}"
CLOUD_TABLE = "cloud_keyspace.business_table"
ONPREM_TOPIC, CLOUD_TOPIC = "topic1", "topic2"
# By what precedes their partitions in the ledger.
TOPICS_BY_PREFIX = {"onprem:": ONPREM_TOPIC, "cloud:": CLOUD_TOPIC}
HASHER_SECONDS = 90.0
STOP_SECONDS = 60.0


@dataclass(frozen=True)
class Times:
    """How long sides wait for each other and how often a batch is read, in seconds."""

    window: int
    grace: int
    trigger: float = 2.0

    @property
    def settled_after(self) -> int:
        return self.window + self.grace


@dataclass
class PairRig:
    """The services of one home; engine and hasher are not started yet."""

    home: Settings
    broker: Running[BrokerService]
    cassandra: Running[CassandraServer]
    connect: Running[ConnectServer] | None
    engine: Running[HomeEngine]
    hasher: Child | None = None
    metrics_port: int = field(default_factory=any_port)

    def start_hasher(self, reread_after: float) -> None:
        words = ("--reread-after", f"{reread_after:g}", "--metrics-port", f"{self.metrics_port}")
        child = start_command(self.home, "hasher", "reconcile", "hasher", TABLE, *words)
        self.hasher = child
        if not wait_until(lambda: bool(self.read_hasher_metrics()), HASHER_SECONDS):
            raise UnavailableError("the hasher did not start", fix=f"read {child.command.log}")

    def read_hasher_metrics(self) -> Mapping[str, float]:
        """What the hasher counts, summed by name; empty when it does not answer."""
        return read_metrics(f"http://127.0.0.1:{self.metrics_port}/metrics")

    def read_connect_metrics(self) -> Mapping[str, float]:
        return read_metrics(self.connect.service.metrics_url) if self.connect else {}

    def client_settings(self) -> Settings:
        """The settings with which a client reaches the engine, once that runs."""
        endpoints = self.engine.service.endpoints()
        url, token = endpoints["CONNECT_URL"], endpoints.get("CONNECT_TOKEN")
        return self.home.model_copy(update={"connect_url": url, "connect_token": token})

    def stop_hasher(self) -> None:
        if self.hasher is not None and self.hasher.exit_code is None:
            self.hasher.stop(STOP_SECONDS)


def read_metrics(url: str) -> dict[str, float]:
    """Prometheus text as numbers by name, labels summed away; empty when nothing answers."""
    try:
        text = read_text(url, 3.0)
    except OSError:
        return {}
    sums: dict[str, float] = {}
    for name, _, value in parse_samples(text):
        sums[name] = sums.get(name, 0.0) + value
    return sums


@contextmanager
def open_pair_rig(
    settings: Settings, folder: Path, times: Times, *, with_connect: bool
) -> Generator[PairRig]:
    """Broker, Cassandra and, if wanted, Connect running; all of them gone afterwards."""
    with ExitStack() as stack:
        broker = stack.enter_context(running_broker(settings.root, folder))
        cassandra = stack.enter_context(Running(CassandraServer(folder / "cassandra")))
        connect = None
        if with_connect:
            plugins = connect_plugins(settings.root) or folder / "plugins"
            server = ConnectServer(folder / "connect", bootstrap_of(broker), plugins)
            connect = stack.enter_context(Running(server))
        home = Settings(
            root=settings.root,
            home=folder / "home",
            dataset=settings.dataset,
            topic=settings.topic,
            dlq_topic=settings.dlq_topic,
            bootstrap_servers=bootstrap_of(broker),
            cassandra_contact_points=cassandra.service.contact_points,
            cassandra_port=cassandra.service.port,
            kafka_connect_url=connect.service.url if connect else None,
            kafka_connect_metrics_url=connect.service.metrics_url if connect else None,
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
        home.home.mkdir(parents=True, exist_ok=True)
        engine = stack.enter_context(engine_of(home))
        rig = PairRig(home, broker, cassandra, connect, engine)
        stack.callback(rig.stop_hasher)
        yield rig
