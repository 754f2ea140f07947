"""Debezium's program for Cassandra: reads the embedded node's commit log, writes events to Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from headgate.errors import UnavailableError
from headgate.local import java_server
from headgate.local.cassandra import JAVA, LOCAL_DC, LOGGING, options
from headgate.local.java_server import JVM, Runtime
from headgate.local.process import LOOPBACK, Child, Command, any_port
from headgate.local.service import Ended

NAME = "cdc"
BUNDLE = "debezium-cassandra"
TOPIC_PREFIX = "cassandra"
STOP_SECONDS = 15.0
ANSWER_SECONDS = 2.0
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
CAUSES = (
    java_server.DISK_FULL,
    java_server.NOT_WRITABLE,
    java_server.NO_MEMORY,
    ("AllNodesFailedException", "Cassandra does not answer it", "headgate local health"),
    ("Address already in use", "its port is in use", "start it again"),
)
FINAL = frozenset(why for _, why, _ in CAUSES[:3])


class CdcServer:
    """One reader of one node's commit log."""

    name = NAME

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
        self.folder, self._cassandra = folder.absolute(), cassandra.absolute()
        self.log = log or self.folder / "cdc.log"
        self.bootstrap, self.prefix = bootstrap, prefix
        self._cassandra_port = cassandra_port
        self.port = any_port()
        self._runtime: Runtime | None = None
        self.address: str | None = f"http://{LOOPBACK}:{self.port}/health"

    @property
    def runtime(self) -> Runtime:
        """Java and the program, fetched when first needed."""
        if self._runtime is None:
            self._runtime = java_server.runtime_of(BUNDLE, versions=JAVA)
        return self._runtime

    def command(self) -> Command:
        self._prepare()
        argv = (
            str(self.runtime.java.executable),
            "-Xmx256m",
            *JVM,
            *(option for option in options() if option.startswith("--add-")),
            *java_server.archive_arguments(self.runtime, self.folder),
            f"-Dlogback.configurationFile={self.folder / 'logback.xml'}",
            # It reads the node's classes, and they must not take the node's own folders.
            f"-Dcassandra.storagedir={self.folder / 'own'}",
            *("-jar", str(self.runtime.jars[0]), str(self.folder / "cdc.properties")),
        )
        return Command(argv, self.log, self.folder)

    def _prepare(self) -> None:
        texts = {"cdc.properties": self.properties(), "driver.conf": self._driver()}
        try:
            for name in ("offsets", "relocated", "own"):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
            for name, text in {**texts, "logback.xml": LOGGING}.items():
                (self.folder / name).write_text(text)
        except OSError as error:
            raise UnavailableError(
                "the folder of change capture cannot be written",
                why=f"{self.folder}: {error.strerror}",
                fix="free some space or set HEADGATE_HOME to a folder that can be written",
            ) from error

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

    def _driver(self) -> str:
        return DRIVER.format(host=LOOPBACK, port=self._cassandra_port, dc=LOCAL_DC)

    def ready(self, child: Child) -> bool:
        url = f"http://{LOOPBACK}:{self.port}/health"
        try:
            with urlopen(url, timeout=ANSWER_SECONDS) as answer:
                return b'"healthy":true' in answer.read().replace(b" ", b"")
        except (URLError, OSError):
            return False

    def explain(self, child: Child) -> Ended:
        why, fix = java_server.why_it_ended(CAUSES, self.log, child.exit_code, child.log_from)
        return Ended(why, fix, retry=why not in FINAL)

    def endpoints(self) -> Mapping[str, str]:
        return {}

    def stop(self, child: Child) -> None:
        java_server.stop(self.runtime, self.folder, child, STOP_SECONDS)
