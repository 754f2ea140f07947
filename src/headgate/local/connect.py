"""The embedded Kafka Connect: one distributed worker on the loopback address."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from headgate.engine.bundles import bundle
from headgate.errors import UnavailableError
from headgate.local import java_server
from headgate.local.java_server import JVM, Runtime
from headgate.local.process import LOOPBACK, Child, Command, any_port
from headgate.local.service import Ended

NAME = "connect"
PORT = 8083
STOP_SECONDS = 20.0
ANSWER_SECONDS = 2.0
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
ALLOWED = ("CASSANDRA_PASSWORD",)
CAUSES = (
    java_server.DISK_FULL,
    java_server.NOT_WRITABLE,
    java_server.NO_MEMORY,
    ("Address already in use", "its port is in use", "stop the other program, or set its port"),
    (
        *("Failed to find any class", "a plugin named in its configuration is not there"),
        "headgate connect build",
    ),
    (
        *("Failed to connect to and describe Kafka cluster", "the broker does not answer it"),
        "headgate local health",
    ),
    ("Timed out while checking for or creating topic", "the broker does not answer it", ""),
)
# The broker may come back.
FINAL = frozenset(why for _, why, _ in CAUSES[:5])


class ConnectServer:
    """One worker: where it lives, how it is started, asked, explained and stopped."""

    name = NAME

    def __init__(
        self,
        folder: Path,
        bootstrap: str,
        plugins: Path,
        log: Path | None = None,
        port: int = 0,
        group: str = "headgate-connect",
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        """`port` 0 takes any free one; `plugins` has one folder for each plugin.

        `secrets` are what connectors may refer to, of those that are allowed.
        """
        self._secrets = {k: v for k, v in (secrets or {}).items() if k in ALLOWED}
        self.folder, self.plugins = folder.absolute(), plugins.absolute()
        self.log = log or self.folder / "connect.log"
        self.port = port or any_port()
        self.metrics_port = any_port([self.port])
        self.bootstrap, self.group = bootstrap, group
        self._runtime: Runtime | None = None
        self.address: str | None = self.url

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def metrics_url(self) -> str:
        return f"http://{LOOPBACK}:{self.metrics_port}/metrics"

    @property
    def runtime(self) -> Runtime:
        """Java and the jars, fetched when first needed."""
        if self._runtime is None:
            self._runtime = java_server.runtime_of(NAME, OPTIONS)
        return self._runtime

    def command(self) -> Command:
        self._prepare()
        (agent,) = bundle("jmx-exporter")
        argv = (
            str(self.runtime.java.executable),
            "-Xmx256m",
            *OPTIONS,
            *java_server.archive_arguments(self.runtime, self.folder),
            f"-javaagent:{agent}={LOOPBACK}:{self.metrics_port}:{METRICS}",
            f"-Dlog4j2.configurationFile={self._logging}",
            *("-cp", self.runtime.class_path),
            *("org.apache.kafka.connect.cli.ConnectDistributed", str(self._config)),
        )
        return Command(argv, self.log, self.folder, {**environment(), **self._secrets})

    @property
    def _config(self) -> Path:
        return self.folder / "connect.properties"

    @property
    def _logging(self) -> Path:
        return self.folder / "log4j2.properties"

    def _prepare(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.plugins.mkdir(parents=True, exist_ok=True)
            self._config.write_text(self.properties())
            self._logging.write_text(java_server.LOGGING)
        except OSError as error:
            raise UnavailableError(
                "the embedded Connect's folder cannot be written",
                why=f"{error.filename}: {error.strerror}",
                fix="free some space or set HEADGATE_HOME to a folder that can be written",
            ) from error

    def properties(self) -> str:
        """The worker's configuration; the same worker gives the same text."""
        return PROPERTIES.format(
            bootstrap=self.bootstrap,
            group=self.group,
            host=LOOPBACK,
            port=self.port,
            plugins=self.plugins,
            allowed="|".join(ALLOWED),
        )

    def ready(self, child: Child) -> bool:
        """Its REST answers only once the worker has joined its group."""
        try:
            with urlopen(f"{self.url}/connectors", timeout=ANSWER_SECONDS) as answer:
                return answer.status == 200
        except (URLError, OSError):
            return False

    def explain(self, child: Child) -> Ended:
        why, fix = java_server.why_it_ended(CAUSES, self.log, child.exit_code, child.log_from)
        return Ended(why, fix, retry=why not in FINAL)

    def endpoints(self) -> Mapping[str, str]:
        return {"KAFKA_CONNECT_URL": self.url, "KAFKA_CONNECT_METRICS_URL": self.metrics_url}

    def stop(self, child: Child) -> None:
        java_server.stop(self.runtime, self.folder, child, STOP_SECONDS)


def environment() -> dict[str, str]:
    """What the worker inherits: no password of ours is any of its business."""
    from headgate.axes import NAMES, SECRETS

    hidden = {NAMES[field] for field in SECRETS}
    return {name: value for name, value in os.environ.items() if name not in hidden}
