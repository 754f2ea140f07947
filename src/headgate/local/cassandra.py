"""The embedded Cassandra: one node on the loopback address, its data in one folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import Template

from headgate.errors import UnavailableError
from headgate.local import cql, java_server
from headgate.local.java_server import Runtime
from headgate.local.process import LOOPBACK, Child, Command, any_port, choose_port
from headgate.local.service import Ended

NAME = "cassandra"
PORT = 9042
STORAGE_PORT = 7000
LOCAL_DC = "datacenter1"
STOP_SECONDS = 30.0
# Cassandra 5.0 does not start on a later one.
JAVA = (17,)
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
    ("Address already in use", "its port is in use", "stop the other program or its node"),
    ("is in use by another process", "its port is in use", "stop the other program or its node"),
    (
        *("CommitLogReplayException", "its commit log is damaged"),
        "move the newest file of the commitlog folder away, or remove the data",
    ),
)
FINAL = frozenset(why for _, why, _ in CAUSES)


class CassandraServer:
    """One node: where it lives, how it is started, asked, explained and stopped."""

    name = NAME

    def __init__(self, folder: Path, log: Path | None = None, port: int = 0) -> None:
        """`port` 0 takes any free one."""
        self.folder = folder.absolute()
        self.log = log or self.folder / "cassandra.log"
        self.port = port or any_port()
        self._storage_port = _storage_port(self.port, free=not port)
        self._runtime: Runtime | None = None
        self.address: str | None = f"{LOOPBACK}:{self.port}"

    @property
    def contact_points(self) -> str:
        return LOOPBACK

    @property
    def runtime(self) -> Runtime:
        """Java and the jars, fetched when first needed."""
        if self._runtime is None:
            self._runtime = java_server.runtime_of(NAME, options(), versions=JAVA)
        return self._runtime

    def command(self) -> Command:
        self._prepare()
        argv = (
            str(self.runtime.java.executable),
            *options(),
            *("-Xms64m", "-Xmx384m"),
            *java_server.archive_arguments(self.runtime, self.folder),
            f"-javaagent:{self.runtime.jar('jamm')}",
            f"-Dcassandra.config={self._config.as_uri()}",
            f"-Dlogback.configurationFile={self._logging}",
            f"-Dcassandra.storagedir={self.folder}",
            f"-Dcassandra.logdir={self.folder}",
            *("-cp", self.runtime.class_path),
            "org.apache.cassandra.service.CassandraDaemon",
        )
        return Command(argv, self.log, self.folder)

    @property
    def _config(self) -> Path:
        return self.folder / "cassandra.yaml"

    @property
    def _logging(self) -> Path:
        return self.folder / "logback.xml"

    def _prepare(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._config.write_text(self.yaml())
            self._logging.write_text(LOGGING)
        except OSError as error:
            raise UnavailableError(
                "the embedded Cassandra's folder cannot be written",
                why=f"{self.folder}: {error.strerror}",
                fix="free some space or set HEADGATE_HOME to a folder that can be written",
            ) from error

    def yaml(self) -> str:
        """The node's configuration; the same node gives the same text."""
        return Template(YAML.read_text("utf-8")).substitute(
            folder=self.folder, host=LOOPBACK, port=self.port, storage_port=self._storage_port
        )

    def ready(self, child: Child) -> bool:
        return cql.answers(self.port)

    def explain(self, child: Child) -> Ended:
        why, fix = java_server.why_it_ended(CAUSES, self.log, child.exit_code, child.log_from)
        return Ended(why, fix, retry=why not in FINAL)

    def endpoints(self) -> Mapping[str, str]:
        return {
            "CASSANDRA_CONTACT_POINTS": self.contact_points,
            "CASSANDRA_PORT": str(self.port),
            "CASSANDRA_LOCAL_DC": LOCAL_DC,
        }

    def stop(self, child: Child) -> None:
        java_server.stop(self.runtime, self.folder, child, STOP_SECONDS)


def options() -> tuple[str, ...]:
    """The JVM's options: what Cassandra needs of a Java with modules, and a quick start."""
    return tuple(OPTIONS.read_text("utf-8").split())


def _storage_port(port: int, *, free: bool) -> int:
    """The port that other nodes would use; a node of one has to have it all the same."""
    if free:
        return any_port([port])
    return choose_port(STORAGE_PORT, "Cassandra's storage port", taken=(port,))
