"""The embedded Cassandra node, the CQL handshake that asks for its name, and Debezium's reader of its commit log."""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from pathlib import Path
from string import Template

from headgate.core.runtime.ports import LOOPBACK, any_port
from headgate.local.process import Command
from headgate.local.service import (
    DISK_FULL,
    IDENTITY,
    JVM,
    NO_MEMORY,
    NOT_WRITABLE,
    PORT_IN_USE,
    EmbeddedServer,
    Runtime,
    archive_arguments,
    http_answer,
    runtime_of,
)

PROTOCOL = 4
RESPONSE = 0x80 | PROTOCOL
STARTUP, READY, AUTHENTICATE, QUERY, RESULT = 0x01, 0x02, 0x03, 0x07, 0x08
CONSISTENCY_ONE = 0x0001
ROWS = 2
LARGEST_ANSWER = 65_536
HEADER = struct.Struct(">BBhBi")
CLUSTER_NAME = "SELECT cluster_name FROM system.local"


def answers(port: int, limit: float = 1.0, host: str = LOOPBACK) -> bool:
    """Whether a node opens a CQL connection here, or asks who wants one."""
    try:
        with socket.create_connection((host, port), timeout=limit) as connection:
            return _start(connection) in (READY, AUTHENTICATE)
    except OSError:
        return False


def cluster_name(port: int, limit: float = 1.0, host: str = LOOPBACK) -> str | None:
    """The name of the cluster whose node answers here; None without an answer or a login."""
    try:
        with socket.create_connection((host, port), timeout=limit) as connection:
            if _start(connection) != READY:
                return None
            query = CLUSTER_NAME.encode()
            body = struct.pack(">i", len(query)) + query + struct.pack(">HB", CONSISTENCY_ONE, 0)
            opcode, answer = _ask(connection, QUERY, body)
            return _only_value(answer) if opcode == RESULT else None
    except (OSError, struct.error, UnicodeDecodeError):
        return None


def _start(connection: socket.socket) -> int | None:
    return _ask(connection, STARTUP, _text_map({"CQL_VERSION": "3.0.0"}))[0]


def _ask(connection: socket.socket, opcode: int, body: bytes) -> tuple[int | None, bytes]:
    """Send one frame; the answer's opcode and body, no opcode when it is no answer in CQL."""
    connection.sendall(HEADER.pack(PROTOCOL, 0, 0, opcode, len(body)) + body)
    head = _exactly(connection, HEADER.size)
    if len(head) < HEADER.size:
        return None, b""
    version, _, _, answered, size = HEADER.unpack(head)
    if version != RESPONSE or not 0 <= size <= LARGEST_ANSWER:
        return None, b""
    return answered, _exactly(connection, size)


def _only_value(result: bytes) -> str | None:
    """The text of a result with one row of one column; the value stands at its very end."""
    kind, _, columns = struct.unpack_from(">iii", result)
    if kind != ROWS or columns != 1:
        return None
    at = struct.calcsize(">iii")
    for _ in range(3):  # keyspace, table, column
        at += 2 + int(struct.unpack_from(">H", result, at)[0])
    at += 2  # the column's type
    rows, size = struct.unpack_from(">ii", result, at)
    at += struct.calcsize(">ii")
    return result[at : at + size].decode() if rows == 1 and size >= 0 else None


def _text_map(pairs: dict[str, str]) -> bytes:
    return struct.pack(">H", len(pairs)) + b"".join(
        _text(part) for pair in pairs.items() for part in pair
    )


def _text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack(">H", len(raw)) + raw


