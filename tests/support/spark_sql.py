"""Statements run by the `spark-sql` of the PySpark wheel."""

from __future__ import annotations

import os
import subprocess
from importlib.util import find_spec
from pathlib import Path

from tests.support.pipeline import JVM

from headgate.config.settings import Settings
from headgate.core.runtime.java import find_java


def run_spark_sql(settings: Settings, statements: str, folder: Path) -> str:
    """Run statements in a `spark-sql` process under these settings; its standard output."""
    package = find_spec("pyspark")
    assert package
    assert package.origin
    home = Path(package.origin).parent
    script = folder / "by_hand.sql"
    script.write_text(statements)
    conf = settings.build_dir / "conf" / "spark-defaults.conf"
    done = subprocess.run(
        [str(home / "bin" / "spark-sql"), "--properties-file", str(conf), "-f", str(script)],
        env={
            **os.environ,
            "SPARK_HOME": str(home),
            "JAVA_HOME": str(find_java().home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_SUBMIT_OPTS": str(JVM["spark_java_options"]),
        },
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    # A statement that fails in a sourced file ends that file, but not spark-sql.
    failed = done.returncode != 0 or "SQLSTATE" in done.stderr
    assert not failed, strip_stack_traces(done.stdout + done.stderr)
    return done.stdout


def strip_stack_traces(said: str) -> str:
    return "\n".join(line for line in said.splitlines() if "\tat " not in line)
