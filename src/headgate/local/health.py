"""Ask each service itself whether it answers, and whether what answers is this stack's own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from headgate.certify.stages import Answer
from headgate.config.env_files import DEFAULT_PROFILE, RUNNING_SERVICES
from headgate.config.settings import Settings
from headgate.core.runtime.http import open_response
from headgate.errors import HeadgateError, UnavailableError
from headgate.local.cassandra import CassandraServer
from headgate.local.connect import ConnectServer
from headgate.local.postgres import PostgresServer
from headgate.local.process import alive, port_answers
from headgate.local.registry import RegistryServer
from headgate.local.service import http_answer
from headgate.local.state import (
    BROKER,
    CASSANDRA,
    CDC,
    CONNECT,
    ENGINE,
    POSTGRES,
    REGISTRY,
    EngineFile,
    LocalFiles,
)

if TYPE_CHECKING:
    from headgate.core.ledger.ops_store import OpsStore

DISK_FULL = 1_000_000
NOT_RUNNING = "not running: headgate local up"
ANOTHER = "what answers there is not this stack's own"
STORAGE, CATALOG = "storage", "catalog"
# What every implementation of S3 sends along, whatever the answer is.
S3_REQUEST_ID = "x-amz-request-id"
LARGEST_ANSWER = 65_536


@dataclass(frozen=True)
class Health:
    """What one service answered."""

    service: str
    healthy: bool
    address: str | None
    words: str


def health(settings: Settings) -> tuple[Health, ...]:
    """Each service that was asked for, and what the engine needs; after `up --only` those alone."""
    files = LocalFiles(settings.home)
    plan = files.read_plan() if files.supervisor_pid() is not None else None
    asked = {*plan.services} if plan else {BROKER, ENGINE}
    answers: list[Health] = []
    if BROKER in asked or settings.bootstrap_servers:
        answers.append(ask_broker(settings))
    if ENGINE in asked:
        answers.append(_engine(settings, files))
    answers += [_extra(settings, files, name) for name in QUESTIONS if name in asked]
    if ENGINE in asked or settings.storage != "local":
        answers.append(ask_storage(settings))
    if settings.catalog == "rest":
        answers.append(ask_catalog(settings))
    return tuple(answers)


def probe_services(settings: Settings, store: OpsStore) -> tuple[Answer, ...]:
    """The broker, the engine and the storage, as validation asks them."""
    answers = {found.service: found for found in health(settings)}
    broker, engine = answers.get(BROKER), answers.get(ENGINE)
    return (
        Answer(BROKER, broker is not None and broker.healthy, broker.words if broker else "none"),
        Answer(ENGINE, True, engine.words)
        if engine is not None and engine.healthy
        else _engine_elsewhere(settings, store, engine.words if engine else "not running"),
        probe_storage(settings),
    )


def _engine_elsewhere(settings: Settings, store: OpsStore, words: str) -> Answer:
    """An engine that was not started here shows by its lease, and by its port where that is known."""
    from headgate.core.engine.lease import active_engine

    holder = active_engine(store)
    if holder is None:
        return Answer(ENGINE, False, words)
    port = (settings.connect_url or "").rstrip("/").rpartition(":")[2]
    if port.isdigit() and not port_answers(int(port)):
        return Answer(ENGINE, False, f"{holder} holds the lease, but port {port} does not answer")
    return Answer(ENGINE, True, f"{holder} holds the lease")


def probe_storage(settings: Settings) -> Answer:
    storage = ask_storage(settings)
    place = f"{storage.address}: " if settings.storage == "local" else ""
    return Answer(STORAGE, storage.healthy, place + storage.words)


def need_outside_services(settings: Settings, services: Sequence[str]) -> None:
    """Raise when a service that these need is not ours to start, and is away."""
    answers: list[Health] = []
    if settings.broker != "embedded" and {ENGINE, CONNECT, CDC} & {*services}:
        answers.append(ask_broker(settings))
    if ENGINE in services and settings.storage != "local":
        answers.append(ask_storage(settings))
    if ENGINE in services and settings.catalog == "rest":
        answers.append(ask_catalog(settings))
    if away := [answer for answer in answers if not answer.healthy]:
        raise away_error(settings, away)


def away_error(settings: Settings, away: Sequence[Health]) -> UnavailableError:
    """Which services are away, why, and what can be done about those."""
    return UnavailableError(
        f"away: {', '.join(answer.service for answer in away)}",
        why="; ".join(f"{a.service}: {a.words}" for a in away),
        fix="; ".join(dict.fromkeys(_advise(settings, answer.service) for answer in away)),
    )


def _advise(settings: Settings, service: str) -> str:
    """What a person can do about a service that is away; `local up` starts the embedded ones only."""
    if service == STORAGE and settings.storage == "local":
        return "make that folder writable, or set WAREHOUSE to another one"
    if service in (STORAGE, CATALOG) or (service == BROKER and _is_broker_outside(settings)):
        return (
            "start what the profile names or correct its address; "
            f"`headgate config select {DEFAULT_PROFILE}` uses embedded services"
        )
    return "headgate local up, or headgate local logs"


def _is_broker_outside(settings: Settings) -> bool:
    """Whether the broker's address comes from a person, and not from a running stack."""
    named = settings.bootstrap_servers is not None
    return named and settings.origin("bootstrap_servers") != RUNNING_SERVICES


