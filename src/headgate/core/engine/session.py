"""The Spark session of an engine: start and stop its JVM, serve Spark Connect and, if asked for, JDBC.

All options come from the settings, through a file that only its owner may read, because arguments are
visible to every user of the machine. JDBC has no password, so it listens on this machine only.
"""

from __future__ import annotations

import logging
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from headgate.config.settings import Settings
from headgate.core.engine.spark_options import (
    STACK_OPTION,
    catalog_options,
    check_bundled,
    driver_options,
    jar_options,
    quote_java_options,
    sql_options,
    storage_options,
)
from headgate.core.runtime.bundles import ivy_jar
from headgate.core.runtime.class_archive import archive_options, spark_archive
from headgate.core.runtime.java import find_java
from headgate.core.runtime.java_build import session_jars
from headgate.errors import SettingsError, UnavailableError

HOST = "127.0.0.1"


def serve_jdbc(session: SparkSession, port: int) -> str:
    """Serve until the session ends; the URL for clients. They see the engine's views and tables."""
    jvm: Any = session.sparkContext._jvm  # pyright: ignore[reportPrivateUsage]  # PySpark has no other way
    settings = {
        "hive.server2.thrift.bind.host": HOST,
        "hive.server2.thrift.port": str(port),
        "hive.server2.transport.mode": "binary",
        "hive.server2.authentication": "NONE",
    }
    for name, value in settings.items():
        jvm.java.lang.System.setProperty(name, value)
    server = jvm.org.apache.spark.sql.hive.thriftserver.HiveThriftServer2
    server.startWithSparkSession(session._jsparkSession, False)  # pyright: ignore[reportPrivateUsage]  # as above
    return f"jdbc:hive2://{HOST}:{port}/default"


JVM_STOP_SECONDS = 60
# What Spark says of a master URL that it cannot read.
WRONG_MASTER = ("Could not parse Master URL", "Master must either be", "Invalid master URL")
_SUBMIT_ARGS = "PYSPARK_SUBMIT_ARGS"
LOG_CONFIG = Path(__file__).with_name("log4j2.properties")
# They would make a client of another driver of this one.
_FOREIGN = ("SPARK_REMOTE", "SPARK_API_MODE", "SPARK_CONNECT_MODE_ENABLED")


@dataclass(frozen=True)
class ConnectServer:
    """Where this driver serves Spark Connect, and the token that clients must bring."""

    port: int
    token: str


def start_session(
    settings: Settings, connect: ConnectServer | None = None, ui_port: int | None = None
) -> SparkSession:
    """The driver's session; the JVM is started with it."""
    check_bundled(settings)
    os.environ["JAVA_HOME"] = str(find_java().home)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    for name in _FOREIGN:
        os.environ.pop(name, None)
    # Another Spark's jars must not be taken, and Spark's own search for its home breaks off at a
    # blank in the path of this Python.
    os.environ["SPARK_HOME"] = str(ivy_jar().parent.parent)
    values = {
        "spark.app.name": "headgate",
        "spark.master": settings.spark_master,
        **_driver(settings, ui_port),
        **sql_options(settings),
        **catalog_options(settings),
        **storage_options(settings),
        **jar_options(settings, session_jars()),
        **(_connect(connect) if connect else {}),
    }
    with _submitted_by_file(settings.home / "scratch", values):
        try:
            session = SparkSession.builder.getOrCreate()
        except Exception as error:  # PySpark raises its own, py4j's and plain RuntimeErrors here
            raise _start_failure(settings, error) from error
    # PySpark prints each failed statement with its JVM trace; the error itself says enough.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
    # py4j prints a trace for every call into a JVM that is gone; the error itself is raised.
    # A call cut off while it is under way is logged by the root logger, not by py4j's own.
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_is_not_from_py4j)
    return session


def _is_not_from_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


@contextmanager
def _submitted_by_file(folder: Path, values: Mapping[str, str]) -> Generator[None]:
    """Let PySpark start its JVM with these options from a file that only its owner may read.

    PySpark passes a builder's options as arguments, and every user of the machine can read those
    with `ps`: the token of Spark Connect and the keys of object storage would be among them.
    """
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix="spark-", suffix=".conf") as file:
        file.writelines(f"{name}={_escape(value)}\n" for name, value in values.items())
        file.flush()
        before = os.environ.get(_SUBMIT_ARGS)
        os.environ[_SUBMIT_ARGS] = f"--properties-file {shlex.quote(file.name)} pyspark-shell"
        try:
            yield
        finally:
            os.environ.pop(_SUBMIT_ARGS)
            if before is not None:
                os.environ[_SUBMIT_ARGS] = before


