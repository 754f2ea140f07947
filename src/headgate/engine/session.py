"""The Spark session: catalog, storage, scheduling and Connect, all from the settings."""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from headgate.engine.bundles import bundle
from headgate.engine.java import find_java
from headgate.errors import SettingsError
from headgate.settings import Settings

LOG_CONFIG = Path(__file__).with_name("log4j2.properties")
ICEBERG = "org.apache.iceberg.spark"
STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@dataclass(frozen=True)
class ConnectServer:
    """Where this driver serves Spark Connect, and the token that clients must bring."""

    port: int
    token: str


def start_session(
    settings: Settings, connect: ConnectServer | None = None, ui_port: int | None = None
) -> SparkSession:
    """The driver's session; the JVM is started with it."""
    os.environ["JAVA_HOME"] = str(find_java().home)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # A SPARK_HOME of the machine would bring another Spark's jars.
    os.environ.pop("SPARK_HOME", None)
    builder = SparkSession.builder.appName("headgate").master(settings.spark_master)
    values = {
        **_driver(settings, ui_port),
        **_sql(settings),
        **catalog_options(settings),
        **storage_options(settings),
        **_jars(settings),
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
    java_options = (
        f"-Dlog4j2.configurationFile={LOG_CONFIG} -Dheadgate.log={logs / 'spark.log'}"
        f" -Dderby.system.home={scratch} -XX:+UseSerialGC"
        f" -Djava.io.tmpdir={scratch}"
    )
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": settings.spark_driver_memory,
        "spark.driver.extraJavaOptions": java_options,
        "spark.local.dir": str(scratch),
        "spark.scheduler.mode": "FAIR",
        "spark.ui.enabled": "false" if ui_port is None else "true",
        **({} if ui_port is None else {"spark.ui.port": str(ui_port)}),
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(scratch / "spark-warehouse"),
    }


def _sql(settings: Settings) -> dict[str, str]:
    return {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.caseSensitive": "true",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.shuffle.partitions": str(cores(settings)),
        # Beyond this many bytes of code the JIT gives up, and wide projections fall off a cliff.
        "spark.sql.codegen.hugeMethodLimit": "8000",
        "spark.sql.streaming.stateStore.providerClass": STATE_STORE,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.stopTimeout": "60s",
    }


def cores(settings: Settings) -> int:
    """How many tasks run at once: what local[N] says, else this machine's cores."""
    inner = settings.spark_master.removeprefix("local[").removesuffix("]").split(",")[0]
    return int(inner) if inner.isdigit() else os.cpu_count() or 2


def catalog_options(settings: Settings) -> dict[str, str]:
    """The catalog `lake`; nothing of it is cached, since others may write too."""
    prefix = "spark.sql.catalog.lake"
    options = {
        "spark.sql.extensions": f"{ICEBERG}.extensions.IcebergSparkSessionExtensions",
        prefix: f"{ICEBERG}.SparkCatalog",
        f"{prefix}.type": settings.catalog,
        f"{prefix}.warehouse": settings.warehouse,
        f"{prefix}.cache-enabled": "false",
    }
    if settings.catalog in ("jdbc", "rest"):
        options[f"{prefix}.uri"] = settings.catalog_uri or ""
    if settings.catalog == "jdbc":
        options[f"{prefix}.jdbc.schema-version"] = "V1"
    if (settings.catalog_uri or "").startswith("jdbc:sqlite:"):
        options[f"{prefix}.jdbc.busy_timeout"] = "30000"
        options[f"{prefix}.jdbc.journal_mode"] = "WAL"
    return options


def storage_options(settings: Settings) -> dict[str, str]:
    """S3A for MinIO and AWS; local files need nothing."""
    if settings.storage in ("gcs", "azure"):
        raise SettingsError(
            f"STORAGE={settings.storage} needs its Hadoop connector, which is not bundled",
            fix="use STORAGE=local, minio or aws_s3",
        )
    if settings.storage == "local":
        return {}
    options = {
        "spark.hadoop.fs.s3a.path.style.access": str(settings.s3_path_style).lower(),
        "spark.hadoop.fs.s3a.connection.ssl.enabled": str(settings.s3_use_ssl).lower(),
        "spark.hadoop.fs.s3a.endpoint.region": settings.aws_region,
    }
    if settings.s3_endpoint:
        options["spark.hadoop.fs.s3a.endpoint"] = settings.s3_endpoint
    if settings.effective_s3_key and settings.effective_s3_secret:
        options["spark.hadoop.fs.s3a.access.key"] = settings.effective_s3_key
        options["spark.hadoop.fs.s3a.secret.key"] = settings.effective_s3_secret
    return options


def _jars(settings: Settings) -> dict[str, str]:
    jars = [str(jar) for jar in bundle("spark")]
    if settings.spark_master.startswith("local"):
        return {"spark.driver.extraClassPath": os.pathsep.join(jars)}
    return {"spark.jars": ",".join(jars)}


def _connect(server: ConnectServer) -> dict[str, str]:
    return {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(server.port),
        "spark.connect.authenticate.token": server.token,
    }
