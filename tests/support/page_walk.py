"""The commands of a documentation page, run by bash as they stand and answered by this process.

Bash runs the page's blocks in a copy of the project, so loops, pipes and substitutions are the page's
own. In that copy `.venv/bin/headgate` sends its arguments, environment and standard streams to the
test over a socket, and the test runs the command line on the session's broker and Spark:

    bash ── .venv/bin/headgate ── socket ── PageWalk ── headgate.cli.main ── Controller on the session's Spark

A command that goes on in the background is started as a process of its own.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Generator, Mapping, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

from tests.support.project_clone import ProjectClone, Step, render_script
from tests.support.services import RunningBroker

from headgate.cli import main as command_line
from headgate.config.settings import Settings, load_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS = 240.0
LENGTH_BYTES = 4
# What a page starts with `&`.
BACKGROUND = (("serve",), ("filters", "consumer"), ("reconcile", "hasher"))
FORWARDER = """\
#!{python} -IS
import json, os, socket, sys
arguments = sys.argv[1:]
if any(arguments[: len(each)] == each for each in {background!r}):
    os.execv({command!r}, [{command!r}, *arguments])
request = json.dumps([arguments, dict(os.environ), os.getcwd()]).encode()
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect({address!r})
    socket.send_fds(connection, [len(request).to_bytes({length}, "big")], [1, 2])
    connection.sendall(request)
    sys.exit(connection.recv(1)[0])
"""


@dataclass(frozen=True)
class PageWalk:
    """A copied project whose `headgate` commands this process answers, one after another."""

    clone: ProjectClone
    listener: socket.socket
    environ: Mapping[str, str]

    def run(self, steps: Sequence[Step], seconds: float = SECONDS) -> str:
        """Run all steps in one bash; its output. A command that fails fails the test.

        What the steps leave in the background is killed at the end.
        """
        screen = self.clone.root / "screen.txt"
        with screen.open("w") as output:
            bash = subprocess.Popen(
                ["bash", "-v", "-eu", "-o", "pipefail", "-c", render_script(steps)],
                cwd=self.clone.root,
                env=dict(self.environ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                process_group=0,
            )
            end = time.monotonic() + seconds
            try:
                while bash.poll() is None and time.monotonic() < end:
                    self._answer_next()
            finally:
                kill_group(bash)
        assert bash.returncode == 0, screen.read_text("utf-8")[-6000:]
        return screen.read_text("utf-8")

    def settings(self) -> Settings:
        """The settings that the page's commands have."""
        return load_settings(self.clone.root, self.environ)

    def _answer_next(self) -> None:
        try:
            connection, _ = self.listener.accept()
        except TimeoutError:
            return
        with connection:
            connection.settimeout(SECONDS)
            length, streams, _, _ = socket.recv_fds(connection, LENGTH_BYTES, 2)
            request = connection.recv(int.from_bytes(length, "big"), socket.MSG_WAITALL)
            with (
                os.fdopen(streams[0], "w", encoding="utf-8") as out,
                os.fdopen(streams[1], "w", encoding="utf-8") as err,
                redirect_stdout(out),
                redirect_stderr(err),
            ):
                code = run_command(*json.loads(request))
            connection.sendall(bytes([code]))


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """End a process and everything that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def run_command(arguments: list[str], environ: Mapping[str, str], folder: str) -> int:
    """Run the command line in this process under that environment and folder; its exit code."""
    with (
        patch.dict(os.environ, environ, clear=True),
        patch.object(sys, "argv", ["headgate", *arguments]),
        chdir(folder),
    ):
        try:
            command_line.main()
        except SystemExit as stop:
            return int(stop.code or 0)
        except Exception:  # as a process that ends with a trace
            traceback.print_exc()
            return 1
    return 0


@contextmanager
def open_page_walk(
    clone: ProjectClone, broker: RunningBroker, spark: SparkSession, **environ: str
) -> Generator[PageWalk]:
    """Let this process answer the `headgate` commands of a copied project, and be its engine.

    Topics that the commands create are deleted at the end: a page names them as other tests may.
    """
    outside = {"BROKER": "kafka", "BOOTSTRAP_SERVERS": broker.bootstrap}
    topics = broker.topics.names()
    try:
        with (
            answer_commands(clone, **outside, **environ) as walk,
            host_engine(spark, walk.settings()),
        ):
            yield walk
    finally:
        broker.topics.delete(set(broker.topics.names()) - set(topics))


@contextmanager
def answer_commands(clone: ProjectClone, **environ: str) -> Generator[PageWalk]:
    """Let this process answer the `headgate` commands of a copied project under these variables."""
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.socket(socket.AF_UNIX) as listener,
    ):
        address = str(Path(folder) / "commands")
        listener.bind(address)
        listener.listen()
        listener.settimeout(0.05)
        forward_commands(clone.root / ".venv", address)
        yield PageWalk(clone, listener, {**clone.environ, **environ})


def forward_commands(venv: Path, address: str) -> None:
    """Replace the copy's `headgate` by one that hands its commands to the socket at this address."""
    (venv / "bin").unlink()
    (venv / "bin").mkdir()
    for program in (Path(sys.prefix) / "bin").iterdir():
        if program.name != "headgate":
            (venv / "bin" / program.name).symlink_to(program)
    forwarder = venv / "bin" / "headgate"
    forwarder.write_text(
        FORWARDER.format(
            python=sys.executable,
            background=[list(each) for each in BACKGROUND],
            command=str(Path(sys.prefix) / "bin" / "headgate"),
            address=address,
            length=LENGTH_BYTES,
        )
    )
    forwarder.chmod(0o755)


