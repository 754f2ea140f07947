"""Debezium's program for Cassandra: reads the embedded node's commit log, writes events to Kafka."""

from __future__ import annotations

from pathlib import Path

from headgate.local import java_server
from headgate.local.cassandra import JAVA, LOCAL_DC, LOGGING, options
from headgate.local.embedded_server import EmbeddedServer, http_answer
from headgate.local.java_server import JVM, Runtime
from headgate.local.process import LOOPBACK, Command, any_port
from headgate.local.service import PORT_IN_USE

NAME = "cdc"
BUNDLE = "debezium-cassandra"
TOPIC_PREFIX = "cassandra"
CONFIG = "cdc.properties"
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
CAUSES = (
    java_server.DISK_FULL,
    java_server.NOT_WRITABLE,
    java_server.NO_MEMORY,
    ("AllNodesFailedException", AWAY, "headgate local health"),
    ("Address already in use", PORT_IN_USE, "start it again"),
)


class CdcServer(EmbeddedServer):
    """One reader of one node's commit log."""

    name = NAME
    causes = CAUSES
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
        return java_server.runtime_of(BUNDLE, versions=JAVA)

    def command(self) -> Command:
        driver = DRIVER.format(host=LOOPBACK, port=self._cassandra_port, dc=LOCAL_DC)
        texts = {CONFIG: self.properties(), "driver.conf": driver, "logback.xml": LOGGING}
        self.write(texts, [self.folder / name for name in ("offsets", "relocated", "own")])
        argv = (
            str(self.runtime.java.executable),
            "-Xmx256m",
            *JVM,
            *(option for option in options() if option.startswith("--add-")),
            *java_server.archive_arguments(self.runtime, self.folder),
            f"-Dlogback.configurationFile={self.folder / 'logback.xml'}",
            # It reads the node's classes, and they must not take the node's own folders.
            f"-Dcassandra.storagedir={self.folder / 'own'}",
            *("-jar", str(self.runtime.jars[0]), str(self.folder / CONFIG)),
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
