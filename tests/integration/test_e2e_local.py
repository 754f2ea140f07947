"""The path of a newcomer, command by command, in a project folder of its own.

Phase 1 chooses a profile, 2 loads the settings, 3 compiles the SQL, 4 (slow) runs the whole stack.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.fixtures.make_parquet import ROWS, make

from headgate.config.schema import NAMES
from headgate.config.settings import load_settings
from headgate.local import stack

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("datasets", "dbt", "env", "schemas", "scripts", "spark")
PORTS = ("KAFKA_PORT", "CONNECT_PORT", "SPARK_UI_PORT", "METRICS_PORT")
FREE_PORTS = dict.fromkeys(PORTS, "0")
COMMAND_SECONDS = 300


@dataclass(frozen=True)
class Project:
    """A project folder as a clone has it, with the fixture as its data."""

    root: Path

    def headgate(self, *words: str) -> dict[str, object]:
        """Run a command as a process; its data."""
        done = self.run("-m", "headgate.cli.main", "-o", "json", *words)
        assert done.returncode == 0, f"headgate {' '.join(words)}: {done.stderr}"
        return json.loads(done.stdout) if done.stdout.strip() else {}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *words],
            cwd=self.root,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )

    @property
    def environ(self) -> Mapping[str, str]:
        inherited = {k: v for k, v in os.environ.items() if k not in NAMES.values()}
        data = {"HOST_DATA_DIR": str(self.root / "data"), "DATA_PATH": "/data/fixture.parquet"}
        return {**inherited, **FREE_PORTS, **data}


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Project]:
    for part in PARTS:
        (tmp_path / part).symlink_to(ROOT / part)
    (tmp_path / "data").mkdir()
    make(tmp_path / "data" / "fixture.parquet")
    yield Project(tmp_path)
    stack.down(tmp_path / ".headgate")


def test_phase_1_a_profile_becomes_the_active_one(clone: Project) -> None:
    clone.headgate("config", "select", "env/embedded.env")
    assert (clone.root / ".env").read_bytes() == (ROOT / "env" / "embedded.env").read_bytes()


def test_phase_2_the_settings_load_and_find_the_file(clone: Project) -> None:
    clone.headgate("config", "select", "env/embedded.env")
    settings = load_settings(clone.root, clone.environ)
    assert (settings.broker, settings.catalog, settings.storage) == ("embedded", "jdbc", "local")
    assert settings.data_file == clone.root / "data" / "fixture.parquet"
    clone.headgate("config", "check")


def test_phase_3_the_dataset_is_compiled_to_sql_without_a_placeholder(clone: Project) -> None:
    clone.headgate("dataset", "build")
    files = sorted((clone.root / "build" / "sql").rglob("*.sql"))
    assert {"05_bronze_batch.sql", "06_silver.sql", "07_bronze_streaming.sql"} <= {
        file.name for file in files
    }
    assert not [file for file in files if "${" in file.read_text("utf-8")]


@pytest.mark.slow
def test_phase_4_the_fixture_goes_from_parquet_to_certified_marts(clone: Project) -> None:
    clone.headgate("local", "up")
    clone.headgate("topics", "create")
    assert clone.headgate("feed", "generate")["events"] == ROWS
    assert clone.headgate("job", "run", "bronze")["records"] == ROWS
    assert clone.headgate("job", "run", "silver")["records"] == ROWS
    clone.headgate("lake", "wait", "--min-rows", str(ROWS))
    assert clone.headgate("dbt", "build")["failed"] == 0
    checks = clone.headgate("validate")["checks"]
    assert isinstance(checks, list)
    assert {check["verdict"] for check in checks} == {"PASS"}
    assert clone.headgate("certify", "--out", "certificate.json")["holds"] is True
    script = clone.run("scripts/recheck_certificate.py", "certificate.json")
    assert script.returncode == 0, script.stdout
    clone.headgate("local", "down")
    services_now = clone.headgate("local", "status")["items"]
    assert isinstance(services_now, list)
    assert {service["state"] for service in services_now} == {"stopped"}


@pytest.mark.slow
def test_the_demo_of_another_dataset_ends_in_a_certificate_too(clone: Project) -> None:
    report = clone.headgate("demo", "--dataset", "orders", "--rows", "2000")
    flow = report["flow"]
    assert isinstance(flow, dict)
    assert (flow["rows"], flow["produced"], flow["topic"]) == (2_000, 2_000, "orders.raw_orders")
    planted = {f"planted_{name}": flow[name] for name in ("duplicates", "filtered")}
    assert planted.items() <= flow.items()
    assert flow["dead_letters"] == flow["planted_bad"]
    assert set(flow["marts"]) == {"stg_orders"}
    assert int(str(report["statements_rechecked"])) > 15
    assert Path(str(report["certificate"])).is_file()
