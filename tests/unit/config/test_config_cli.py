"""`headgate config` as a person and a script see it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headgate.cli.config import reference_page
from headgate.cli.main import cli
from headgate.config.reference import MASK, InvalidSettingsError
from headgate.errors import SettingsError, UsageError

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def here(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(project)
    return project


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["config", *arguments])


def as_json(*arguments: str) -> dict[str, list[dict[str, str]]]:
    return json.loads(CliRunner().invoke(cli, ["-o", "json", "config", *arguments]).stdout)


def put_data(project: Path, name: str = "yellow_tripdata_2024-01.parquet") -> None:
    (project / "data").mkdir(exist_ok=True)
    (project / "data" / name).touch()


def faults(result: Result) -> dict[str, str]:
    assert isinstance(result.exception, InvalidSettingsError)
    return {fault.field: f"{fault.what}. {fault.fix}" for fault in result.exception.faults}


def edit(project: Path, text: str) -> None:
    (project / ".env").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("name", ["env/local.env", "local", "local.env"])
def test_select_copies_the_profile_and_prints_what_holds(project: Path, name: str) -> None:
    result = run("select", name)
    assert result.exit_code == 0
    assert (project / ".env").read_bytes() == (project / "env" / "local.env").read_bytes()
    assert "env/local.env is now .env" in result.stderr
    assert "redpanda" in result.stdout


def test_select_keeps_an_edited_profile(project: Path) -> None:
    edit(project, "TOPIC=mine\n")
    assert ".env.previous" in run("select", "embedded").stderr
    assert (project / ".env.previous").read_text() == "TOPIC=mine\n"


def test_select_of_a_faulty_profile_changes_nothing(project: Path) -> None:
    (project / "env" / "mine.env").write_text("STORAGE=minio\n")
    assert "MINIO_ROOT_USER" in faults(run("select", "mine"))
    assert not (project / ".env").exists()


def test_select_of_an_unknown_profile_lists_those_there_are() -> None:
    error = run("select", "locl").exception
    assert isinstance(error, SettingsError)
    assert "env/local_kafka.env" in error.why
    assert "headgate config select local" in error.fix


def test_show_says_where_a_value_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODE", "streaming_bronze")
    rows = {row["variable"]: row for row in as_json("show")["items"]}
    assert rows["MODE"]["value"] == "streaming_bronze"
    assert rows["MODE"]["origin"] == "environment"
    assert rows["TOPIC"]["origin"] == "profile env/embedded.env"
    assert rows["HTTP_TIMEOUT"]["origin"] == "default"


def test_show_masks_secrets(project: Path) -> None:
    run("select", "local")
    edit(project, (project / ".env").read_text().replace("=minioadmin", "=canary"))
    for options in ((), ("--brackets",)):
        shown = run("show", "MINIO_ROOT_PASSWORD", *options).stdout
        assert MASK in shown
        assert "canary" not in shown


def test_show_in_brackets_reveals_blanks(project: Path) -> None:
    edit(project, "TOPIC=a.topic  \nDATASET=  # none\n")
    shown = run("show", "--brackets", "topic", "dataset").stdout
    assert "[a.topic  ]" in shown
    assert "[  ]" in shown


def test_show_of_an_unknown_variable_suggests_one() -> None:
    error = run("show", "TOPIK").exception
    assert isinstance(error, UsageError)
    assert error.fix == "headgate config show TOPIC"


def test_check_passes_when_the_data_is_there(project: Path) -> None:
    put_data(project)
    result = run("check")
    assert result.exit_code == 0
    assert "BROKER=embedded, CATALOG=jdbc, STORAGE=local, MODE=batch" in result.stderr


def test_check_knows_the_datasets_there_are(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "datasets" / "orders").mkdir(parents=True)
    (project / "datasets" / "orders" / "dataset.yml").touch()
    put_data(project)
    monkeypatch.setenv("DATASET", "ordrs")
    found = faults(run("check"))
    assert "is ordrs, which is not declared" in found["DATASET"]
    assert "Did you mean `orders`?" in found["DATASET"]
    monkeypatch.setenv("DATASET", "orders")
    missing = faults(run("check"))
    assert set(missing) == {"DATA_PATH"}
    assert "or run: make sample DATASET=orders" in missing["DATA_PATH"]
    put_data(project, "orders.parquet")
    assert run("check").exit_code == 0


def test_check_names_both_variables_of_a_missing_file() -> None:
    words = faults(run("check"))["DATA_PATH"]
    assert "HOST_DATA_DIR=data" in words
    assert "DATA_PATH=/data/yellow_tripdata_2024-01.parquet" in words
    assert "point HOST_DATA_DIR at its folder" in words


def test_check_points_at_the_file_that_is_there(project: Path) -> None:
    put_data(project, "other.parquet")
    assert "Write DATA_PATH=/data/other.parquet" in faults(run("check"))["DATA_PATH"]


def test_check_lists_everything_at_once(project: Path) -> None:
    edit(project, "STORAGE=minio\nDATA_PATH=/data/none.parquet\nVALIDATE_SCHEMA=yes\nDLQ_MAX=-1\n")
    assert set(faults(run("check"))) == {
        *(
            "DLQ_MAX",
            "STORAGE",
            "S3_ENDPOINT",
            "MINIO_ROOT_USER",
            "MINIO_ROOT_PASSWORD",
            "SCHEMA_PATH",
        ),
        *("DATASET", "TOPIC", "DLQ_TOPIC", "DATA_PATH"),
    }


@pytest.mark.parametrize("profile", ["local", "local_kafka", "aws", "gcs", "azure"])
def test_check_refuses_what_nothing_here_can_serve(project: Path, profile: str) -> None:
    """Each of these profiles loads and shows, and the engine could not start with it."""
    put_data(project)
    assert run("select", profile).exit_code == 0
    assert run("show").exit_code == 0
    result = run("check")
    assert isinstance(result.exception, InvalidSettingsError)
    assert result.exception.exit_code == 3
    words = faults(result)["STORAGE"]
    assert "which this version does not bring" in words
    assert "headgate config select env/embedded.env" in words


def test_check_refuses_a_catalog_that_duckdb_cannot_read(project: Path) -> None:
    put_data(project)
    shipped = (project / "env" / "embedded.env").read_text()
    edit(project, f"{shipped}\nCATALOG_URI=jdbc:postgresql://h/catalog\n")
    assert "through which DuckDB" in faults(run("check"))["CATALOG_URI"]
    edit(project, f"{shipped}\nCATALOG_URI=jdbc:sqlite:/tmp/c.db\n")
    assert run("check").exit_code == 0


def test_check_without_a_topic_says_so(project: Path) -> None:
    put_data(project)
    edit(project, "DATASET=a\nDLQ_TOPIC=a.dlq\n")
    result = run("check")
    assert isinstance(result.exception, InvalidSettingsError)
    assert result.exception.what == "TOPIC is not set"
    assert result.exception.exit_code == 3


def test_check_warns_of_a_name_that_is_nearly_right(project: Path) -> None:
    edit(project, "TOPC=a\nUNRELATED=b\nJAVA_HOME=/j\n")
    warnings = run("check").stderr
    assert ".env:1: TOPC is unknown and ignored; did you mean TOPIC?" in warnings
    assert ".env:3: JAVA_HOME has no effect here" in warnings
    assert "UNRELATED" not in warnings


def test_check_warns_of_what_is_still_to_be_filled_in() -> None:
    run("select", "aws")
    assert "WAREHOUSE=s3a://your-bucket/warehouse/ still has to be filled in" in run("check").stderr


def test_check_as_json_has_faults_and_warnings(project: Path) -> None:
    edit(project, "TOPC=a\nDATASET=a\nDLQ_TOPIC=b\n")
    report = as_json("check")
    assert report["passed"] is False
    assert [fault["field"] for fault in report["faults"]] == ["TOPIC"]
    assert len(report["warnings"]) == 1


def test_the_reference_page_is_up_to_date() -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text("utf-8")
    assert page == reference_page() + "\n", "run: make docs"


def test_show_still_shows_values_that_are_at_fault(project: Path) -> None:
    edit(project, "BROKER=redpnda \nMINIO_ROOT_PASSWORD=canary\n")
    result = run("show", "--brackets")
    assert "[redpnda ]" in result.stdout
    assert "canary" not in result.stdout
    assert "BROKER" in faults(result)
