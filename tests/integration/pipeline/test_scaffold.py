"""A manifest becomes files; a second run merges, and never overwrites what a person wrote."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headgate.cli.main import cli
from headgate.errors import ConflictError, DeclarationError, UsageError
from headgate.pipeline.compile.templates import is_sealed
from headgate.pipeline.revision import chosen

ROOT = Path(__file__).parents[3]
SILVER = "spark/sql/orders/06_silver.sql.tmpl"
MODEL = "dbt/models/staging/stg_orders.sql"
TESTS = "dbt/models/staging/stg_orders.yml"
SOURCE = "dbt/models/sources/orders.yml"
MANIFEST = "datasets/orders/dataset.yml"
REMARK = "-- This is ours.\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The shipped project before anyone scaffolded orders."""
    for part in ("datasets", "dbt", "env", "spark"):
        shutil.copytree(ROOT / part, tmp_path / part)
    shutil.rmtree(tmp_path / "spark/sql/orders")
    shutil.rmtree(tmp_path / "datasets/orders/.scaffold")
    for path in (MODEL, TESTS, SOURCE):
        (tmp_path / path).unlink()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["dataset", *arguments])


def scaffold(*more: str) -> dict[str, str]:
    """The status of each file."""
    answer = CliRunner().invoke(cli, ["-o", "json", "dataset", "scaffold", "orders", *more])
    return {file["file"]: file["status"] for file in json.loads(answer.stdout)["files"]}


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def add_remark(path: Path) -> None:
    path.write_text(path.read_text() + REMARK)


def texts(folder: Path) -> dict[Path, bytes]:
    return {
        p: p.read_bytes() for p in folder.rglob("*") if p.is_file() and ".headgate" not in p.parts
    }


def test_a_manifest_becomes_all_its_files_in_no_time(folder: Path) -> None:
    begun = time.monotonic()
    found = scaffold()
    assert time.monotonic() - begun < 30
    assert {SILVER, MODEL, TESTS, SOURCE} < set(found)
    assert set(found.values()) == {"written"}
    assert all((folder / path).is_file() for path in found)
    again = scaffold()
    assert set(again.values()) == {"unchanged"}


def test_what_is_committed_is_what_the_manifest_gives(folder: Path) -> None:
    for path in scaffold():
        assert (folder / path).read_text() == (ROOT / path).read_text(), path
        base = Path("datasets/orders/.scaffold") / path
        assert (folder / base).read_text() == (ROOT / base).read_text(), base


def test_a_dry_run_shows_the_difference_and_writes_nothing(folder: Path) -> None:
    scaffold()
    change(folder / MANIFEST, "total_amount > 0", "total_amount > 7")
    before = texts(folder)
    shown = run("scaffold", "orders", "--dry-run").stdout
    assert "-  AND (total_amount > 0)" in shown
    assert "+  AND (total_amount > 7)" in shown
    assert texts(folder) == before


def test_files_that_nobody_edited_follow_the_manifest(folder: Path) -> None:
    scaffold()
    change(folder / MANIFEST, "total_amount > 0", "total_amount > 7")
    found = scaffold()
    assert found[SILVER] == found[MODEL] == "updated"
    assert found[SOURCE] == "unchanged"


def test_edits_and_changes_are_merged_and_the_sql_stays_edited(folder: Path) -> None:
    scaffold()
    add_remark(folder / SILVER)
    change(folder / MODEL, "    status,", "    upper(status) as status,")
    assert (scaffold()[SILVER], scaffold()[MODEL]) == ("kept", "kept")
    change(folder / MANIFEST, "total_amount > 0", "total_amount > 7")
    found = scaffold()
    assert (found[SILVER], found[MODEL]) == ("merged", "merged")
    silver = (folder / SILVER).read_text()
    assert "(total_amount > 7)" in silver
    assert silver.endswith(REMARK)
    assert not is_sealed(silver)
    assert chosen(folder, "orders")[1].edited == ("06_silver.sql",)
    assert "upper(status)" in (folder / MODEL).read_text()
    assert scaffold()[SILVER] == "kept"


def test_a_conflict_leaves_the_file_is_told_and_can_be_settled(folder: Path) -> None:
    scaffold()
    change(folder / SILVER, "(total_amount > 0)", "(total_amount > 5)")
    change(folder / MANIFEST, "total_amount > 0", "total_amount > 7")
    edited = (folder / SILVER).read_text()
    result = run("scaffold", "orders")
    assert isinstance(result.exception, ConflictError)
    assert result.exception.exit_code == 6
    assert SILVER in result.exception.why
    assert (folder / SILVER).read_text() == edited
    conflict = folder / f"{SILVER}.conflict"
    assert "(total_amount > 5)" in conflict.read_text()
    assert "(total_amount > 7)" in conflict.read_text()
    assert scaffold()[SILVER] == "CONFLICT"
    # The others went on, and nothing runs with markers in it.
    assert scaffold()[MODEL] == "unchanged"
    assert chosen(folder, "orders")[1].edited == ("06_silver.sql",)
    conflict.unlink()
    assert scaffold()[SILVER] == "kept"
    change(folder / MANIFEST, "Who ordered", "Who buys")
    assert scaffold()[SILVER] == "merged"
    assert "(total_amount > 5)" in (folder / SILVER).read_text()
    assert "Who buys" in (folder / SILVER).read_text()


