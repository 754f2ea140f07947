"""Both rows of a key, read from Parquet files and held against each other by the contract."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from headgate.cli.main import cli
from headgate.config.reference import MASK
from headgate.config.settings import Settings, load_settings
from headgate.errors import DifferenceError, SettingsError, UnavailableError
from headgate.quality.spec.loader import load_rules
from headgate.quality.spec.rule_set import RuleTable
from headgate.reconcile.row_diff import EQUAL, NOT_CLOUD, NOT_ONPREM, NOWHERE
from headgate.reconcile.rows import DuckRows, ParquetQueries, open_rows, parquet_source

ROOT = Path(__file__).parents[3]
AT = datetime(2024, 1, 1, 10, 0, 0, 123456, UTC)
SCHEMA = pa.schema(
    {
        "pk": pa.string(),
        "col1": pa.string(),
        "col2": pa.decimal128(18, 4),
        "col3": pa.timestamp("us", tz="UTC"),
        "col4": pa.float64(),
        "last_updated": pa.timestamp("us"),
    }
)
CONTRACT = """
name: business_table
hash_version: 2
fields:
  - {name: col1, type: string, sensitive: true}
  - {name: col2, type: decimal, scale: 2}
  - {name: col3, type: timestamp, unit: ms}
  - {name: col4, type: double, scale: 6}
"""


def row(pk: str, **changes: object) -> dict[str, object]:
    found = {"col1": "Ada", "col2": Decimal("1.5"), "col3": AT, "col4": 0.5}
    return {"pk": pk, **found, "last_updated": AT.replace(tzinfo=None), **changes}


def written(file: Path, rows: list[dict[str, object]]) -> None:
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), file)


@pytest.fixture
def project(tmp_path: Path) -> Settings:
    for name in ("rules", "contracts", "env"):
        (tmp_path / name).mkdir()
    for profile in (ROOT / "env").glob("*.env"):
        (tmp_path / "env" / profile.name).write_bytes(profile.read_bytes())
    text = (ROOT / "rules/topic1.yml").read_text()
    text = text.replace("iceberg: onprem.business_table", "parquet: onprem.parquet")
    text = text.replace("cassandra: cloud_keyspace.business_table", "parquet: cloud.parquet")
    (tmp_path / "rules/topic1.yml").write_text(text)
    (tmp_path / "contracts/business_table.hash.yml").write_text(CONTRACT)
    (tmp_path / "pyproject.toml").touch()
    written(
        tmp_path / "onprem.parquet",
        [row(pk) for pk in ("same", "finer", "zone", "case", "only on-prem", "it's")],
    )
    written(
        tmp_path / "cloud.parquet",
        [
            row("same"),
            # The contract does not see a third decimal, nor microseconds.
            row("finer", col2=Decimal("1.501"), col3=AT.replace(microsecond=123000)),
            row("zone", col3=AT + timedelta(hours=2), col2=Decimal("15")),
            row("case", col1="ADA"),
            row("only cloud"),
            row("it's", col4=0.6),
        ],
    )
    return load_settings(tmp_path, {"HEADGATE_HOME": str(tmp_path / "home")})


def table(settings: Settings) -> RuleTable:
    return load_rules(settings.root / "rules/topic1.yml", {}).value.table("business")


def test_each_key_is_explained_by_what_the_contract_sees(project: Settings) -> None:
    keys = ["same", "finer", "zone", "case", "only on-prem", "only cloud", "it's", "none"]
    with open_rows(project, table(project)) as rows:
        found = {each.pk: each for each in rows.why(keys)}
    assert list(found) == keys
    assert [found[pk].found for pk in ("same", "finer")] == [EQUAL, EQUAL]
    assert [(d.column, d.kind) for d in found["zone"].differences] == [
        ("col2", "real"),
        ("col3", "zone_shift"),
    ]
    (masked,) = found["case"].differences
    assert (masked.kind, masked.onprem, masked.cloud) == ("case", MASK, MASK)
    assert (found["only on-prem"].found, found["only cloud"].found) == (NOT_CLOUD, NOT_ONPREM)
    assert found["none"].found == NOWHERE
    assert [d.column for d in found["it's"].differences] == ["col4"]


def test_the_command_tells_the_columns_and_fails_with_5(
    project: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.root)
    done = CliRunner().invoke(cli, ["-o", "json", "reconcile", "why", "business", "zone", "case"])
    assert isinstance(done.exception, DifferenceError)
    told = orjson.loads(done.stdout)
    assert told["kinds"] == {"zone_shift": 1, "case": 1, "real": 1}
    assert "ADA" not in done.stdout
    same = CliRunner().invoke(cli, ["reconcile", "why", "business", "same"])
    assert (same.exit_code, same.stdout) == (0, "same: equal\n")


def test_of_several_rows_of_a_key_the_newest_version_counts(tmp_path: Path) -> None:
    newest = AT.replace(tzinfo=None) + timedelta(days=1)
    rows = [row("a"), row("a", last_updated=newest, col1="new"), row("a", col1="old")]
    written(tmp_path / "x.parquet", rows)
    source = parquet_source(tmp_path, "x.parquet")
    found = DuckRows(ParquetQueries(), lambda: source, "pk", "last_updated").read(["a"])
    assert (found["a"].values["col1"], found["a"].version) == ("new", AT + timedelta(days=1))
    assert found["a"].values["col3"] == AT


def test_what_is_declared_and_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError):
        parquet_source(tmp_path, "x.parquet")
    written(tmp_path / "x.parquet", [row("a")])
    with pytest.raises(SettingsError) as refused:
        DuckRows(ParquetQueries(), lambda: parquet_source(tmp_path, "x.parquet"), "pkk", None)
    assert "Did you mean `pk`?" in refused.value.fix
