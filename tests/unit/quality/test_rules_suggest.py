"""`headgate rules suggest` and `rules diff` as a person and a script see them."""

from __future__ import annotations

import json
import shutil
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from headgate.cli.main import cli
from headgate.errors import UsageError

ROOT = Path(__file__).parents[3]
CANARY = "canary-99ab"


@pytest.fixture(autouse=True)
def here(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    columns = {
        "id": [f"k{n}" for n in range(400)],
        "email": [f"{CANARY}-{n}@example.org" for n in range(400)],
        "amount": [float(n) for n in range(400)],
        "at": [datetime(2026, 3, 1, 12, n % 60) for n in range(400)],
    }
    pq.write_table(pa.table(columns), project / "sales.parquet")
    monkeypatch.chdir(project)
    return project


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(cli, [*arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result


def suggested(folder: Path) -> Path:
    (folder / "rules").mkdir(exist_ok=True)
    run("rules", "suggest", "--file", "sales.parquet", "--out", "rules/sales.yml")
    return folder / "rules" / "sales.yml"


def test_what_is_suggested_passes_the_check(here: Path) -> None:
    file = suggested(here)
    assert CANARY not in file.read_text()
    assert "no faults" in run("rules", "check").stderr


def test_a_name_that_is_taken_is_not_used_again(here: Path) -> None:
    suggested(here)
    text = run("rules", "suggest", "--file", "sales.parquet").stdout
    assert "- name: sales_suggested\n" in text


def test_a_file_that_is_there_is_not_overwritten(here: Path) -> None:
    suggested(here)
    with pytest.raises(UsageError, match="is there already"):
        suggested(here)


def test_a_dataset_without_a_file_is_told_how_to_get_one(here: Path) -> None:
    shutil.copytree(ROOT / "datasets" / "orders", here / "datasets" / "orders")
    with pytest.raises(UsageError, match="orders has no Parquet file") as caught:
        run("rules", "suggest", "--dataset", "orders")
    assert "feed sample --dataset orders" in caught.value.fix


def test_a_script_gets_every_proposal_with_its_count() -> None:
    body = json.loads(run("-o", "json", "rules", "suggest", "--file", "sales.parquet").stdout)
    assert body["rows"] == 400
    counts = {one["name"]: one["flags_rows"] for one in body["proposed"]}
    assert counts["amount_out_of_range"] == 0
    assert CANARY not in json.dumps(body)


def test_a_changed_limit_is_told_in_words_and_in_rows(here: Path) -> None:
    old = suggested(here)
    new = here / "new.yml"
    new.write_text(old.read_text().replace("max: 1000\n", "max: 300\n"))
    text = run("rules", "diff", str(old), str(new), "--rows", "sales.parquet").stdout
    assert "~ amount_out_of_range" in text
    assert "or is above 300 (was:" in text
    assert "400 rows judged by both: 99 change their status" in text
    assert "VALID → QUARANTINE: 99" in text
    assert "email=***" in text
    assert CANARY not in text


def test_without_a_broker_the_rules_are_compared_all_the_same(here: Path) -> None:
    file = suggested(here)
    result = run("rules", "diff", str(file), str(file))
    assert "have the same rules" in result.stdout
    assert "no rows of sales are compared" in result.stderr


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("nothing", "rules/sales.yml"), "names no revision"),
        (("deployed", "rules/sales.yml"), "does not say which table"),
        (("abc123", "rules/sales.yml"), "no revision begins with"),
    ],
)
def test_a_name_that_is_no_revision_is_refused(
    here: Path, names: tuple[str, str], words: str
) -> None:
    suggested(here)
    with pytest.raises(UsageError, match=words):
        run("rules", "diff", *names)


def test_a_table_that_neither_has_is_refused(here: Path) -> None:
    file = suggested(here)
    with pytest.raises(UsageError, match="has a table `sale`"):
        run("rules", "diff", str(file), str(file), "--table", "sale")