def test_markers_in_a_file_stop_everything_that_would_run_it(folder: Path) -> None:
    scaffold()
    change(folder / SILVER, "(total_amount > 0)", "(total_amount > 5)")
    change(folder / MANIFEST, "total_amount > 0", "total_amount > 7")
    run("scaffold", "orders")
    (folder / f"{SILVER}.conflict").replace(folder / SILVER)
    with pytest.raises(DeclarationError) as caught:
        chosen(folder, "orders")
    assert caught.value.faults[0].what == "two versions stand here"
    assert scaffold()[SILVER] == "CONFLICT"


def test_an_edit_that_nobody_scaffolded_is_no_base_for_a_silent_change(folder: Path) -> None:
    (folder / MODEL).write_text("select 1 as mine\n")
    result = run("scaffold", "orders")
    assert isinstance(result.exception, ConflictError)
    assert (folder / MODEL).read_text() == "select 1 as mine\n"
    assert "select 1 as mine" in (folder / f"{MODEL}.conflict").read_text()


def test_an_edit_that_lacks_a_new_column_is_merged_with_it(folder: Path) -> None:
    scaffold()
    add_remark(folder / SILVER)
    column = (folder / MANIFEST).read_text().partition("columns:\n")[2].partition("\n\n")[0]
    more = column.replace("order_id", "shop").replace("The shop's number of the order", "Which")
    change(folder / MANIFEST, "columns:\n", f"columns:\n{more}\n\n")
    with pytest.raises(DeclarationError):
        chosen(folder, "orders")
    assert scaffold()[SILVER] == "merged"
    assert chosen(folder, "orders")[1].edited == ("06_silver.sql",)


def test_a_faulty_manifest_writes_nothing(folder: Path) -> None:
    change(folder / MANIFEST, "total_amount > 0", "total_amont > 0")
    change(folder / MANIFEST, "bronze.raw_orders", "raw_orders")
    before = texts(folder)
    result = run("scaffold", "orders")
    assert isinstance(result.exception, DeclarationError)
    assert [fault.file for fault in result.exception.faults] == [MANIFEST, MANIFEST]
    assert texts(folder) == before


def test_a_dataset_that_dbt_knows_under_other_names_keeps_them(folder: Path) -> None:
    answer = run("scaffold", "taxi")
    assert "not needed: dbt/models/sources/sources.yml has silver.cleaned_trips" in answer.stdout
    assert not (folder / "dbt/models/staging/stg_taxi.sql").exists()
    assert not (folder / "dbt/models/sources/taxi.yml").exists()


def test_refreshed_templates_are_the_base_of_the_next_merge(folder: Path) -> None:
    scaffold()
    change(folder / MANIFEST, "total_amount > 0", "total_amount > 7")
    run("build", "orders", "--refresh")
    add_remark(folder / SILVER)
    change(folder / MANIFEST, "created_at IS NOT NULL", "order_id IS NOT NULL")
    assert scaffold()[SILVER] == "merged"


def test_a_dataset_can_be_taken_out_again(folder: Path) -> None:
    before = texts(folder)
    scaffold()
    refused = run("remove", "orders")
    assert isinstance(refused.exception, UsageError)
    assert MODEL in run("remove", "orders", "--dry-run").stdout.split()
    assert run("remove", "orders", "--keep-manifest", "--yes").exit_code == 0
    assert texts(folder) == before
    scaffold()
    assert run("remove", "orders", "--yes").exit_code == 0
    assert not (folder / "datasets/orders").exists()
    assert not (folder / "spark/sql/orders").exists()
    assert list((folder / "dbt").rglob("*orders*")) == []


def test_edited_files_stay_when_a_dataset_is_taken_out(folder: Path) -> None:
    scaffold()
    add_remark(folder / SILVER)
    assert f"{SILVER} was edited: it stays" in run("remove", "orders", "--yes").stderr
    assert (folder / SILVER).read_text().endswith(REMARK)
    assert not (folder / MODEL).exists()


def test_what_other_models_build_on_is_not_taken_out(folder: Path) -> None:
    scaffold()
    mine = folder / "dbt/models/marts/analytics/mart_orders.sql"
    mine.write_text("select count(*) as n from {{ ref('stg_orders') }}\n")
    result = run("remove", "orders", "--yes")
    assert isinstance(result.exception, ConflictError)
    assert "mart_orders.sql" in result.exception.why
    assert (folder / MODEL).is_file()