def _escape(value: str) -> str:
    """A value as a Java properties file holds it."""
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def _start_failure(settings: Settings, error: Exception) -> SettingsError | UnavailableError:
    """Why Spark did not start, as an error of ours."""
    text = str(error)
    causes = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line.removeprefix(": ") for line in causes if "Exception: " in line]
    why = (named or causes or [repr(error)])[0][:500]
    log = settings.home / "logs" / "spark.log"
    if any(sign in text for sign in WRONG_MASTER):
        return SettingsError(
            f"Spark does not know the master SPARK_MASTER={settings.spark_master}",
            why=why,
            fix="write SPARK_MASTER=local[*], spark://HOST:PORT, yarn or k8s://URL",
        )
    return UnavailableError(
        f"Spark did not start (SPARK_MASTER={settings.spark_master})",
        why=why,
        fix=f"read {log}; check SPARK_MASTER, SPARK_DRIVER_MEMORY and SPARK_JAVA_OPTIONS",
    )


def _driver(settings: Settings, ui_port: int | None) -> dict[str, str]:
    logs = settings.home / "logs"
    scratch = settings.home / "scratch"
    for folder in (logs, scratch):
        folder.mkdir(parents=True, exist_ok=True)
    own_options = quote_java_options(
        f"-Dlog4j2.configurationFile={LOG_CONFIG}",
        f"-Dheadgate.log={logs / 'spark.log'}",
        f"-Dderby.system.home={scratch}",
        "-XX:+UseSerialGC",
        STACK_OPTION,
        # A JVM that is out of memory works no more: it must end, so that the engine notices.
        "-XX:+ExitOnOutOfMemoryError",
        f"-Djava.io.tmpdir={scratch}",
        *_archive_options(settings),
    )
    return {
        **driver_options(settings),
        "spark.driver.extraJavaOptions": f"{own_options} {settings.spark_java_options}",
        "spark.local.dir": str(scratch),
        "spark.scheduler.mode": "FAIR",
        "spark.ui.enabled": "false" if ui_port is None else "true",
        **({} if ui_port is None else {"spark.ui.port": str(ui_port)}),
        "spark.sql.warehouse.dir": str(scratch / "spark-warehouse"),
    }


def _archive_options(settings: Settings) -> tuple[str, ...]:
    training = "ArchiveClassesAtExit" in settings.spark_java_options
    local = settings.spark_master.startswith("local")
    return archive_options(spark_archive()) if local and not training else ()


def gateway_process() -> subprocess.Popen[bytes] | None:
    """The process of the driver's JVM; None when this process did not start it."""
    gateway: Any = SparkContext._gateway  # pyright: ignore[reportPrivateUsage]  # PySpark has no other way
    return getattr(gateway, "proc", None)


def stop_session(session: SparkSession) -> None:
    """Stop the session and wait until its JVM is gone; one that is gone already is let go."""
    gateway: Any = SparkContext._gateway  # pyright: ignore[reportPrivateUsage]  # PySpark has no other way
    process = gateway_process()
    if process is None:
        session.stop()
        return
    if process.poll() is None:
        session.stop()
        gateway.shutdown()
    else:
        # Every call into a dead JVM raises; PySpark must forget it all the same.
        for close in (session.stop, gateway.shutdown):
            with suppress(Exception):
                close()
        SparkContext._active_spark_context = None  # pyright: ignore[reportPrivateUsage]  # as above
        SparkSession._instantiatedSession = None  # pyright: ignore[reportPrivateUsage]  # as above
    if process.stdin is not None:
        with suppress(OSError):  # the pipe to a dead process
            process.stdin.close()
    process.wait(JVM_STOP_SECONDS)
    SparkContext._gateway = SparkContext._jvm = None  # pyright: ignore[reportPrivateUsage]  # as above


def _connect(server: ConnectServer) -> dict[str, str]:
    return {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(server.port),
        "spark.connect.authenticate.token": server.token,
    }
