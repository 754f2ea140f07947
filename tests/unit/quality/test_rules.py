"""`headgate rules` as a person and a script see it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headgate.cli.main import cli
from headgate.errors import DeclarationError, DifferenceError
from headgate.quality.cli import VERBS

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def here(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder in ("rules", "contracts"):
        shutil.copytree(ROOT / folder, project / folder)
    for file in ("rules.yaml", "rules.tests.yaml"):
        shutil.copy(ROOT / file, project / file)
    monkeypatch.chdir(project)
    return project


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["rules", *arguments])


def as_json(*arguments: str) -> dict[str, object]:
    return json.loads(CliRunner().invoke(cli, ["-o", "json", "rules", *arguments]).stdout)


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_help_names_every_verb_without_loading_one() -> None:
    text = run("--help").stdout
    assert all(verb in text and words.split()[0] in text for verb, (words, _) in VERBS.items())


def test_the_shipped_rule_sets_pass() -> None:
    result = run("check")
    assert result.exit_code == 0
    assert (
        result.stderr
        == "✓ rules.yaml, rules/taxi.yml, rules/topic1.yml: 4 tables, 33 rules, no faults\n"
    )
    assert result.stdout == ""


def test_check_tells_every_fault_of_every_file(project: Path) -> None:
    change(project / "rules.yaml", "{t1}.action", "{t1}.acton")
    change(project / "rules/taxi.yml", "field: VendorID", "field: VendorId")
    result = run("check")
    assert isinstance(result.exception, DeclarationError)
    assert [fault.file for fault in result.exception.faults] == ["rules.yaml", "rules/taxi.yml"]
    found = as_json("check")
    assert found["passed"] is False
    assert "Did you mean `t1.action`?" in str(found["faults"])


def test_check_of_one_file_looks_at_no_other(project: Path) -> None:
    change(project / "rules.yaml", "{t1}.action", "{t1}.acton")
    assert run("check", "rules/taxi.yml").exit_code == 0


def test_a_table_is_declared_in_one_file_only(project: Path) -> None:
    shutil.copy(project / "rules.yaml", project / "rules" / "again.yml")
    result = run("check")
    assert isinstance(result.exception, DeclarationError)
    assert {(fault.file, fault.what) for fault in result.exception.faults} == {
        ("rules/again.yml", "`customer` is a table of rules.yaml as well"),
        ("rules/again.yml", "`orders` is a table of rules.yaml as well"),
    }


def test_notes_are_faults_only_when_strict(project: Path) -> None:
    change(project / "rules.yaml", "rules:\n", "rules:\n  - {name: twin, when: '{pk} IS NULL'}\n")
    relaxed, strict = run("check", "rules.yaml"), run("check", "rules.yaml", "--strict")
    assert relaxed.exit_code == 0
    assert "! rules.yaml:" in relaxed.stderr
    assert "matches exactly the rows that `twin` matches" in relaxed.stderr
    assert isinstance(strict.exception, DeclarationError)


def test_an_old_file_passes_with_a_line_that_says_so(project: Path) -> None:
    (project / "rules" / "old.yml").write_text(
        "topic: a\npk: id\nrules:\n  - {id: r1, type: required, fields: [id, name], severity: fail}\n"
    )
    result = run("check", "rules/old.yml")
    assert result.exit_code == 0
    assert "old.yml is written in the old typed form" in result.stderr


def test_a_file_that_is_not_there() -> None:
    result = run("check", "rules/none.yml")
    assert isinstance(result.exception, DeclarationError)
    assert "does not exist" in result.exception.why


def test_list_shows_tables_of_valid_and_faulty_files(project: Path) -> None:
    change(project / "rules.yaml", "{t1}.action", "{t1}.acton")
    rows = as_json("list")["items"]
    assert isinstance(rows, list)
    assert [row["table"] for row in rows] == ["customer", "orders", "taxi", "business"]
    assert rows[0]["kind"] == "not valid: the declaration is not valid: one fault"
    assert (rows[2]["kind"], rows[2]["window"]) == ("quality", "1 DAY")


def test_the_shipped_tests_pass() -> None:
    result = run("test")
    assert result.exit_code == 0
    assert result.stdout == ""
    assert result.stderr.startswith("✓ ")


def test_a_failing_test_is_shown_as_a_difference(project: Path) -> None:
    change(project / "rules.yaml", "{hash_onprem} <> {hash_cloud}", "{hash_onprem} = {hash_cloud}")
    result = run("test", "rules.yaml")
    assert isinstance(result.exception, DifferenceError)
    assert result.exception.exit_code == 5
    assert "✗ customer: equal hashes match  (rules.tests.yaml:17)\n" in result.stdout
    assert "    status\n      expected  MATCH\n      got       MISMATCH\n" in result.stdout


def test_the_results_of_tests_as_json(project: Path) -> None:
    change(project / "rules.tests.yaml", "status: MATCH, rules: []", "status: MISMATCH, rules: []")
    found = as_json("test", "rules.tests.yaml")
    assert found["failed"] == 1
    assert found["results"][0]["differences"] == [  # pyright: ignore[reportIndexIssue]  plain JSON
        {"row": 1, "what": "status", "expected": "MISMATCH", "got": "MATCH"}
    ]


def test_faults_of_tests_have_their_lines(project: Path) -> None:
    tests = project / "rules.tests.yaml"
    change(tests, "table: orders", "table: order")
    result = run("test", "rules.yaml")
    assert isinstance(result.exception, DeclarationError)
    assert "Did you mean `orders`?" in result.exception.why
    change(tests, "table: order\n", "table: orders\n")
    change(tests, "onprem: {customer_id: C-2}", "onprem: {customer: C-2}")
    result = run("test", "rules.yaml")
    assert isinstance(result.exception, DeclarationError)
    (fault,) = result.exception.faults
    assert fault.field == "tests[1].given.onprem.customer"
    assert fault.line == 25


def test_a_rule_set_without_tests_is_told(project: Path) -> None:
    (project / "rules" / "taxi.tests.yml").unlink()
    assert "! rules/taxi.yml has no tests" in run("test").stderr


def test_shared_fields_of_a_pair_stand_side_by_side(project: Path) -> None:
    change(project / "rules.tests.yaml", "  orders: *sides", "  orders: {action: UPSERT}")
    result = run("test", "rules.yaml")
    assert isinstance(result.exception, DeclarationError)
    assert "defaults.orders.action: `action` is not a side with fields" in result.exception.why