def ask_broker(settings: Settings) -> Health:
    """Whether the broker answers; of the embedded one, whether it is the one of this home's data."""
    from headgate.core.kafka.topics import Topics

    address = settings.bootstrap_servers
    if not address:
        return Health(BROKER, False, None, NOT_RUNNING)
    topics = Topics(address, timeout=settings.http_timeout)
    count = topics.brokers()
    if count == 0:
        full = settings.home.is_dir() and shutil.disk_usage(settings.home).free < DISK_FULL
        reason = "; the disk is full" if full and not _is_broker_outside(settings) else ""
        return Health(BROKER, False, address, f"{address} does not answer{reason}")
    try:
        topics.refuse_another_cluster()
    except UnavailableError as error:
        return Health(BROKER, False, address, f"{error.what}: {error.why}")
    words = "answers" if count == 1 else f"{count} brokers answer"
    return Health(BROKER, True, address, words)


def _engine(settings: Settings, files: LocalFiles) -> Health:
    found = files.read_engine()
    if found is None or not alive(found.pid):
        return Health(ENGINE, False, None, NOT_RUNNING)
    address = f"sc://localhost:{found.connect_port}"
    if found.state != "ready":
        return Health(ENGINE, False, address, found.state)
    if not port_answers(found.connect_port):
        return Health(ENGINE, False, address, "its port does not answer")
    fault = _lease_fault(settings, found)
    return Health(ENGINE, not fault, address, fault or "ready")


def _lease_fault(settings: Settings, engine: EngineFile) -> str:
    """Why an engine whose port answers does not work; empty when it does.

    The kernel accepts connections for a process that is stopped. Its lease is not renewed, though.
    """
    from headgate.core.engine.lease import NAME, is_process
    from headgate.core.ledger.ops_store import OpsStore

    try:
        with OpsStore.open(settings.ops_store_url) as store:
            lease = store.lease(NAME)
    except HeadgateError as error:
        return f"{error.what}: {error.why}"
    if lease is None:
        return "its lease has run out: the process is stopped, or far too busy"
    if not is_process(lease.holder, engine.pid):
        return f"another engine holds the lease: {lease.holder}"
    return ""


def _extra(settings: Settings, files: LocalFiles, name: str) -> Health:
    state = files.read_state()
    service = state.service(name) if state else None
    if service is None or not service.address:
        return Health(name, False, None, NOT_RUNNING)
    if QUESTIONS[name](settings, service.address):
        return Health(name, True, service.address, "answers")
    stranger = name != CDC and port_answers(_port(service.address))
    words = ANOTHER if stranger and not service.why else service.why or "does not answer"
    return Health(name, False, service.address, words)


