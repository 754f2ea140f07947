"""`headgate hash` as a person and a script see it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headgate.cli.hash import VERBS
from headgate.cli.main import cli
from headgate.errors import DeclarationError, DifferenceError, RowRefusedError, UsageError
from headgate.hashing.typed_json import VECTORS_FILE

ROOT = Path(__file__).parents[3]
CONTRACT = "contracts/business_table.hash.yml"
ROW = '{"col1": "a|b", "col2": "12.5", "col3": "2024-01-31T12:30:00.123Z", "col4": 0.3, "pk": 1}'
TEXT = "s3:a|bd1250;t1706704200123;f300000;"
HASH = "07996efa29a24f5323fbe7a8de5dbebaa195f2346b5efe01fb7fdcccb4e2b567"


@pytest.fixture(autouse=True)
def here(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(ROOT / "contracts", project / "contracts")
    monkeypatch.chdir(project)
    return project


def run(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(cli, ["hash", *arguments], input=given)


def as_json(*arguments: str) -> dict[str, object]:
    return json.loads(CliRunner().invoke(cli, ["-o", "json", "hash", *arguments]).stdout)


def test_help_names_every_verb() -> None:
    text = run("--help").stdout
    assert all(verb in text for verb in VERBS)


def test_check_shows_each_contract_in_one_line() -> None:
    result = run("check")
    assert result.exit_code == 0
    assert (
        "version 2  col1:string,col2:decimal(2),col3:timestamp(ms),col4:double(6)" in result.stdout
    )
    assert result.stderr == "✓ one contract, no faults\n"


def test_check_tells_all_faults_and_warns_of_version_1(project: Path) -> None:
    (project / "contracts" / "a.hash.yml").write_text("name: a\nfields: [{name: x, type: txt}]\n")
    old = "name: b\nhash_version: 1\nfields: [{name: x, type: string}]\n"
    (project / "contracts" / "b.hash.yml").write_text(old)
    result = run("check")
    assert isinstance(result.exception, DeclarationError)
    assert result.exception.faults[0].file == "contracts/a.hash.yml"
    assert "version 1 is ambiguous" in result.stderr
    assert as_json("check")["passed"] is False


@pytest.mark.parametrize("given", ["argument", "file", "stdin"])
def test_a_row_is_hashed_from_wherever_it_comes(given: str, project: Path) -> None:
    (project / "row.json").write_text(ROW)
    row = {"argument": ROW, "file": "row.json", "stdin": "-"}[given]
    result = run("row", CONTRACT, row, "--text", given=ROW if given == "stdin" else None)
    assert result.stdout == f"{TEXT}\n{HASH}\n"


def test_a_row_can_be_hashed_by_the_older_version() -> None:
    found = as_json("row", CONTRACT, ROW, "--version", "1", "--text")
    assert found["text"] == "a|b|12.50|2024-01-31T12:30:00.123Z|0.300000"
    assert found["hash_version"] == 1


def test_a_row_that_does_not_fit_is_refused_without_its_values() -> None:
    result = run("row", CONTRACT, ROW.replace('"12.5"', '"secret"'))
    assert isinstance(result.exception, RowRefusedError)
    assert "secret" not in result.exception.one_line
    assert "`col2` is no decimal(2)" in result.exception.what


def test_a_file_that_is_not_there_is_wrong_usage() -> None:
    assert isinstance(run("row", CONTRACT, "nothing.json").exception, UsageError)
    assert isinstance(run("vectors", "nothing.jsonl").exception, UsageError)


def test_the_sql_is_shown_for_the_usual_types_and_for_those_given() -> None:
    usual, given = run("sql", CONTRACT), run("sql", CONTRACT, "--column", "col2=decimal(10,2)")
    assert usual.stdout.startswith("sha2(concat(IF(col1 IS NULL, 'n;', 's'), ")
    assert len(given.stdout) < len(usual.stdout)
    refused = run("sql", CONTRACT, "--column", "col2=double")
    assert isinstance(refused.exception, DeclarationError)
    assert isinstance(run("sql", CONTRACT, "--column", "col2").exception, UsageError)


def test_the_shared_vectors_agree() -> None:
    result = run("vectors", str(ROOT / VECTORS_FILE))
    assert result.exit_code == 0
    assert "vectors agree" in result.stderr


def test_a_vector_that_differs_is_shown(tmp_path: Path) -> None:
    lines = (ROOT / VECTORS_FILE).read_text("utf-8").splitlines()[:3]
    wrong = json.loads(lines[1])
    wrong["v2"] = "0" * 64
    file = tmp_path / "mine.jsonl"
    file.write_text("\n".join([lines[0], json.dumps(wrong), lines[2]]) + "\n")
    result = run("vectors", str(file))
    assert isinstance(result.exception, DifferenceError)
    assert "✗ vector 2" in result.stdout
