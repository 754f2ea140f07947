"""strict_json outside of the engine's session: over Spark Connect, in spark-sql, on a standalone cluster."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from tests.support.pipeline import JVM, ROOT
from tests.support.spark_sql import run_spark_sql
from tests.support.strict_json import render_call

from headgate.config.settings import Settings
from headgate.core.runtime.java import find_java
from headgate.core.runtime.java_build import session_jars, spark_jars
from headgate.core.runtime.ports import any_port
from headgate.local.process import Child, Command, port_answers, wait_until
from headgate.pipeline.build import plan_build, write_build

# Every tenth of 10,000 records is no JSON.
RECORDS = "SELECT CAST(IF(id % 10 = 0, 'x', to_json(struct(id))) AS BINARY) AS value FROM range(0, 10000, 1, 4)"
QUERY = (
    "SELECT record._reason_code AS code, count(*) AS n, max(record.id) AS id"
    f" FROM (SELECT {render_call('id BIGINT', {'drift': 'refuse'})} AS record FROM ({RECORDS}))"
    " GROUP BY 1 ORDER BY 1 NULLS FIRST"
)
OUTCOME = [[None, 9_000, 9_999], ["not_json", 1_000, None]]
# A driver of its own: the first argument is its master, the second its home, the third a port for Connect.
DRIVER = """
import json, sys, time
from pathlib import Path
from headgate.core.engine.session import ConnectServer, start_session, stop_session
from headgate.config.settings import Settings

master, home, port, query = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
settings = Settings(root=home, home=home, spark_master=master, spark_driver_memory="1g")
session = start_session(settings, ConnectServer(port, "token") if port else None)
if port:
    print("ready", flush=True)
    sys.stdin.readline()
else:
    context, end = session.sparkContext._jsc.sc(), time.monotonic() + 120
    while (executors := context.getExecutorMemoryStatus().size() - 1) < 2 and time.monotonic() < end:
        time.sleep(0.1)
    rows = [list(row) for row in session.sql(query).collect()]
    print(json.dumps({"rows": rows, "executors": executors}), flush=True)
stop_session(session)
"""
CLIENT = """
import json, sys
from pathlib import Path
from headgate.core.engine.connect import connect
from headgate.config.settings import Settings

home = Path(sys.argv[1])
settings = Settings(root=home, home=home, connect_url=f"sc://localhost:{sys.argv[2]}", connect_token="token")
with connect(settings) as session:
    print(json.dumps([list(row) for row in session.sql(sys.argv[3]).collect()]))
    try:
        session.sql("SELECT strict_json(X'7B7D', 'a INT', map('drfit', 'x'))").collect()
    except Exception as error:
        print(type(error).__name__, str(error))
"""


def run_python(script: str, *arguments: object) -> list[str]:
    """The lines that a script prints in a Python process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def test_in_spark_sql_with_the_rendered_properties_file(tmp_path: Path) -> None:
    session_jars()
    for folder in ("datasets", "spark"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    settings = Settings(root=tmp_path, home=tmp_path, topic="t", dlq_topic="d", **JVM)
    write_build(plan_build(settings, "taxi"))
    shown = run_spark_sql(settings, f"{QUERY};", tmp_path)
    assert shown.splitlines()[-2:] == ["NULL\t9000\t9999", "not_json\t1000\tNULL"]


def test_over_spark_connect(tmp_path: Path) -> None:
    port = any_port()
    command = [sys.executable, "-c", DRIVER, "local[2]", str(tmp_path), str(port), ""]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as driver:
        assert driver.stdin is not None
        assert driver.stdout is not None
        assert driver.stdout.readline() == "ready\n"
        rows, error = run_python(CLIENT, tmp_path, port, QUERY)[:2]
        driver.stdin.close()
        driver.wait(60)
    assert json.loads(rows) == OUTCOME
    assert error.startswith("AnalysisException")
    assert "there is no option 'drfit'; the options are casts" in error


@contextmanager
def start_daemon(folder: Path, name: str, *arguments: str) -> Iterator[Child]:
    """A daemon of Spark's standalone cluster; the PySpark wheel has no scripts that start one."""
    home = spark_jars()[0].parents[1]
    options = {
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(find_java().home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
    }
    daemon = Child(
        Command(
            (str(home / "bin/spark-class"), f"org.apache.spark.deploy.{name}", *arguments),
            folder / f"{Path(arguments[-1]).name}.log",
            folder,
            {**os.environ, **options},
        )
    )
    try:
        yield daemon
    finally:
        daemon.kill()


@pytest.mark.slow
def test_on_a_standalone_cluster_with_two_workers(tmp_path: Path) -> None:
    port = any_port()
    master = f"spark://127.0.0.1:{port}"

    def start_worker(name: str) -> AbstractContextManager[Child]:
        size = ("--cores", "1", "--memory", "1g", "--webui-port", "0", "--host", "127.0.0.1")
        return start_daemon(
            tmp_path, "worker.Worker", *size, master, "--work-dir", str(tmp_path / name)
        )

    with start_daemon(
        tmp_path,
        "master.Master",
        *("--host", "127.0.0.1", "--port", str(port), "--webui-port", str(any_port())),
    ):
        assert wait_until(lambda: port_answers(port), 60)
        with start_worker("first"), start_worker("second"):
            (line,) = run_python(DRIVER, master, tmp_path, 0, QUERY)
    assert json.loads(line) == {"rows": OUTCOME, "executors": 2}
