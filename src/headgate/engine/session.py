"""The Spark session: catalog, storage, scheduling and Connect, all from the settings."""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from headgate.engine.archive import archive_options, spark_archive
from headgate.engine.bundles import bundle, ivy_jar
from headgate.engine.java import find_java
from headgate.engine.spark_options import (
    catalog_options,
    check_bundled,
    driver_options,
    jar_options,
    quote_java_options,
    sql_options,
    storage_options,
)
from headgate.settings import Settings

JVM_STOP_SECONDS = 60
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
    builder = SparkSession.builder.appName("headgate").master(settings.spark_master)
    values = {
        **_driver(settings, ui_port),
        **sql_options(settings),
        **catalog_options(settings),
        **storage_options(settings),
        **jar_options(settings, bundle("spark")),
        **(_connect(connect) if connect else {}),
    }
    for name, value in values.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    # PySpark prints each failed statement with its JVM trace; the error itself says enough.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
    return session


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


def stop_session(session: SparkSession) -> None:
    """Stop the session and wait until its JVM is gone."""
    gateway: Any = SparkContext._gateway  # pyright: ignore[reportPrivateUsage]  # PySpark has no other way
    session.stop()
    process = getattr(gateway, "proc", None)
    if process is not None:
        gateway.shutdown()
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
