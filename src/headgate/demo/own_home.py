"""A home and an environment that belong to one command: emptied first, locked, every service stopped on failure."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from headgate.config.env_files import PRIVATE_FOLDER
from headgate.errors import ConflictError, HeadgateError
from headgate.terminal.console import console

# An engine that lives for a minute earns nothing by compiling its code a second time.
# The quick compiler's code needs more room than the JVM gives it then.
SHORT_LIVED = {"SPARK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=128m"}
# What says how much of this machine the command may use; everything else is its own.
KNOBS = frozenset({"SPARK_MASTER", "SPARK_DRIVER_MEMORY", "SPARK_JAVA_OPTIONS"})
PORTS = frozenset(
    {
        *("KAFKA_PORT", "CONNECT_PORT", "SPARK_UI_PORT", "METRICS_PORT", "JDBC_PORT"),
        *("CASSANDRA_PORT", "KAFKA_CONNECT_PORT", "SCHEMA_REGISTRY_PORT"),
    }
)
ANNOUNCED = frozenset(
    {
        *("BOOTSTRAP_SERVERS", "CONNECT_URL", "CONNECT_TOKEN", "SPARK_UI_URL", "METRICS_URL"),
        *("CASSANDRA_CONTACT_POINTS", "CASSANDRA_LOCAL_DC"),
        *("KAFKA_CONNECT_URL", "KAFKA_CONNECT_METRICS_URL", "SCHEMA_REGISTRY_URL"),
    }
)


def embedded_environment(root: Path, home: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The shipped embedded profile in a home of its own, over whatever is chosen here."""
    from headgate.config.env_files import ACTIVE, DEFAULT_PROFILE, read_profile
    from headgate.config.schema import NAMES

    ours = frozenset(NAMES.values()) - KNOBS - PORTS
    chosen = read_profile(root / ACTIVE, ACTIVE).entries
    # An empty value means the default; what running services announce must stay open.
    blank = {name: "" for name in chosen if name in ours - ANNOUNCED}
    shipped = read_profile(root / DEFAULT_PROFILE, DEFAULT_PROFILE).entries
    profile = {n: e.value for n, e in shipped.items() if n not in KNOBS or n not in environ}
    kept = {name: value for name, value in environ.items() if name not in ours}
    return {**kept, **blank, **profile, "HEADGATE_HOME": str(home)}


@contextmanager
def replaced(environ: Mapping[str, str]) -> Generator[None]:
    """This process and the children it starts see these variables and no others."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def alone(home: Path) -> Generator[None]:
    """One demo at a time: a second would empty the folder under the first."""
    import fcntl

    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_name(f"{home.name}.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConflictError(
                f"another command is using {home}",
                why="it would be emptied under it",
                fix="wait for that one to end",
            ) from None
        yield


def emptied(home: Path) -> None:
    """Stop what an earlier, killed command left running here, and remove all it wrote."""
    from headgate.local.stack import down

    down(home)
    if home.exists():
        shutil.rmtree(home)
    home.mkdir(mode=PRIVATE_FOLDER, parents=True)
    (home / "data").mkdir()


@contextmanager
def stopped_on_failure(home: Path) -> Generator[None]:
    """Ctrl-C, a termination or any error stops the services before it goes on its way."""
    from headgate.local.stack import down

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except BaseException as error:
        console.say("  stopping broker and engine …")
        down(home)
        if isinstance(error, HeadgateError) and error.fix.startswith("headgate "):
            # Alone the command would speak of the services of the project, not of these.
            error.fix = f"export HEADGATE_HOME={shlex.quote(str(home))}; {error.fix}"
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
