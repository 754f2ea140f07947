"""Ask each local service itself whether it answers."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from urllib.error import URLError
from urllib.request import urlopen

from headgate.local import cql, postgres
from headgate.local.process import alive, port_answers
from headgate.local.state import (
    BROKER,
    CASSANDRA,
    CDC,
    CONNECT,
    ENGINE,
    POSTGRES,
    REGISTRY,
    LocalFiles,
)
from headgate.settings import Settings

DISK_FULL = 1_000_000
NOT_RUNNING = "not running: headgate local up"


@dataclass(frozen=True)
class Health:
    """What one service answered."""

    service: str
    healthy: bool
    address: str | None
    words: str


def health(settings: Settings) -> tuple[Health, ...]:
    """Each service that was asked for; after `up --only` those alone."""
    files = LocalFiles(settings.home)
    plan = files.read_plan() if files.supervisor_pid() is not None else None
    asked = {*plan.services} if plan else {BROKER, ENGINE}
    answers: list[Health] = []
    if BROKER in asked or settings.bootstrap_servers:
        answers.append(_broker(settings))
    if ENGINE in asked:
        answers.append(_engine(files))
    return (*answers, *(_extra(files, name) for name in QUESTIONS if name in asked))


def _broker(settings: Settings) -> Health:
    from headgate.engine.topics import Topics

    address = settings.bootstrap_servers
    if not address:
        return Health(BROKER, False, None, NOT_RUNNING)
    count = Topics(address, timeout=settings.http_timeout).brokers()
    if not count and shutil.disk_usage(settings.home).free < DISK_FULL:
        return Health(BROKER, False, address, "does not answer; the disk is full")
    words = "answers" if count == 1 else f"{count} brokers answer" if count else "does not answer"
    return Health(BROKER, count > 0, address, words)


def _engine(files: LocalFiles) -> Health:
    found = files.read_engine()
    if found is None or not alive(found.pid):
        return Health(ENGINE, False, None, NOT_RUNNING)
    address = f"sc://localhost:{found.connect_port}"
    if found.state != "ready":
        return Health(ENGINE, False, address, found.state)
    answers = port_answers(found.connect_port)
    return Health(ENGINE, answers, address, "ready" if answers else "its port does not answer")


def _extra(files: LocalFiles, name: str) -> Health:
    state = files.read_state()
    service = state.service(name) if state else None
    if service is None or not service.address:
        return Health(name, False, None, NOT_RUNNING)
    answers = QUESTIONS[name](service.address)
    words = "answers" if answers else service.why or "does not answer"
    return Health(name, answers, service.address, words)


def _speaks_cql(address: str) -> bool:
    return cql.answers(int(address.rpartition(":")[2]), 2.0)


def _answers_http(address: str) -> bool:
    try:
        with urlopen(address, timeout=5.0) as answer:
            return answer.status == 200
    except (URLError, OSError):
        return False


QUESTIONS: dict[str, Callable[[str], bool]] = {
    CASSANDRA: _speaks_cql,
    POSTGRES: lambda address: postgres.answers(int(address.rpartition(":")[2])),
    REGISTRY: lambda address: _answers_http(f"{address}/subjects"),
    CONNECT: lambda address: _answers_http(f"{address}/connectors"),
    CDC: _answers_http,
}
