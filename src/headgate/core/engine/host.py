"""An engine in this process: lease, session, services and controller, for one run or until it is stopped.

While an engine is ready, `engine.json` in HEADGATE_HOME holds its ports and the token of Spark Connect; only
its owner may read it. A hadoop catalog has one writer, held by a lock file.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.app import load
from headgate.config.env_files import write_atomically
from headgate.config.settings import Settings, load_settings
from headgate.core.engine.controller import LOOK_SECONDS, Controller, Driver
from headgate.core.engine.job_kind import JOBS, KINDS
from headgate.core.engine.lease import EngineLease, active_engine
from headgate.core.engine.session import ConnectServer, serve_jdbc, start_session, stop_session
from headgate.core.engine.telemetry import delivering, serving
from headgate.core.ledger.model import ACTIVE, Run
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.runtime.ports import choose_port
from headgate.errors import ConflictError, DriverLostError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENGINE_FILE = "engine.json"
STANDBY_SECONDS = 1.0
# So long an engine without its JVM may take to close what it has open.
LOST_EXIT_SECONDS = 15.0


def serve(settings: Settings, say: Callable[[str], None]) -> None:
    """Be the engine: wait for the lease, host jobs, stop between batches on SIGTERM."""
    stop = _stopped_by_signals()
    with OpsStore.open(settings.ops_store_url) as store:
        lease = _wait_for_lease(store, stop, say)
        if lease is None:
            return
        with lease, only_writer(settings):
            connect_port = choose_port(settings.connect_port, "CONNECT_PORT")
            connect = ConnectServer(connect_port, secrets.token_urlsafe(24))
            ui_port = choose_port(settings.spark_ui_port, "SPARK_UI_PORT")
            session = start_session(settings, connect, ui_port)
            driver = Driver.of(session, settings)
            controller = Controller(
                session, driver, store, lease, JOBS, lambda: load_settings(settings.root)
            )
            try:
                with (
                    _ended_with(driver),
                    serving(settings, store, session) as metrics_port,
                    delivering(settings, store, say),
                    _announced(settings.home, connect, ui_port, metrics_port),
                    _services(session, store, settings),
                ):
                    say(f"engine ready: Spark Connect on {connect.port}, Spark UI on {ui_port}")
                    say(f"metrics on http://localhost:{metrics_port}/metrics")
                    if settings.jdbc_port is not None:
                        jdbc_port = choose_port(settings.jdbc_port, "JDBC_PORT")
                        say(f"JDBC on {serve_jdbc(session, jdbc_port)}")
                    with _left_soon():
                        controller.run(stop)
                say("engine stopped between batches")
            finally:
                controller.stop_all()
                stop_session(session)


def run_here(settings: Settings, store: OpsStore, run: Run, watch: Callable[[Run], None]) -> Run:
    """Carry out one run in this process, as an engine that ends with it."""
    lease = EngineLease.take(store)
    if lease is None:
        raise ConflictError(
            "another engine became active just now", fix="run the same command again"
        )
    with lease, only_writer(settings):
        session = start_session(settings)
        driver = Driver.of(session, settings)
        controller = Controller(session, driver, store, lease, JOBS, lambda: settings, only=run.job)
        try:
            with _ended_with(driver), delivering(settings, store):
                return _until_ended(controller, store, run, watch)
        finally:
            controller.stop_all()
            stop_session(session)


def _until_ended(
    controller: Controller,
    store: OpsStore,
    run: Run,
    watch: Callable[[Run], None],
) -> Run:
    while True:
        controller.check()
        controller.look()
        now = store.run(run.job, run.number)
        watch(now)
        if now.state not in ACTIVE and not controller.busy:
            return now
        threading.Event().wait(LOOK_SECONDS)


@contextmanager
def _ended_with(driver: Driver) -> Generator[None]:
    """Say that the driver is lost, whatever failed because of it."""
    try:
        yield
    except DriverLostError:
        raise
    except Exception as error:
        if driver.has_failed():
            raise driver.loss() from error
        raise


@contextmanager
def _services(session: SparkSession, store: OpsStore, settings: Settings) -> Generator[None]:
    """What the kinds of jobs keep going as long as the engine is there."""
    with ExitStack() as stack:
        for entry in (entry for kind in KINDS.values() for entry in kind.services):
            stack.enter_context(load(entry)(session, store, settings))
        yield


@contextmanager
def _left_soon() -> Generator[None]:
    """End this process some seconds after the driver was lost, whatever still waits for it.

    A thread that hangs would keep the process, and with it the lease: no other engine could start.
    """
    try:
        yield
    except DriverLostError as loss:
        timer = threading.Timer(LOST_EXIT_SECONDS, os._exit, (loss.exit_code,))
        timer.daemon = True
        timer.start()
        raise


def _wait_for_lease(
    store: OpsStore, stop: threading.Event, say: Callable[[str], None]
) -> EngineLease | None:
    told = False
    while not stop.is_set():
        lease = EngineLease.take(store)
        if lease is not None:
            return lease
        if not told:
            say(f"standing by: {active_engine(store)} is the active engine")
            told = True
        stop.wait(STANDBY_SECONDS)
    return None


def _stopped_by_signals() -> threading.Event:
    stop = threading.Event()

    def on_signal(number: int, frame: Any) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    return stop


@contextmanager
def _announced(
    home: Path, connect: ConnectServer, ui_port: int, metrics_port: int
) -> Generator[None]:
    """A file that says where this engine listens; only its owner may read the token."""
    path = home / ENGINE_FILE
    content = {
        "pid": os.getpid(),
        "connect_port": connect.port,
        "connect_token": connect.token,
        "ui_port": ui_port,
        "metrics_port": metrics_port,
        "state": "ready",
    }
    write_atomically(path, json.dumps(content).encode())
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def only_writer(settings: Settings) -> Generator[None]:
    """The hadoop catalog is for a single writer: a second process is refused."""
    if settings.catalog != "hadoop":
        yield
        return
    path = _lock_file(settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConflictError(
                "another process writes to this warehouse",
                why=f"CATALOG=hadoop allows one writer, and {path} is locked",
                fix="stop the other engine, or use CATALOG=jdbc or rest",
            ) from None
        yield


def _lock_file(settings: Settings) -> Path:
    if settings.storage == "local":
        return Path(settings.warehouse) / ".headgate.lock"
    digest = hashlib.sha256(settings.warehouse.encode()).hexdigest()[:16]
    return settings.home / f"warehouse-{digest}.lock"
