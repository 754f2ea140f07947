from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from headgate.cli.main import cli
from headgate.errors import DeclarationError
from headgate.filters.cli.local import load_compiled
from headgate.filters.loader import filter_files

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def here(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "schemas", project / "schemas")
    monkeypatch.chdir(project)


def run(*words: str) -> str:
    done = CliRunner().invoke(cli, list(words), catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_the_shipped_filters_have_no_faults_and_no_findings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    found = json.loads(run("-o", "json", "filters", "check", "--strict"))
    assert found["filters"] == [path.stem for path in filter_files(ROOT)]
    assert found["passed"]


def test_compiled_filters_are_printed_as_spark_or_flink_sql(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    spark = run("filters", "compile", "service-by-dealer-002")
    assert "`header_data.dealerId` = 'DEALER-002';" in spark
    assert "${" not in spark
    flink = run("filters", "compile", "service-by-dealer-002", "--flink")
    assert flink.startswith("-- Sink Table\nCREATE TABLE `filtered-service-events-dealer-002` (")


def test_s3_19_compiled_filters_are_kept_among_the_built_files(project: Path) -> None:
    printed = run("filters", "compile", "service-by-dealer-001")
    run("filters", "compile", "service-by-dealer-001", "--write")
    kept = project / "build/sql/filters/service-by-dealer-001.sql"
    assert kept.read_text("utf-8").rstrip() == printed.rstrip()


def test_a_fault_that_only_compiling_finds_has_its_line_too(tmp_path: Path) -> None:
    document = json.loads(filter_files(ROOT)[0].read_text())
    document["conditions"][1] = {"field": "id", "operator": "matches", "value": "(?=a)"}
    file = tmp_path / "filter.json"
    file.write_text(json.dumps(document, indent=1))
    with pytest.raises(DeclarationError) as raised:
        load_compiled(file)
    (fault,) = raised.value.faults
    assert fault.field == "/conditions/1/value"
    assert fault.line == file.read_text().splitlines().index('   "value": "(?=a)"') + 1


def test_a_file_that_does_not_bear_its_filters_id_is_told(project: Path) -> None:
    folder = project / "schemas/v1/filters"
    (folder / "service-by-dealer-003.json").rename(folder / "other.json")
    done = CliRunner().invoke(cli, ["filters", "check"])
    assert isinstance(done.exception, DeclarationError)
    assert [fault.field for fault in done.exception.faults] == ["/id"]
