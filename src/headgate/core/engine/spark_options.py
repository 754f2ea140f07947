"""Spark's options from the settings: the one place that builds them, for sessions and for written files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from headgate.config.settings import Settings
from headgate.core.runtime.java_build import EXTENSION
from headgate.errors import SettingsError

_CONNECTORS = {
    "minio": "hadoop-aws",
    "aws_s3": "hadoop-aws",
    "gcs": "gcs-connector",
    "azure": "hadoop-azure",
}
EMBEDDED_FIX = (
    "Write STORAGE=local, or: headgate config select env/embedded.env, which works as it is"
)
ICEBERG = "org.apache.iceberg.spark"
_SPLIT = re.compile(r"[\s'\"\\]")
# JSON may be nested a thousand deep, and Spark writes a VARIANT out by recursion. With a stack of
# 1 MB one such record ended the JVM.
STACK_OPTION = "-Xss4m"
STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def driver_options(settings: Settings) -> dict[str, str]:
    """How the JVMs start; the driver listens on this machine only."""
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": settings.spark_driver_memory,
        "spark.driver.extraJavaOptions": STACK_OPTION,
        "spark.executor.extraJavaOptions": STACK_OPTION,
        "spark.ui.showConsoleProgress": "false",
    }


def sql_options(settings: Settings) -> dict[str, str]:
    """How SQL behaves, the same in the engine and in a plain `spark-sql`."""
    return {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.caseSensitive": "true",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.shuffle.partitions": str(cores(settings)),
        # Beyond this many bytes of code the JIT gives up, and wide projections fall off a cliff.
        "spark.sql.codegen.hugeMethodLimit": "8000",
        # The default of 100 is fewer than the classes of one batch: each would compile all anew.
        "spark.sql.codegen.cache.maxEntries": "2000",
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
        "spark.sql.extensions": f"{ICEBERG}.extensions.IcebergSparkSessionExtensions,{EXTENSION}",
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
    """How Hadoop's file systems reach the warehouse; local files need nothing."""
    return _STORAGES[settings.storage](settings)


def check_bundled(settings: Settings) -> None:
    """Refuse a storage whose connector is not among the jars we bring."""
    if lacking := lacking_connector(settings.storage):
        raise SettingsError(f"STORAGE={settings.storage} {lacking}", fix=EMBEDDED_FIX)


def lacking_connector(storage: str) -> str:
    """What this installation lacks for a storage, as the end of a sentence; empty for local files."""
    if storage not in _CONNECTORS:
        return ""
    return f"needs Hadoop's connector {_CONNECTORS[storage]}, which this version does not bring"


def _s3(settings: Settings) -> dict[str, str]:
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


def _gcs(_: Settings) -> dict[str, str]:
    return {
        "spark.hadoop.fs.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
        "spark.hadoop.fs.gs.auth.type": "APPLICATION_DEFAULT",
    }


def _azure(_: Settings) -> dict[str, str]:
    identity = "org.apache.hadoop.fs.azurebfs.oauth2.MsiTokenProvider"
    return {
        "spark.hadoop.fs.azure.account.auth.type": "OAuth",
        "spark.hadoop.fs.azure.account.oauth.provider.type": identity,
    }


_STORAGES: dict[str, Callable[[Settings], dict[str, str]]] = {
    "local": lambda _: {},
    "minio": _s3,
    "aws_s3": _s3,
    "gcs": _gcs,
    "azure": _azure,
}


def jar_options(settings: Settings, jars: Sequence[Path]) -> dict[str, str]:
    """Local drivers read the jars where they are; executors elsewhere are sent them."""
    if settings.spark_master.startswith("local"):
        return {"spark.driver.extraClassPath": os.pathsep.join(map(str, jars))}
    return {"spark.jars": ",".join(map(str, jars))}


def quote_java_options(*options: str) -> str:
    """The options of a JVM as one text that Spark's launcher splits into the same options again.

    Paths have blanks where a folder's name has one; the launcher splits at blanks outside of quotes.
    """
    return " ".join(map(_quoted, options))


def _quoted(option: str) -> str:
    if not _SPLIT.search(option):
        return option
    return '"' + option.replace("\\", r"\\").replace('"', r"\"") + '"'
