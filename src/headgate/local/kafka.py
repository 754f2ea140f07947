"""The embedded Kafka: one KRaft node on the loopback address, its data in one folder."""

from __future__ import annotations

import base64
import shutil
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path

from headgate.core.kafka.topics import Topics, read_cluster_id
from headgate.core.runtime.ports import LOOPBACK
from headgate.errors import UnavailableError
from headgate.local import service
from headgate.local.process import Child, Command, port_answers
from headgate.local.service import (
    DISK_FULL,
    JVM,
    LOGGING,
    NO_MEMORY,
    NOT_WRITABLE,
    PORT_IN_USE,
    Runtime,
    archive_arguments,
    runtime_of,
)

FORMAT_SECONDS = 60
# A short session lets a broker that was killed come back in seconds: its dead registration
# has to run out first.
PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller_port}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller_port}
advertised.listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller_port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
num.partitions=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
num.network.threads=2
num.io.threads=4
log.cleaner.dedupe.buffer.size=4194304
auto.create.topics.enable=false
broker.session.timeout.ms=1500
broker.heartbeat.interval.ms=300
group.min.session.timeout.ms=1000
"""
# What the broker's log says, what it means, what to do.
CAUSES = (
    DISK_FULL,
    ("Address already in use", PORT_IN_USE, "stop the other program or set KAFKA_PORT"),
    ("Failed to acquire lock", "another broker uses its data", "stop that broker first"),
    NOT_WRITABLE,
    NO_MEMORY,
    ("Invalid cluster.id", "its data belong to another cluster", "move the kafka folder away"),
)
# Starting it again at once would end the same way.
FINAL_CAUSES = frozenset(why for _, why, _ in CAUSES)


@dataclass(frozen=True)
class Broker:
    """Where one embedded broker lives and listens."""

    folder: Path
    port: int
    controller_port: int
    log: Path

    @property
    def bootstrap(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    @property
    def data(self) -> Path:
        return self.folder / "data"


def kafka_runtime() -> Runtime:
    """Java and the Kafka bundle, fetched when missing."""
    return runtime_of("kafka")


def prepare(broker: Broker, runtime: Runtime) -> None:
    """Write its configuration, and format its data folder once."""
    try:
        broker.folder.mkdir(parents=True, exist_ok=True)
        _config(broker).write_text(properties(broker))
        _logging(broker).write_text(LOGGING)
        if not (broker.data / "meta.properties").is_file():
            _format(broker, runtime)
    except OSError as error:
        raise UnavailableError(
            "the embedded broker's data folder cannot be written",
            why=f"{broker.folder}: {error.strerror}",
            fix="free some space or set HEADGATE_HOME to a folder that can be written",
        ) from error


def properties(broker: Broker, data: Path | None = None) -> str:
    """The broker's configuration; the same broker gives the same text."""
    return PROPERTIES.format(
        host=LOOPBACK,
        port=broker.port,
        controller_port=broker.controller_port,
        data=data or broker.data,
    )


def _config(broker: Broker) -> Path:
    return broker.folder / "server.properties"


def _logging(broker: Broker) -> Path:
    return broker.folder / "log4j2.properties"


def _format(broker: Broker, runtime: Runtime) -> None:
    """Format beside the data folder and rename, so that a kill leaves nothing half-formatted."""
    draft = broker.folder / "data.draft"
    shutil.rmtree(draft, ignore_errors=True)
    config = broker.folder / "format.properties"
    config.write_text(properties(broker, draft))
    tool = ("kafka.tools.StorageTool", "format", "-t", cluster_id(), "-c", str(config))
    done = subprocess.run(
        [*_java(broker, runtime, "128m"), "-cp", runtime.class_path, *tool],
        capture_output=True,
        text=True,
        timeout=FORMAT_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise UnavailableError(
            "the embedded broker's data folder could not be formatted",
            why=cause(done.stdout + done.stderr)[0] or f"exit code {done.returncode}",
            fix="free some space, check who owns the folder, then start it again",
        )
    draft.replace(broker.data)
    config.unlink()


def cluster_id() -> str:
    """A random id as Kafka writes it: a UUID in url-safe base64 that does not begin with a dash."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def _java(broker: Broker, runtime: Runtime, memory: str) -> tuple[str, ...]:
    logging = f"-Dlog4j2.configurationFile={_logging(broker)}"
    return (str(runtime.java.executable), f"-Xmx{memory}", *JVM, logging)


def command(broker: Broker, runtime: Runtime) -> Command:
    """The command that runs a prepared broker; it trains the class archive when there is none."""
    argv = (
        *_java(broker, runtime, "512m"),
        *archive_arguments(runtime, broker.folder),
        *("-cp", runtime.class_path),
        *("kafka.Kafka", str(_config(broker))),
    )
    return Command(argv, broker.log, broker.folder)


def stop(broker: Broker, runtime: Runtime, child: Child, limit: float = 20.0) -> None:
    """Stop it cleanly, and keep the class archive if this was the run that made one."""
    service.stop(runtime, broker.folder, child, limit)


def ready(broker: Broker) -> bool:
    """Whether it answers a client as a live broker of the cluster in its own data folder.

    Any broker may answer on the port, for example that of a stack which took it first.
    """
    if not port_answers(broker.port, 0.2):
        return False
    own = read_cluster_id(broker.folder)
    return own is not None and Topics(broker.bootstrap, timeout=2.0).cluster_id() == own


def why_it_ended(log: Path, exit_code: int | None, since: int = 0) -> tuple[str, str]:
    """Why a broker is gone, and what to do, from what it logged since it was started."""
    return service.why_it_ended(CAUSES, log, exit_code, since)


def cause(text: str) -> tuple[str, str]:
    """The known cause in a broker's words, else its last complaint."""
    return service.cause(CAUSES, text)