def _port(address: str) -> int:
    """The port of `host:port` or of a URL."""
    return int(address.rpartition("://")[2].partition("/")[0].rpartition(":")[2])


def _is_own_connect(settings: Settings, address: str) -> bool:
    folder = settings.home / CONNECT
    bootstrap = settings.bootstrap_servers or ""
    return ConnectServer(folder, bootstrap, folder / "plugins", port=_port(address)).is_own()


QUESTIONS: dict[str, Callable[[Settings, str], bool]] = {
    CASSANDRA: lambda settings, address: CassandraServer(
        settings.home / CASSANDRA, port=_port(address)
    ).is_own(),
    POSTGRES: lambda settings, address: PostgresServer(
        settings.home / POSTGRES, port=_port(address)
    ).is_own(),
    REGISTRY: lambda settings, address: RegistryServer(
        settings.home / REGISTRY, port=_port(address)
    ).is_own(),
    CONNECT: _is_own_connect,
    CDC: lambda _, address: http_answer(address) is not None,
}


def ask_storage(settings: Settings) -> Health:
    """Whether the tables' files can be written here, or an object store answers where they are."""
    if settings.storage == "local":
        return _folder(Path(settings.warehouse.removeprefix("file:")))
    if not settings.s3_endpoint:
        words = f"{settings.storage}, not asked: its rights are the cloud's"
        return Health(STORAGE, True, None, words)
    endpoint = settings.s3_endpoint
    scheme = "https" if settings.s3_use_ssl else "http"
    url = (endpoint if "://" in endpoint else f"{scheme}://{endpoint}").rstrip("/") + "/"
    try:
        answer = _get(url, settings.http_timeout)
    except OSError as error:
        return Health(STORAGE, False, url, f"{url} does not answer: {error}")
    words = f"{url} answers {answer.status}"
    if answer.is_object_store:
        return Health(STORAGE, True, url, words)
    return Health(STORAGE, False, url, f"{words}, and not as an object store does")


def _folder(folder: Path) -> Health:
    there = next(place for place in (folder, *folder.parents) if place.exists())
    writable = there.is_dir() and os.access(there, os.W_OK)
    words = "can be written" if writable else f"{there} cannot be written"
    return Health(STORAGE, writable, str(folder), words)


def ask_catalog(settings: Settings) -> Health:
    """Whether an Iceberg REST catalog answers at CATALOG_URI."""
    address = settings.need("catalog_uri").rstrip("/")
    url = f"{address}/v1/config?warehouse={quote(settings.warehouse_s3_path, safe='')}"
    try:
        answer = _get(url, settings.http_timeout)
    except OSError as error:
        return Health(CATALOG, False, address, f"{address} does not answer: {error}")
    words = f"{address} answers {answer.status}"
    if answer.is_catalog:
        return Health(CATALOG, True, address, words)
    return Health(CATALOG, False, address, f"{words}, and not as an Iceberg REST catalog does")


@dataclass(frozen=True)
class HttpAnswer:
    """The parts of an HTTP answer that tell what kind of service gave it."""

    status: int
    request_id: str | None
    body: bytes

    @property
    def is_object_store(self) -> bool:
        """Whether S3 gave it; any program answers with some status, a login is not needed here."""
        xml = b"<Error>" in self.body or b"amazonaws.com/doc/" in self.body
        return self.status < 500 and (self.request_id is not None or xml)

    @property
    def is_catalog(self) -> bool:
        """Whether a catalog gave its configuration, or refused it in the form of Iceberg's API."""
        expected = {200: b'"defaults"', 401: b'"error"', 403: b'"error"'}.get(self.status)
        return expected is not None and expected in self.body


def _get(url: str, timeout: float) -> HttpAnswer:
    """The answer, whatever its status; OSError when there is none.

    No redirect is followed: S3 of a cloud sends whoever asks without a login to a page about itself.
    """
    with open_response("GET", url, timeout) as answer:
        body = next(answer.iter_bytes(LARGEST_ANSWER), b"")
        return HttpAnswer(answer.status_code, answer.headers.get(S3_REQUEST_ID), body)
