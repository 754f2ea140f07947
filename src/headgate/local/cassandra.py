"""The embedded Cassandra: one node on the loopback address, its data in one folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import Template

from headgate.local import cql, java_server
from headgate.local.embedded_server import IDENTITY, EmbeddedServer
from headgate.local.java_server import Runtime
from headgate.local.process import LOOPBACK, Command, any_port
from headgate.local.service import PORT_IN_USE

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
    java_server.DISK_FULL,
    java_server.NOT_WRITABLE,
    java_server.NO_MEMORY,
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
        return java_server.runtime_of(NAME, options(), versions=JAVA)

    def command(self) -> Command:
        self.write({CONFIG: self.yaml(), "logback.xml": LOGGING})
        argv = (
            str(self.runtime.java.executable),
            *options(),
            *("-Xms64m", "-Xmx384m"),
            *java_server.archive_arguments(self.runtime, self.folder),
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
        return cql.cluster_name(self.port) == self.identity

    def endpoints(self) -> Mapping[str, str]:
        return {
            "CASSANDRA_CONTACT_POINTS": self.contact_points,
            "CASSANDRA_PORT": str(self.port),
            "CASSANDRA_LOCAL_DC": LOCAL_DC,
        }


def options() -> tuple[str, ...]:
    """The JVM's options: what Cassandra needs of a Java with modules, and a quick start."""
    return tuple(OPTIONS.read_text("utf-8").split())
