"""JDBC for tools that speak nothing else: Spark's Thrift server inside the engine, if asked for.

It asks for no password, so it listens on this machine only and is off unless a port is set.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

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
