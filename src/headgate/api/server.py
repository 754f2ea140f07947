"""Runs the API as a process: socket, steps in the background, graceful stop."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from pydantic import BaseModel

from headgate.api.app import create_app
from headgate.config.env_files import write_atomically
from headgate.config.settings import Settings
from headgate.core.identity.api_keys import Keys, KeyStore
from headgate.core.identity.authentication import Authenticator, is_loopback, verifier_of
from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import ForbiddenError, UsageError
from headgate.filters.api.service import open_service
from headgate.web.connection_limits import LimitedProtocol

# Requests that wait for an operation are told to stop waiting; the rest is quick.
GRACE_SECONDS = 10
BACKLOG = 512


class ApiFile(BaseModel):
    """Where the running server listens, for the commands beside it."""

    url: str
    pid: int


@dataclass(frozen=True)
class Address:
    host: str
    port: int

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


class Server(uvicorn.Server):
    """Stops when asked to: streams end at once, other requests are finished."""

    def __init__(self, config: uvicorn.Config, stopping: threading.Event) -> None:
        super().__init__(config)
        self._stopping = stopping

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        # Only a main thread may; a test runs it in another and calls `stop`.
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: signal.signal(number, self._asked) for number in (signal.SIGTERM, signal.SIGINT)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def stop(self) -> None:
        self._stopping.set()
        self.should_exit = True

    def _asked(self, number: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit
        self.stop()


def api_file(settings: Settings) -> Path:
    return settings.home / "api.json"


def serve(
    settings: Settings,
    address: Address,
    told: Callable[[str], None],
    begun: Callable[[Server], None] = lambda server: None,
    reload: Callable[[], Settings] | None = None,
) -> None:
    """Answer until asked to stop. `told` is given the URL, `begun` the server.

    `reload` reads the settings again, where a service that they name was not there at the start.
    """
    with ExitStack() as stack:
        store = stack.enter_context(OpsStore.open(settings.ops_store_url))
        refuse_strangers(settings, store, address.host)
        listening = stack.enter_context(_bound(address))
        service, steps = stack.enter_context(open_service(settings, store))
        app = create_app(settings, store, service, reload)
        stack.callback(app.state.served.closing.close)
        for step in steps:
            app.state.served.troubles[step.name] = step.trouble
            step.start()
            stack.callback(step.close)
        url = Address(address.host, listening.getsockname()[1]).url
        stack.enter_context(_announced(settings, url))
        server = Server(_config(app), app.state.served.stopping)
        begun(server)
        told(url)
        server.run(sockets=[listening])


def refuse_strangers(settings: Settings, store: OpsStore, host: str) -> None:
    """ForbiddenError for an address that others reach, while nobody can have an identity."""
    keys = Keys(store.part(KeyStore))
    if not is_loopback(host) and Authenticator(keys, verifier_of(settings)).is_new:
        raise ForbiddenError(
            f"{host} is open to others, and no key exists yet",
            why="without a key nobody can be told from anybody else",
            fix="headgate keys create <name> --role admin; then serve again",
        )


def _config(app: Callable[..., Any]) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        timeout_graceful_shutdown=GRACE_SECONDS,
        http=LimitedProtocol,
        ws="none",
        h11_max_incomplete_event_size=64 * 1024,
    )


def _bound(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # With its protocol named, asyncio sets TCP_NODELAY on what is accepted; else each answer on a
    # kept connection waits 40 ms for an acknowledgement.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((address.host, address.port))
        # From here on callers wait in line instead of being turned away.
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise UsageError(f"cannot listen on {address.url}", why=str(error)) from error
    return listening


@contextmanager
def _announced(settings: Settings, url: str) -> Generator[None, None, None]:
    file = api_file(settings)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, ApiFile(url=url, pid=os.getpid()).model_dump_json().encode())
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
