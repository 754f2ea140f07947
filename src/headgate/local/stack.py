"""Starts, stops and inspects the local services of a home, and removes their data: what `headgate local` does."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from headgate.config.env_files import PRIVATE_FOLDER
from headgate.config.settings import Settings
from headgate.core.runtime.bundles import bundle
from headgate.core.runtime.java import find_java
from headgate.errors import HeadgateError, OperationError, UnavailableError, UsageError
from headgate.local.health import need_outside_services
from headgate.local.process import alive, read_log, wait_until
from headgate.local.service_kinds import EXTRA, with_what_they_need
from headgate.local.service_kinds import fetch as fetch_extra
from headgate.local.state import (
    BROKER,
    ENGINE,
    SUPERVISOR,
    LocalFiles,
    LocalState,
    Phase,
    Plan,
    ServiceState,
    now,
    write_record,
)

UP_SECONDS = 120.0
DOWN_SECONDS = 100.0
DISK_NEEDED = 300_000_000
# What embedded services and jobs keep under the home; the demo's own home stays.
SERVICE_DATA = (
    *("cassandra", "postgres", "registry", "connect", "cdc", "consumers", "kafka", "engine*"),
    # What is remembered of data must not outlive it: columns, repairs half done, planted pairs.
    *("hasher", "repairs", "data/pairs", "metrics", "logs", "scratch", "dbt*"),
    *("local.plan.json", "local.json", "endpoints.env"),
)
# The embedded tables and what is known of them: both go, or both stay.
TABLE_DATA = (
    *("warehouse*", "checkpoints", "catalog.db*", "ops.db*", "certificates"),
    *("git", "redrives"),
)
Tell = Callable[[str], None]


def wanted_services(
    settings: Settings, only: str | None = None, extra: Sequence[str] | None = None
) -> tuple[str, ...]:
    """The services to run here: no broker of ours when the profile names another."""
    own = (BROKER, ENGINE) if settings.broker == "embedded" else (ENGINE,)
    added = extra_services(settings) if extra is None else tuple(extra)
    available = (*own, *EXTRA)
    if only is None:
        return with_what_they_need((*own, *added), available)
    if only not in available:
        raise UsageError(
            f"no embedded {only} is run here",
            why=f"BROKER is {settings.broker}",
            fix="use env/embedded.env, or start that service by its own means",
        )
    return with_what_they_need((only, *(extra or ())), available)


def extra_services(settings: Settings) -> tuple[str, ...]:
    """What LOCAL_SERVICES asks for."""
    return tuple(name.strip() for name in (settings.local_services or "").split(",") if name)


def up(
    settings: Settings,
    *,
    only: str | None = None,
    extra: Sequence[str] | None = None,
    timeout: float = UP_SECONDS,
    tell: Tell = print,
) -> LocalState:
    """Start what does not run yet and wait until all of it is ready."""
    files = LocalFiles(settings.home)
    wanted = wanted_services(settings, only, extra)
    need_outside_services(settings, wanted)
    _make_home(settings)
    _need_disk(settings.home)
    _fetch(wanted, settings.root)
    with files.asking():
        asked_at, ours = _ask(files, settings, wanted)
    try:
        state = _wait_ready(files, wanted, asked_at, timeout, tell)
    except HeadgateError:
        if ours:  # leave nothing half-started
            down(settings.home)
        raise
    _note_ready(settings)
    return state


def _ask(
    files: LocalFiles, settings: Settings, wanted: Sequence[str]
) -> tuple[datetime, subprocess.Popen[bytes] | None]:
    """Write the plan, and start a supervisor when none runs."""
    running = files.supervisor_pid() is not None
    before = files.read_plan() if running else None
    plan = Plan(
        root=settings.root.absolute(),
        services=tuple(dict.fromkeys([*(before.services if before else ()), *wanted])),
        kafka_port=settings.kafka_port,
        exact_port=settings.origin("kafka_port") == "environment",
        asked_at=now(),
        bootstrap=settings.bootstrap_servers if settings.broker != "embedded" else None,
        cassandra_port=settings.cassandra_port,
        exact_cassandra_port=settings.origin("cassandra_port") == "environment",
        connect_port=settings.kafka_connect_port,
        registry_port=settings.schema_registry_port,
        postgres_port=settings.postgres_port,
        exact_postgres_port=settings.origin("postgres_port") == "environment",
        engine_ports={
            "CONNECT_PORT": settings.connect_port,
            "SPARK_UI_PORT": settings.spark_ui_port,
            "METRICS_PORT": settings.metrics_port,
        },
    )
    write_record(files.plan, plan)
    if running:
        return plan.asked_at, None
    process = _start_supervisor(files, settings.root)
    wait_until(lambda: files.supervisor_pid() is not None or process.poll() is not None, 15.0)
    return plan.asked_at, process


def _start_supervisor(files: LocalFiles, root: Path) -> subprocess.Popen[bytes]:
    log = files.log(SUPERVISOR)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "headgate.local.supervisor", str(files.home.absolute())],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=root,
            start_new_session=True,
        )


def _wait_ready(
    files: LocalFiles, wanted: Sequence[str], asked_at: datetime, timeout: float, tell: Tell
) -> LocalState:
    begun = time.monotonic()
    told: set[str] = set()
    while True:
        state = files.read_state()
        if state is not None and state.asked_at >= asked_at:
            services = [s for name in wanted if (s := state.service(name))]
            _tell_progress(services, told, time.monotonic() - begun, tell)
            _refuse_failed(services, files)
            if len(services) == len(wanted) and all(s.state == Phase.READY for s in services):
                return state
        elif files.supervisor_pid() is None:
            raise _supervisor_gone(files)
        if time.monotonic() - begun > timeout:
            raise _too_slow(files, wanted, state, timeout)
        time.sleep(0.05)


def _tell_progress(
    services: Sequence[ServiceState], told: set[str], seconds: float, tell: Tell
) -> None:
    for service in services:
        where = f" on {service.address}" if service.state == Phase.READY else ""
        line = f"{service.service} {service.state}{where}"
        if line not in told:
            told.add(line)
            tell(line + (f" ({seconds:.1f} s)" if service.state == Phase.READY else " …"))


def _refuse_failed(services: Sequence[ServiceState], files: LocalFiles) -> None:
    for service in services:
        if service.state == Phase.FAILED:
            raise UnavailableError(
                f"the {service.service} could not be started",
                why=": ".join(words for words in (service.what, service.why) if words),
                fix=service.fix or f"read {files.log(service.service)}",
            )


def _supervisor_gone(files: LocalFiles) -> OperationError:
    words = read_log(files.log(SUPERVISOR)).strip().splitlines()
    return OperationError(
        "the local services ended while they were starting",
        why=words[-1] if words else "the supervisor left no words",
        fix=f"read {files.log(SUPERVISOR)}, then `headgate local up` again",
    )


def _too_slow(
    files: LocalFiles, wanted: Sequence[str], state: LocalState | None, timeout: float
) -> UnavailableError:
    late = [n for n in wanted if not state or not (s := state.service(n)) or s.state != Phase.READY]
    return UnavailableError(
        f"not ready after {timeout:.0f} s: {', '.join(late)}",
        why=f"the log is {files.log(late[0] if late else SUPERVISOR)}",
        fix="headgate local logs; give more time with --timeout",
    )


def down(home: Path, timeout: float = DOWN_SECONDS) -> bool:
    """Stop everything, engine first, broker last, data kept; whether anything ran."""
    if not home.is_dir():
        return False
    files = LocalFiles(home)
    with files.asking():  # an `up` that is under way has started its supervisor by then
        return _stop_supervisor(files, timeout)


def _stop_supervisor(files: LocalFiles, timeout: float) -> bool:
    pid = files.supervisor_pid()
    if pid is not None:
        os.kill(pid, signal.SIGTERM)
        if not wait_until(lambda: files.supervisor_pid() != pid, timeout):
            # Its children die with it: the kernel ends them.
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: files.supervisor_pid() != pid, 10.0)
        _reap(pid)
    if files.supervisor_pid() is None:
        files.remove_traces()
    return pid is not None


def _reap(pid: int) -> None:
    """Collect the supervisor when it is a child of this very process."""
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        wait_until(lambda: not alive(pid), 10.0)


def has_embedded_tables(settings: Settings) -> bool:
    """Whether the tables stand under the home, so that they go with it."""
    warehouse = Path(settings.warehouse.removeprefix("file:"))
    return settings.storage == "local" and warehouse.is_relative_to(settings.home)


def embedded_data(settings: Settings) -> tuple[Path, ...]:
    """The files and folders that `remove_data` would remove.

    Where the tables are elsewhere, on another disk or in object storage, they stay; so do the
    ledger, the catalog and the certificates, without which nobody could account for them.
    """
    patterns = (*SERVICE_DATA, *(TABLE_DATA if has_embedded_tables(settings) else ()))
    return tuple(sorted({path for pattern in patterns for path in settings.home.glob(pattern)}))


def remove_data(settings: Settings) -> tuple[Path, ...]:
    """Remove the embedded data of a home whose services are stopped; what was removed."""
    if LocalFiles(settings.home).supervisor_pid() is not None:
        raise UsageError("the local services still run", fix="headgate local down")
    found = embedded_data(settings)
    for path in found:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    return found


def status(settings: Settings) -> tuple[ServiceState, ...]:
    """Every service that belongs here, running or not."""
    files = LocalFiles(settings.home)
    state = files.read_state() if files.supervisor_pid() is not None else None
    names = dict.fromkeys([*wanted_services(settings), *_known(state)])
    stopped = {n: ServiceState(service=n, state=Phase.STOPPED) for n in names}
    return tuple(_as_it_is(state.service(n) if state else None) or stopped[n] for n in names)


def _as_it_is(service: ServiceState | None) -> ServiceState | None:
    """A supervisor on a full disk cannot write that a child of its has died."""
    if service is None or service.pid is None or alive(service.pid):
        return service
    return service.model_copy(update={"state": Phase.RESTARTING, "pid": None})


def _known(state: LocalState | None) -> tuple[str, ...]:
    return tuple(s.service for s in state.services) if state else ()


def _make_home(settings: Settings) -> None:
    """A home for its owner alone; a folder that a person named and made keeps its rights."""
    home = settings.home
    try:
        home.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        if settings.origin("home") == "default" and home.stat().st_uid == os.geteuid():
            home.chmod(PRIVATE_FOLDER)
    except OSError as error:
        raise UnavailableError(
            "the home of the local services cannot be made",
            why=f"{home}: {error.strerror}",
            fix="set HEADGATE_HOME to a folder that can be written",
        ) from error


def _need_disk(home: Path) -> None:
    free = shutil.disk_usage(home).free
    if free < DISK_NEEDED:
        raise UnavailableError(
            "the disk is almost full",
            why=f"{free // 1_000_000} MB are free at {home}, {DISK_NEEDED // 1_000_000} are needed",
            fix="free some space, or set HEADGATE_HOME to another disk",
        )


def _fetch(services: Sequence[str], root: Path) -> None:
    """Java and the jars are found before anything starts, where a person sees the progress."""
    find_java()
    fetch_extra(services, root)
    for name, needed in ((BROKER, "kafka"), (ENGINE, "spark")):
        if name in services:
            bundle(needed)


def _note_ready(settings: Settings) -> None:
    """Validation counts the jobs started since the last `up`."""
    from headgate.core.ledger.ops_store import OpsStore

    with OpsStore.open(settings.ops_store_url) as store:
        store.note_services_ready()
