"""The services that `local up --with` adds: how each is made from what is planned and what runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headgate.config.env_files import RUNNING_SERVICES
from headgate.core.runtime.bundles_folder import bundle_folder
from headgate.errors import UnavailableError
from headgate.local import cassandra, cdc, connect, postgres, registry
from headgate.local.cassandra import CassandraServer
from headgate.local.cdc import CdcServer
from headgate.local.connect import ConnectServer
from headgate.local.ports import reserve_port
from headgate.local.postgres import PostgresServer
from headgate.local.registry import RegistryServer
from headgate.local.state import (
    BROKER,
    CASSANDRA,
    CDC,
    CONNECT,
    POSTGRES,
    REGISTRY,
    LocalFiles,
    Plan,
)

EXTRA = (CASSANDRA, POSTGRES, REGISTRY, CONNECT, CDC)
# What has to answer before a service is started.
NEEDS = {CONNECT: (BROKER,), CDC: (BROKER, CASSANDRA)}
BUNDLES = {
    CASSANDRA: (cassandra.NAME,),
    CONNECT: (connect.NAME, "jmx-exporter", connect.DEBEZIUM),
    POSTGRES: (),
    REGISTRY: ("apicurio",),
    CDC: (cdc.BUNDLE,),
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
    from headgate.core.runtime.build import build_plugins

    sources = root / PLUGIN_SOURCES
    return build_plugins(sources).folder if (sources / "src").is_dir() else None


def fetch(services: Sequence[str], root: Path) -> None:
    """Everything a service needs from elsewhere, before it is started."""
    from headgate.core.runtime.engine_bundles import bundle
    from headgate.core.runtime.engine_java import find_java

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
