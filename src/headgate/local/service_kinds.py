"""The kinds of services a supervisor runs: how each is made from the plan and from what already runs.

Broker and engine are always there; Cassandra, PostgreSQL, registry, Connect and CDC are added by `--with`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from headgate.config.env_files import RUNNING_SERVICES
from headgate.core.runtime.bundles import bundle, bundle_folder
from headgate.core.runtime.ports import port_is_free
from headgate.errors import ConflictError, UnavailableError
from headgate.local import cassandra, connect, kafka, postgres, registry
from headgate.local.cassandra import CassandraServer, CdcServer
from headgate.local.connect import ConnectServer
from headgate.local.postgres import PostgresServer
from headgate.local.process import (
    Child,
    Command,
    port_answers,
    read_log,
    reserve_port,
    runs_ours,
    wait_until,
)
from headgate.local.registry import RegistryServer
from headgate.local.service import Ended
from headgate.local.state import (
    BROKER,
    CASSANDRA,
    CDC,
    CONNECT,
    ENGINE,
    POSTGRES,
    REGISTRY,
    LocalFiles,
    Plan,
)

ENGINE_STOP_SECONDS = 60.0
PORT_SECONDS = 2.0
BROKER_STOP_SECONDS = 20.0
# Exit codes of our own commands after which the same start would fail the same way.
FINAL_EXIT_CODES = frozenset({2, 3, 6, 7})


class BrokerService:
    """The embedded Kafka."""

    name = BROKER

    def __init__(self, files: LocalFiles, plan: Plan) -> None:
        port = reserve_port(BROKER, plan.kafka_port, "KAFKA_PORT", exact=plan.exact_port)
        other = reserve_port(BROKER, port + 1, "the controller's port")
        self._runtime = kafka.kafka_runtime()
        self._broker = kafka.Broker(files.home / "kafka", port, other, files.log(BROKER))
        self.address: str | None = self._broker.bootstrap

    def command(self) -> Command:
        kafka.prepare(self._broker, self._runtime)
        return kafka.command(self._broker, self._runtime)

    def ready(self, child: Child) -> bool:
        return kafka.ready(self._broker)

    def explain(self, child: Child) -> Ended:
        why, fix = kafka.why_it_ended(self._broker.log, child.exit_code, child.log_from)
        return Ended(why, fix, retry=why not in kafka.FINAL_CAUSES)

    def endpoints(self) -> Mapping[str, str]:
        return {"BOOTSTRAP_SERVERS": self._broker.bootstrap}

    def stop(self, child: Child) -> None:
        kafka.stop(self._broker, self._runtime, child, BROKER_STOP_SECONDS)


class EngineService:
    """The Spark application that hosts the jobs; it says in a file where it listens."""

    name = ENGINE

    def __init__(self, files: LocalFiles, plan: Plan) -> None:
        self._files, self._plan = files, plan
        self.address: str | None = None
        self._endpoints: dict[str, str] = {}
        # Reserved here and handed over, so that an engine that is started again gets the same ones.
        self._ports = {
            name: reserve_port(ENGINE, wanted, name) for name, wanted in plan.engine_ports.items()
        }

    def command(self) -> Command:
        self._refuse_beside_another()
        self._files.engine.unlink(missing_ok=True)
        self._endpoints, self.address = {}, None
        argv = (sys.executable, "-m", "headgate.cli.main", "engine", "run")
        env = {**os.environ, "HEADGATE_HOME": str(self._files.home), "PYTHONUNBUFFERED": "1"}
        env |= {name: str(port) for name, port in self._ports.items()}
        # The JVM of an engine that was killed may take a moment to let go of them.
        wait_until(lambda: all(map(port_is_free, self._ports.values())), PORT_SECONDS)
        return Command(argv, self._files.log(ENGINE), self._plan.root, env)

    def _refuse_beside_another(self) -> None:
        """An engine that a person started here is the active one; ours would only stand by."""
        found = self._files.read_engine()
        if found is not None and runs_ours(found.pid):
            raise ConflictError(
                "an engine already runs here",
                why=f"process {found.pid} was not started by `headgate local up`",
                fix="stop it, or start the broker alone with --only broker",
            )

    def ready(self, child: Child) -> bool:
        found = self._files.read_engine()
        if found is None or found.pid != child.pid or found.state != "ready":
            return False
        if not port_answers(found.connect_port):
            return False
        self.address = f"sc://localhost:{found.connect_port}"
        self._endpoints = {"CONNECT_URL": self.address}
        if found.connect_token:
            self._endpoints["CONNECT_TOKEN"] = found.connect_token
        if found.ui_port:
            self._endpoints["SPARK_UI_URL"] = f"http://localhost:{found.ui_port}"
        if found.metrics_port:
            self._endpoints["METRICS_URL"] = f"http://localhost:{found.metrics_port}/metrics"
        return True

    def explain(self, child: Child) -> Ended:
        """A killed engine could not say why: its last words are about something else."""
        code = child.exit_code
        if code is not None and code < 0:
            return Ended(f"it was killed by signal {-code}", "headgate local logs", retry=True)
        why, fix = last_error(read_log(child.command.log, child.log_from))
        retry = code not in FINAL_EXIT_CODES
        return Ended(why or f"exit code {code}", fix or "headgate local logs", retry)

    def endpoints(self) -> Mapping[str, str]:
        return self._endpoints

    def stop(self, child: Child) -> None:
        child.stop(ENGINE_STOP_SECONDS)
        self._files.engine.unlink(missing_ok=True)


def last_error(log: str) -> tuple[str, str]:
    """What one of our own commands said before it ended: its reason and its advice."""
    lines = log.splitlines()
    starts = [n for n, line in enumerate(lines) if line.startswith("error HG-")]
    if not starts:
        spoken = [line for line in lines if line.strip()]
        return (spoken[-1].strip()[:200] if spoken else ""), ""
    told = lines[starts[-1] : starts[-1] + 10]
    reasons = [line.partition("why: ")[2] for line in told if line.startswith("  why: ")]
    advice = [line.partition("do: ")[2] for line in told if line.startswith("  do: ")]
    return "; ".join([told[0].partition(": ")[2], *reasons]), "; ".join(advice)


EXTRA = (CASSANDRA, POSTGRES, REGISTRY, CONNECT, CDC)
# What has to answer before a service is started.
NEEDS = {CONNECT: (BROKER,), CDC: (BROKER, CASSANDRA)}
BUNDLES = {
    CASSANDRA: (cassandra.NAME,),
    CONNECT: (connect.NAME, "jmx-exporter", connect.DEBEZIUM),
    POSTGRES: (),
    REGISTRY: ("apicurio",),
    CDC: (cassandra.BUNDLE,),
}
PLUGIN_SOURCES = "java/connect-plugins"


def cassandra_service(files: LocalFiles, plan: Plan) -> CassandraServer:
    exact = plan.exact_cassandra_port
    port = reserve_port(CASSANDRA, plan.cassandra_port, "CASSANDRA_PORT", exact=exact)
    storage_port = reserve_port(CASSANDRA, cassandra.STORAGE_PORT, "Cassandra's storage port")
    return CassandraServer(files.home / CASSANDRA, files.log(CASSANDRA), port, storage_port)


def postgres_service(files: LocalFiles, plan: Plan) -> PostgresServer:
    exact = plan.exact_postgres_port
    port = reserve_port(POSTGRES, plan.postgres_port, "POSTGRES_PORT", exact=exact)
    return PostgresServer(files.home / POSTGRES, files.log(POSTGRES), port)


def registry_service(files: LocalFiles, plan: Plan) -> RegistryServer:
    port = reserve_port(REGISTRY, plan.registry_port, "SCHEMA_REGISTRY_PORT")
    return RegistryServer(files.home / REGISTRY, files.log(REGISTRY), port)


def connect_service(files: LocalFiles, plan: Plan) -> ConnectServer:
    port = reserve_port(CONNECT, plan.connect_port, "KAFKA_CONNECT_PORT")
    folder = files.home / CONNECT
    plugins = connect_plugins(plan.root) or folder / "plugins"
    bootstrap, log = _bootstrap(files, plan), files.log(CONNECT)
    secrets = _secrets(files, plan.root)
    brought = (bundle_folder(connect.DEBEZIUM),)
    return ConnectServer(
        folder, bootstrap, plugins, log, port, secrets=secrets, more_plugins=brought
    )


def _secrets(files: LocalFiles, root: Path) -> dict[str, str]:
    """What connectors may refer to: of the profile or the environment, else of our PostgreSQL."""
    from headgate.config.settings import load_settings

    settings = load_settings(root)
    embedded = settings.origin("postgres_password") in ("default", RUNNING_SERVICES)
    found = {
        "CASSANDRA_PASSWORD": settings.cassandra_password,
        "POSTGRES_PASSWORD": postgres.password_of(files.home / POSTGRES)
        if embedded
        else settings.postgres_password,
    }
    return {name: value for name, value in found.items() if value}


def cdc_service(files: LocalFiles, plan: Plan) -> CdcServer:
    bootstrap = _bootstrap(files, plan)
    port = int(files.read_endpoints()["CASSANDRA_PORT"])
    return CdcServer(files.home / CDC, bootstrap, files.home / CASSANDRA, port, files.log(CDC))


def _bootstrap(files: LocalFiles, plan: Plan) -> str:
    """The embedded broker's address, else the one that the profile names."""
    found = files.read_endpoints().get("BOOTSTRAP_SERVERS") or plan.bootstrap
    if not found:
        raise UnavailableError("there is no broker", fix="headgate local up")
    return found


def connect_plugins(root: Path) -> Path | None:
    """Our own plugins, compiled when they have changed; None outside a project that has them."""
    from headgate.core.runtime.java_build import build_plugins

    sources = root / PLUGIN_SOURCES
    return build_plugins(sources).folder if (sources / "src").is_dir() else None


def fetch(services: Sequence[str], root: Path) -> None:
    """Everything a service needs from elsewhere, before it is started."""
    from headgate.core.runtime.java import find_java

    if {CASSANDRA, CDC} & {*services}:
        find_java(versions=cassandra.JAVA)
    for name in (n for service in services for n in BUNDLES.get(service, ())):
        bundle(name)
    if REGISTRY in services:
        registry.program()
    if CONNECT in services:
        connect_plugins(root)
        bundle_folder(connect.DEBEZIUM)
    if POSTGRES in services:
        postgres.binary("postgres")


def with_what_they_need(services: Sequence[str], own: Sequence[str]) -> tuple[str, ...]:
    """These and, before them, whatever of our own has to run for them."""
    needed = [n for service in services for n in NEEDS.get(service, ()) if n in own]
    return tuple(dict.fromkeys([*needed, *services]))