def _exactly(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size and (part := connection.recv(size - len(found))):
        found += part
    return found


NAME = "cassandra"
PORT = 9042
STORAGE_PORT = 7000
# What every embedded node was called before each had a name of its own.
FIRST_CLUSTER_NAME = "headgate"
LOCAL_DC = "datacenter1"
# Cassandra 5.0 does not start on a later one.
JAVA = (17,)
CONFIG = "cassandra.yaml"
OPTIONS = Path(__file__).with_name("cassandra.options")
YAML = Path(__file__).with_name("cassandra.yaml.tmpl")
LOGGING = """<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder>
      <pattern>%date{yyyy-MM-dd'T'HH:mm:ss.SSS} %level %logger{0}: %msg%n</pattern>
    </encoder>
  </appender>
  <root level="INFO"><appender-ref ref="out"/></root>
</configuration>
"""
CAUSES = (
    DISK_FULL,
    NOT_WRITABLE,
    NO_MEMORY,
    ("Address already in use", PORT_IN_USE, "stop the other program or its node"),
    ("is in use by another process", PORT_IN_USE, "stop the other program or its node"),
    (
        *("CommitLogReplayException", "its commit log is damaged"),
        "move the newest file of the commitlog folder away, or remove the data",
    ),
)


class CassandraServer(EmbeddedServer):
    """One node: where it lives, how it is started and asked."""

    name = NAME
    stop_seconds = 30.0
    causes = CAUSES

    def __init__(
        self, folder: Path, log: Path | None = None, port: int = 0, storage_port: int = 0
    ) -> None:
        """A port of 0 takes any free one; a node of one has to have a storage port all the same."""
        self.port = port or any_port()
        self._storage_port = storage_port or any_port([self.port])
        super().__init__(folder, log, f"{LOOPBACK}:{self.port}")

    @property
    def contact_points(self) -> str:
        return LOOPBACK

    def find_runtime(self) -> Runtime:
        return runtime_of(NAME, options(), versions=JAVA)

    def command(self) -> Command:
        self.write({CONFIG: self.yaml(), "logback.xml": LOGGING})
        argv = (
            str(self.runtime.java.executable),
            *options(),
            *("-Xms64m", "-Xmx384m"),
            *archive_arguments(self.runtime, self.folder),
            f"-javaagent:{self.runtime.jar('jamm')}",
            f"-Dcassandra.config={(self.folder / CONFIG).as_uri()}",
            f"-Dlogback.configurationFile={self.folder / 'logback.xml'}",
            f"-Dcassandra.storagedir={self.folder}",
            f"-Dcassandra.logdir={self.folder}",
            *("-cp", self.runtime.class_path),
            "org.apache.cassandra.service.CassandraDaemon",
        )
        return Command(argv, self.log, self.folder)

    def yaml(self) -> str:
        """The node's configuration; the same node gives the same text."""
        return Template(YAML.read_text("utf-8")).substitute(
            cluster=self.identity,
            folder=self.folder,
            host=LOOPBACK,
            port=self.port,
            storage_port=self._storage_port,
        )

    @property
    def identity(self) -> str:
        """The cluster's name. A node whose data have a name keeps it, or it would not start."""
        if (self.folder / "data").is_dir() and not (self.folder / IDENTITY).is_file():
            return FIRST_CLUSTER_NAME
        return super().identity

    def is_own(self) -> bool:
        return cluster_name(self.port) == self.identity

    def endpoints(self) -> Mapping[str, str]:
        return {
            "CASSANDRA_CONTACT_POINTS": self.contact_points,
            "CASSANDRA_PORT": str(self.port),
            "CASSANDRA_LOCAL_DC": LOCAL_DC,
        }


def options() -> tuple[str, ...]:
    """The JVM's options: what Cassandra needs of a Java with modules, and a quick start."""
    return tuple(OPTIONS.read_text("utf-8").split())


CDC_NAME = "cdc"
BUNDLE = "debezium-cassandra"
TOPIC_PREFIX = "cassandra"
CDC_CONFIG = "cdc.properties"
AWAY = "Cassandra does not answer it"
# Its health port listens on every address and no option changes that; it tells how it is, no data.
# Without `poll.interval.ms` an event waits a second.
PROPERTIES = """connector.name=headgate
cassandra.node.id=node1
topic.prefix={prefix}
cassandra.config={config}
cassandra.driver.config.file={driver}
http.port={port}
kafka.producer.bootstrap.servers={bootstrap}
kafka.producer.acks=all
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=false
value.converter.schemas.enable=false
offset.backing.store.dir={folder}/offsets
offset.flush.interval.ms=0
commit.log.relocation.dir={folder}/relocated
commit.log.real.time.processing.enabled=true
commit.log.marked.complete.poll.interval.ms=100
cdc.dir.poll.interval.ms=100
poll.interval.ms=50
snapshot.mode=never
snapshot.consistency=ONE
latest.commit.log.only=false
"""
DRIVER = """datastax-java-driver {{
  basic {{
    contact-points = ["{host}:{port}"]
    request.timeout = 20 seconds
    load-balancing-policy {{ local-datacenter = "{dc}" }}
  }}
}}
"""
CDC_CAUSES = (
    DISK_FULL,
    NOT_WRITABLE,
    NO_MEMORY,
    ("AllNodesFailedException", AWAY, "headgate local health"),
    ("Address already in use", PORT_IN_USE, "start it again"),
)


class CdcServer(EmbeddedServer):
    """One reader of one node's commit log."""

    name = CDC_NAME
    causes = CDC_CAUSES
    passing = frozenset({AWAY})

    def __init__(
        self,
        folder: Path,
        bootstrap: str,
        cassandra: Path,
        cassandra_port: int,
        log: Path | None = None,
        prefix: str = TOPIC_PREFIX,
    ) -> None:
        """`cassandra` is the folder of the embedded node, on the same machine."""
        self._cassandra, self._cassandra_port = cassandra.absolute(), cassandra_port
        self.bootstrap, self.prefix = bootstrap, prefix
        self.port = any_port()
        super().__init__(folder, log, f"http://{LOOPBACK}:{self.port}/health")

    def find_runtime(self) -> Runtime:
        return runtime_of(BUNDLE, versions=JAVA)

    def command(self) -> Command:
        driver = DRIVER.format(host=LOOPBACK, port=self._cassandra_port, dc=LOCAL_DC)
        texts = {CDC_CONFIG: self.properties(), "driver.conf": driver, "logback.xml": LOGGING}
        self.write(texts, [self.folder / name for name in ("offsets", "relocated", "own")])
        argv = (
            str(self.runtime.java.executable),
            "-Xmx256m",
            *JVM,
            *(option for option in options() if option.startswith("--add-")),
            *archive_arguments(self.runtime, self.folder),
            f"-Dlogback.configurationFile={self.folder / 'logback.xml'}",
            # It reads the node's classes, and they must not take the node's own folders.
            f"-Dcassandra.storagedir={self.folder / 'own'}",
            *("-jar", str(self.runtime.jars[0]), str(self.folder / CDC_CONFIG)),
        )
        return Command(argv, self.log, self.folder)

    def properties(self) -> str:
        """Its configuration; the same place gives the same text."""
        return PROPERTIES.format(
            prefix=self.prefix,
            config=self._cassandra / "cassandra.yaml",
            driver=self.folder / "driver.conf",
            port=self.port,
            bootstrap=self.bootstrap,
            folder=self.folder,
        )

    def is_own(self) -> bool:
        """Whether it is healthy; it ends when it cannot have its port, which is any free one."""
        page = http_answer(f"http://{LOOPBACK}:{self.port}/health") or b""
        return b'"healthy":true' in page.replace(b" ", b"")
