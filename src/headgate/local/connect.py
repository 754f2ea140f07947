"""The embedded Kafka Connect: one distributed worker on the loopback address."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from headgate.core.runtime.bundles import bundle
from headgate.core.runtime.ports import LOOPBACK, any_port
from headgate.local.process import Child, Command
from headgate.local.service import (
    DISK_FULL,
    JVM,
    LOGGING,
    NO_MEMORY,
    NOT_WRITABLE,
    PORT_IN_USE,
    EmbeddedServer,
    Runtime,
    archive_arguments,
    http_answer,
    json_field,
    runtime_of,
)

NAME = "connect"
PORT = 8083
CONFIG = "connect.properties"
# Reads the changes of the events' table; a plugin of its own beside ours.
DEBEZIUM = "debezium-postgres"
# The broker may come back.
AWAY = "the broker does not answer it"
# Without the first two no class archive is made beside a Java agent.
OPTIONS = ("-XX:+UnlockDiagnosticVMOptions", "-XX:+AllowArchivingWithJavaAgent", *JVM)
METRICS = Path(__file__).with_name("connect_metrics.yml")
# A short session lets the tasks of a killed worker start again in seconds; `service_load` finds
# plugins by their service files alone, so that no jar is searched.
PROPERTIES = """bootstrap.servers={bootstrap}
group.id={group}
listeners=http://{host}:{port}
rest.advertised.host.name={host}
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=false
value.converter.schemas.enable=false
config.storage.topic={group}-configs
config.storage.replication.factor=1
offset.storage.topic={group}-offsets
offset.storage.replication.factor=1
offset.storage.partitions=1
status.storage.topic={group}-status
status.storage.replication.factor=1
status.storage.partitions=1
offset.flush.interval.ms=1000
scheduled.rebalance.max.delay.ms=0
session.timeout.ms=2000
heartbeat.interval.ms=500
plugin.path={plugins}
plugin.discovery=service_load
config.providers=env
config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider
config.providers.env.param.allowlist.pattern={allowed}
"""
# A connector names its password as ${env:CASSANDRA_PASSWORD}: so it stands on no topic and in no
# answer of the REST. The worker knows these variables and gives no others away.
ALLOWED = ("CASSANDRA_PASSWORD", "POSTGRES_PASSWORD")
CAUSES = (
    DISK_FULL,
    NOT_WRITABLE,
    NO_MEMORY,
    ("Address already in use", PORT_IN_USE, "stop the other program, or set its port"),
    (
        *("Failed to find any class", "a plugin named in its configuration is not there"),
        "headgate connect build",
    ),
    (
        *("Failed to connect to and describe Kafka cluster", AWAY),
        "headgate local health",
    ),
    ("Timed out while checking for or creating topic", AWAY, "headgate local health"),
)


class ConnectServer(EmbeddedServer):
    """One worker: where it lives, how it is started and asked."""

    name = NAME
    causes = CAUSES
    passing = frozenset({AWAY})

    def __init__(
        self,
        folder: Path,
        bootstrap: str,
        plugins: Path,
        log: Path | None = None,
        port: int = 0,
        group: str = "headgate-connect",
        secrets: Mapping[str, str] | None = None,
        more_plugins: Sequence[Path] = (),
    ) -> None:
        """`port` 0 takes any free one; `plugins` has one folder for each plugin.

        `secrets` are what connectors may refer to, of those that are allowed.
        """
        self.plugins = plugins.absolute()
        self._more_plugins = tuple(more_plugins)
        self.bootstrap, self.group = bootstrap, group
        self.port = port or any_port()
        self.metrics_port = any_port([self.port])
        self._secrets = {k: v for k, v in (secrets or {}).items() if k in ALLOWED}
        super().__init__(folder, log, self.url)

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def metrics_url(self) -> str:
        return f"http://{LOOPBACK}:{self.metrics_port}/metrics"

    def find_runtime(self) -> Runtime:
        return runtime_of(NAME, OPTIONS)

    def command(self) -> Command:
        texts = {CONFIG: self.properties(), "log4j2.properties": LOGGING}
        self.write(texts, [self.plugins])
        (agent,) = bundle("jmx-exporter")
        argv = (
            str(self.runtime.java.executable),
            "-Xmx256m",
            *OPTIONS,
            *archive_arguments(self.runtime, self.folder),
            f"-javaagent:{agent}={LOOPBACK}:{self.metrics_port}:{METRICS}",
            f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}",
            *("-cp", self.runtime.class_path),
            *("org.apache.kafka.connect.cli.ConnectDistributed", str(self.folder / CONFIG)),
        )
        return Command(argv, self.log, self.folder, {**environment(), **self._secrets})

    def properties(self) -> str:
        """The worker's configuration; the same worker gives the same text."""
        return PROPERTIES.format(
            bootstrap=self.bootstrap,
            group=self.group,
            host=LOOPBACK,
            port=self.port,
            plugins=",".join(map(str, (self.plugins, *self._more_plugins))),
            allowed="|".join(ALLOWED),
        )

    def is_own(self) -> bool:
        """Whether a worker of this worker's Kafka cluster answers; another stack's has another.

        Workers of one cluster and group are one Connect: each answers for all.
        """
        from headgate.core.kafka.topics import Topics

        cluster = json_field(http_answer(f"{self.url}/") or b"", "kafka_cluster_id")
        return cluster is not None and cluster == Topics(self.bootstrap, 2.0).cluster_id()

    def ready(self, child: Child) -> bool:
        """Its list of connectors is given only once the worker has joined its group."""
        return http_answer(f"{self.url}/connectors") is not None and self.is_own()

    def endpoints(self) -> Mapping[str, str]:
        return {"KAFKA_CONNECT_URL": self.url, "KAFKA_CONNECT_METRICS_URL": self.metrics_url}


def environment() -> dict[str, str]:
    """What the worker inherits: no password of ours is any of its business."""
    from headgate.config.schema import NAMES, SECRETS

    hidden = {NAMES[field] for field in SECRETS}
    return {name: value for name, value in os.environ.items() if name not in hidden}
