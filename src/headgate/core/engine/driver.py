"""The Spark driver's JVM, watched by the process that started it."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from headgate.config.settings import Settings
from headgate.core.lake.jvm import context_runs
from headgate.errors import DriverLostError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# With which -XX:+ExitOnOutOfMemoryError ends a JVM.
OUT_OF_MEMORY = 3
# Sockets of a killed process close before its parent can reap it.
REAP_SECONDS = 2.0


class Driver:
    """Tells whether the JVM still works for this process, and in words why it does not.

    It is lost for good once its process has ended, or once a call into it has failed because its
    gateway or its SparkContext is closed.
    """

    def __init__(
        self, process: subprocess.Popen[bytes] | None, answers: Callable[[], bool], heap: str
    ) -> None:
        self._process = process
        self._answers = answers
        self._heap = heap
        self._silent = False

    @classmethod
    def of(cls, session: SparkSession, settings: Settings) -> Driver:
        """The driver of a session that was started in this process."""
        from headgate.core.engine.engine_session import gateway_process

        answers = partial(context_runs, session)
        return cls(gateway_process(), answers, settings.spark_driver_memory)

    def is_lost(self) -> bool:
        """Whether its process has ended or it was found silent before; makes no call into it."""
        return self._silent or (self._process is not None and self._process.poll() is not None)

    def has_failed(self) -> bool:
        """Whether it is lost, by calling into it: asked after any failure, which may be its own."""
        if self.is_lost():
            return True
        try:
            self._silent = not self._answers()
        except Exception:  # py4j raises its own errors and those of sockets
            self._silent = True
        if self._silent and self._process is not None:
            try:
                self._process.wait(REAP_SECONDS)
            except subprocess.TimeoutExpired:
                return True
        return self._silent

    def loss(self) -> DriverLostError:
        """Why it is lost, what that means, and what to do."""
        code = self._process.poll() if self._process is not None else None
        goes_on = "the next engine goes on with its jobs"
        if code is None:
            return DriverLostError(
                "the engine's Spark driver answers no more",
                why="its SparkContext was stopped or its gateway closed",
                fix=f"{goes_on}; logs/spark.log in HEADGATE_HOME may say why",
            )
        if code == OUT_OF_MEMORY:
            return DriverLostError(
                f"the engine's JVM ran out of memory (heap {self._heap})",
                why=f"SPARK_DRIVER_MEMORY is {self._heap}, and a job needed more",
                fix="raise SPARK_DRIVER_MEMORY and start the engine again, or lower"
                " MAX_OFFSETS_PER_BATCH",
            )
        if code < 0:
            return DriverLostError(
                f"the engine's JVM was killed by signal {-code}",
                why="the kernel does that when the machine runs out of memory"
                if -code == signal.SIGKILL
                else "it crashed, or somebody ended it",
                fix=f"{goes_on}; if it happens again, lower SPARK_DRIVER_MEMORY or free memory",
            )
        return DriverLostError(
            f"the engine's JVM ended with exit code {code}",
            why="nobody had asked it to",
            fix=f"{goes_on}; logs/engine.log in HEADGATE_HOME may say why",
        )
