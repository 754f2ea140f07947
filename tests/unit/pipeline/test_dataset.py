"""`headgate dataset` as a person and a script see it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headgate.cli.main import cli
from headgate.config.reference import MASK
from headgate.errors import DeclarationError, SettingsError, UsageError

ROOT = Path(__file__).parents[3]
SILVER = "06_silver.sql"
MANIFEST = "datasets/taxi/dataset.yml"


@pytest.fixture(autouse=True)
def here(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder in ("datasets", "spark"):
        shutil.copytree(ROOT / folder, project / folder)
    monkeypatch.chdir(project)
    return project


def run(*arguments: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(cli, ["dataset", *arguments], env=env)


def as_json(*arguments: str) -> dict[str, object]:
    return json.loads(CliRunner().invoke(cli, ["-o", "json", "dataset", *arguments]).stdout)


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def template(project: Path, file: str = SILVER) -> Path:
    return project / "spark" / "sql" / "taxi" / f"{file}.tmpl"


def test_build_writes_the_sql_and_the_configuration_and_prints_what_it_wrote(
    project: Path,
) -> None:
    result = run("build")
    files = result.stdout.split()
    assert "build/sql/taxi/05_bronze_batch.sql" in files
    assert "build/conf/spark-defaults.conf" in files
    assert all((project / file).is_file() for file in files)


def copy_of_taxi(project: Path, name: str = "cabs") -> Path:
    """A dataset made as S2.25 has it: the folder copied, names replaced in the manifest."""
    shutil.copytree(project / "datasets/taxi", project / "datasets" / name)
    shutil.copytree(ROOT / "dbt", project / "dbt")
    manifest = project / "datasets" / name / "dataset.yml"
    text = manifest.read_text()
    for old, new in (("name: taxi", f"name: {name}"), ("raw_trips", name), ("cleaned_trips", name)):
        text = text.replace(old, new)
    manifest.write_text(text)
    return manifest


def files_of(project: Path) -> dict[str, bytes]:
    found = (path for path in project.rglob("*") if path.is_file())
    return {path.relative_to(project).as_posix(): path.read_bytes() for path in found}


def test_removing_a_copied_dataset_touches_no_file_of_the_other(project: Path) -> None:
    shutil.copytree(ROOT / "dbt", project / "dbt")
    before = files_of(project)
    shutil.rmtree(project / "dbt")
    copy_of_taxi(project)
    listed = run("remove", "cabs", "--dry-run").stdout.split()
    assert [path for path in listed if "taxi" in path] == []
    assert run("remove", "cabs", "--yes").exit_code == 0
    assert files_of(project) == before


def test_a_copied_dataset_is_scaffolded_anew_and_removed_alone(project: Path) -> None:
    copy_of_taxi(project)
    taxi = {
        path: data
        for path, data in files_of(project).items()
        if "/taxi/" in path and "cabs" not in path
    }
    result = run("scaffold", "cabs")
    assert result.exception is None, result.exception
    made = files_of(project)
    assert "spark/sql/cabs/06_silver.sql.tmpl" in made
    assert not any("/taxi/" in path for path in made if path.startswith("datasets/cabs/"))
    assert run("remove", "cabs", "--yes").exit_code == 0
    left = files_of(project)
    assert {path: left.get(path) for path in taxi} == taxi
    assert not any("cabs" in path for path in left)


def test_the_sample_of_another_dataset_is_noticed(project: Path) -> None:
    assert "sample" not in run("check", "taxi").stderr
    manifest = copy_of_taxi(project)
    manifest.write_text(manifest.read_text().replace("VendorID", "vendor_no"))
    assert "datasets/cabs/sample.yml writes no vendor_no" in run("check", "cabs").stderr


def test_a_command_says_which_dataset_it_acts_on_when_nobody_chose_it() -> None:
    assert "dataset taxi (profile env/embedded.env); DATASET=… chooses" in run("show").stderr
    assert "chooses another" not in run("show", env={"DATASET": "orders"}).stderr
    assert "chooses another" not in run("show", "orders").stderr


def test_build_gives_the_same_bytes_again(project: Path) -> None:
    run("build")
    first = {path: path.read_bytes() for path in (project / "build").rglob("*") if path.is_file()}
    run("build")
    assert first == {path: path.read_bytes() for path in first}


def test_an_embedded_broker_that_is_not_up_is_assumed_at_its_first_port(project: Path) -> None:
    result = run("build", env={"KAFKA_PORT": "19192"})
    assert "127.0.0.1:19192 is assumed" in result.stderr
    assert "127.0.0.1:19192" in (project / "build/sql/taxi/05_bronze_batch.sql").read_text()


def test_a_running_broker_is_named_and_nothing_is_assumed(project: Path) -> None:
    (project / ".headgate").mkdir()
    (project / ".headgate" / "endpoints.env").write_text("BOOTSTRAP_SERVERS=127.0.0.1:40001\n")
    result = run("build")
    assert "assumed" not in result.stderr
    assert "127.0.0.1:40001" in (project / "build/sql/01_source.sql").read_text()


def test_the_reference_files_show_the_topic_of_the_dataset(project: Path) -> None:
    run("build", "orders")
    for file in ("01_source.sql", "01_source_streaming.sql"):
        text = (project / "build/sql" / file).read_text()
        assert "'subscribe' 'orders.raw_orders'" in text
        assert "VIEW orders_source\n" in text
    run("build", "taxi")
    assert "'subscribe' 'taxi.raw_trips'" in (project / "build/sql/01_source.sql").read_text()


def test_build_writes_nothing_when_something_cannot_be_rendered(project: Path) -> None:
    change(project / "spark/conf/spark-defaults.conf.tmpl", "${STORAGE}", "${STORRAGE}")
    result = run("build")
    assert isinstance(result.exception, SettingsError)
    assert "STORRAGE is not set" in result.exception.why
    assert not (project / "build").exists()


def test_the_configuration_can_hold_secrets_and_is_for_its_owner_only(project: Path) -> None:
    run("build")
    assert (project / "build/conf/spark-defaults.conf").stat().st_mode & 0o077 == 0


def test_another_catalog_takes_the_old_ones_file_away(project: Path) -> None:
    run("build")
    run("build", env={"CATALOG": "rest", "CATALOG_URI": "http://localhost:8181"})
    names = {path.name for path in (project / "build/sql").glob("00_*")}
    assert names == {"00_catalog_rest.sql"}


def test_a_changed_manifest_compiles_anew_and_refresh_writes_the_templates(project: Path) -> None:
    change(project / "datasets/taxi/dataset.yml", '"total_amount > 0"', '"total_amount > 7"')
    behind = run("build")
    assert "is behind the manifest: headgate dataset build taxi --refresh" in behind.stderr
    assert "(total_amount > 7)" in (project / "build/sql/taxi" / SILVER).read_text()
    assert "(total_amount > 0)" in template(project).read_text()
    refreshed = run("build", "--refresh")
    assert f"spark/sql/taxi/{SILVER}.tmpl" in refreshed.stdout.split()
    assert "(total_amount > 7)" in template(project).read_text()
    assert "behind" not in run("build").stderr


def test_an_edited_template_is_what_runs_and_is_left_alone(project: Path) -> None:
    change(template(project), "(total_amount > 0)", "(total_amount > 9)")
    result = run("build", "--refresh")
    assert f"spark/sql/taxi/{SILVER}.tmpl is edited: it is what runs" in result.stderr
    assert "(total_amount > 9)" in (project / "build/sql/taxi" / SILVER).read_text()
    assert "(total_amount > 9)" in template(project).read_text()
    assert f"edited: {SILVER}" in run("list").stdout


def test_check_tells_every_fault_of_every_file_with_its_line(project: Path) -> None:
    manifest = project / MANIFEST
    change(manifest, '"total_amount > 0"', '"total_amont > 0"')
    change(manifest, '"trip_distance IS NULL OR', '"nope(trip_distance) OR')
    change(project / "datasets/taxi/sample.yml", "columns:", "colunms:")
    result = run("check")
    assert isinstance(result.exception, DeclarationError)
    assert result.exception.exit_code == 3
    faults = result.exception.faults
    lines = manifest.read_text().splitlines()
    assert {lines[f.line - 1].strip()[3:15] for f in faults if f.line and f.file == MANIFEST} == {
        "total_amont ",
        "nope(trip_di",
    }
    assert "datasets/taxi/sample.yml" in {fault.file for fault in faults}


def test_check_says_where_an_unset_variable_is_needed(project: Path) -> None:
    (project / ".env").write_text("BROKER=embedded\n")
    result = run("check")
    assert isinstance(result.exception, DeclarationError)
    assert ["TOPIC is not set" in f.what for f in result.exception.faults] == [True, True]
    assert all(fault.line for fault in result.exception.faults)


def test_check_passes_what_is_shipped_and_knows_no_other(project: Path) -> None:
    assert "orders, taxi: no faults" in run("check").stderr
    unknown = run("check", "taxis")
    assert isinstance(unknown.exception, UsageError)
    assert "Available: orders, taxi" in unknown.exception.fix


def test_show_prints_every_file_and_masks_secrets() -> None:
    secrets = {"STORAGE": "minio", "CATALOG": "hadoop", "WAREHOUSE": "s3a://w/"}
    secrets |= {"S3_ENDPOINT": "http://localhost:9000", "MINIO_ROOT_USER": "ann"}
    result = run("show", env={**secrets, "MINIO_ROOT_PASSWORD": "geheim"})
    assert "MERGE INTO lake.silver.cleaned_trips" in result.stdout
    assert f"spark.hadoop.fs.s3a.secret.key {MASK}" in result.stdout
    assert "geheim" not in result.output


def test_show_prints_one_file_and_lists_them_for_an_unknown_one() -> None:
    text = run("show", "--file", SILVER).stdout
    assert text.startswith("-- Silver of taxi, rebuilt")
    unknown = run("show", "--file", "07.sql")
    assert isinstance(unknown.exception, UsageError)
    assert "07_bronze_streaming.sql" in unknown.exception.fix


def test_reports_are_data_in_json() -> None:
    assert as_json("check")["passed"] is True
    assert "build/conf/spark-defaults.conf" in str(as_json("build")["files"])
    assert as_json("show")["dataset"] == "taxi"


def test_a_dataset_that_is_not_valid_is_listed_as_such(project: Path) -> None:
    shutil.copytree(project / "datasets/taxi", project / "datasets/cabs")
    rows = run("list").stdout.splitlines()
    assert rows[1].startswith("cabs")
    assert "not valid" in rows[1]
    assert "silver.cleaned_orders" in rows[2]
    assert "silver.cleaned_trips" in rows[3]
