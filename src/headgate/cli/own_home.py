"""A home that one command has for itself: emptied first, and nothing left running in it."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from headgate.cli.console import console
from headgate.errors import ConflictError


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
    from headgate.local.services import down

    down(home)
    if home.exists():
        shutil.rmtree(home)
    (home / "data").mkdir(parents=True)


@contextmanager
def stopped_on_failure(home: Path) -> Generator[None]:
    """Ctrl-C, a termination or any error stops the services before it goes on its way."""
    from headgate.local.services import down

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except BaseException:
        console.say("  stopping broker and engine …")
        down(home)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