def open_lake_session(spark: SparkSession, options: Mapping[str, str]) -> SparkSession:
    """A session of this JVM on another lake than the shared one, and so are all that are made of it."""
    session = spark.newSession()
    for name, value in options.items():
        if name.startswith("spark.sql.catalog."):  # the others hold for the whole JVM
            session.conf.set(name, value)
    # PySpark's own would have the options that the JVM was started with.
    session.newSession = partial(open_lake_session, spark, options)
    return session


def list_views(session: SparkSession) -> set[str]:
    """The permanent views, which all sessions of the JVM share."""
    rows = session.sql("SHOW VIEWS IN default").collect()
    return {row["viewName"] for row in rows if not row["isTemporary"]}


@contextmanager
def host_engine(spark: SparkSession, settings: Settings) -> Generator[SparkSession]:
    """Host the jobs of these settings on the session's Spark, with the settings' own lake.

    `headgate sql` queries the yielded session instead of Spark Connect. Views that the jobs create are
    dropped at the end.
    """
    from headgate.core.engine.controller import Controller, Driver
    from headgate.core.engine.job_kind import JOBS
    from headgate.core.engine.lease import EngineLease
    from headgate.core.engine.spark_options import catalog_options
    from headgate.core.ledger.ops_store import OpsStore

    session = open_lake_session(spark, catalog_options(settings))
    (settings.home / "logs").mkdir(parents=True, exist_ok=True)
    views = list_views(session)
    stop = threading.Event()

    @contextmanager
    def connect(_: Settings | None = None) -> Generator[SparkSession]:
        yield session

    with OpsStore.open(settings.ops_store_url) as store:
        lease = EngineLease.take(store)
        assert lease is not None
        driver = Driver.of(session, settings)
        controller = Controller(session, driver, store, lease, JOBS, lambda: settings)
        thread = threading.Thread(target=controller.run, args=(stop,), name="engine", daemon=True)
        with lease, patch("headgate.core.engine.connect.connect", connect):
            thread.start()
            try:
                yield session
            finally:
                stop.set()
                thread.join(SECONDS)
                for view in list_views(session) - views:
                    session.sql(f"DROP VIEW default.`{view}`")
