"""On-prem rows of a table of the lake that moves on while a repair by itself is running."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.support.dead_letter_table import settings_at

from headgate.config.settings import Settings
from headgate.core.lake.duckdb_reader import Lake
from headgate.errors import SettingsError, UnavailableError
from headgate.quality.spec.loader import load_rules
from headgate.quality.spec.rule_set import RuleTable
from headgate.reconcile.repair.automatic import Repaired, Rounds, Tried, run_automatic
from headgate.reconcile.repair.plan import (
    GONE,
    SOURCE_BEHIND,
    Broken,
    RepairPlan,
    RepairReport,
    nothing_sent,
    repair_plan,
)
from headgate.reconcile.repair.table_repairs import open_repairs
from headgate.reconcile.rows import RowsByKey, open_side

ROOT = Path(__file__).parents[3]
NAME = "onprem.business_table"
OLD = datetime(2026, 3, 1, 12, tzinfo=UTC)
NEW = OLD + timedelta(minutes=5)
SCHEMA = pa.schema(
    [("pk", pa.string()), ("col1", pa.string()), ("last_updated", pa.timestamp("us", tz="UTC"))]
)


@dataclass
class OnPrem:
    """A project whose on-prem rows are a table of the lake."""

    settings: Settings
    table: RuleTable
    file: Path

    def append(self, *rows: tuple[str, str, datetime]) -> None:
        self.written().append(_arrow(rows))

    def written(self) -> Any:
        from pyiceberg.catalog.sql import SqlCatalog

        file = (self.settings.catalog_uri or "").removeprefix("jdbc:sqlite:")
        catalog = SqlCatalog("lake", uri=f"sqlite:///{file}", warehouse=self.settings.warehouse)
        catalog.create_namespace_if_not_exists("onprem")
        return catalog.create_table_if_not_exists(NAME, schema=SCHEMA)

    def rewrite(self, *rows: tuple[str, str, datetime]) -> None:
        """As compaction and expiry do: other files, and the old ones removed."""
        folder = self.settings.root / "warehouse"
        old = set(folder.rglob("*.*"))
        self.written().overwrite(_arrow(rows))
        for file in old:
            file.unlink()


def _arrow(rows: Sequence[tuple[str, str, datetime]]) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA
    )


@pytest.fixture
def onprem(tmp_path: Path) -> OnPrem:
    for name in ("rules", "contracts", "env", "warehouse"):
        (tmp_path / name).mkdir()
    for name in ("contracts/business_table.hash.yml", "env/embedded.env"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    file = tmp_path / "rules/topic1.yml"
    file.write_bytes((ROOT / "rules/topic1.yml").read_bytes())
    table = load_rules(file, {}).value.table("business")
    return OnPrem(settings_at(tmp_path), table, file)


@dataclass
class Planning:
    """Work that plans from the open reader and keeps what it planned; one thing happens after each."""

    rows: RowsByKey
    broken: Sequence[Broken]
    then: list[Any]
    plans: list[RepairPlan] = field(default_factory=list[RepairPlan])

    def find(self, most: int) -> Sequence[Broken]:
        return self.broken[:most]

    def repair(self, broken: Sequence[Broken]) -> Repaired:
        keys = [each.pk for each in broken]
        plan = repair_plan("business", "x", broken, self.rows.read(keys), {})
        self.plans.append(plan)
        if self.then:
            self.then.pop(0)()
        return Repaired(nothing_sent(plan), set(), set(keys))

    def finish(self) -> None:
        return None

    def let_go(self) -> None: ...

    def tell(self, report: RepairReport) -> None: ...

    def say(self, words: str) -> None: ...


def test_each_round_sees_the_table_as_it_is_then(onprem: OnPrem) -> None:
    onprem.append(("late", "old", OLD), ("there", "x", NEW))
    broken = [Broken(pk, "MISMATCH", NEW, deleted=False) for pk in ("late", "unborn", "there")]
    with ExitStack() as stack:
        rows = open_side(stack, onprem.settings, onprem.table, "onprem")
        work = Planning(
            rows,
            broken,
            [
                lambda: onprem.append(("late", "new", NEW)),
                lambda: onprem.rewrite(("late", "new", NEW), ("unborn", "new", NEW)),
            ],
        )
        run_automatic(
            Rounds(every=0, most=3), work, lambda: False, tried=Tried(patience=0, longest=0)
        )
        assert rows.read(["late"])["late"].values["col1"] == "new"
    assert [
        ([item.pk for item in plan.items], {each.pk: each.why for each in plan.skipped})
        for plan in work.plans
    ] == [
        (["there"], {"late": SOURCE_BEHIND, "unborn": GONE}),
        (["late", "there"], {"unborn": GONE}),
        (["late", "unborn"], {"there": GONE}),
    ]
    assert {item.version for plan in work.plans for item in plan.items} == {NEW}


def test_a_column_that_comes_later_is_read_too(onprem: OnPrem) -> None:
    from pyiceberg.types import StringType

    onprem.append(("a", "x", OLD))
    with ExitStack() as stack:
        rows = open_side(stack, onprem.settings, onprem.table, "onprem")
        assert rows.columns == ("pk", "col1", "last_updated")
        with onprem.written().update_schema() as change:
            change.add_column("col2", StringType())
        assert rows.read(["a"])["a"].values["col2"] is None
        assert rows.columns == ("pk", "col1", "last_updated", "col2")


def test_files_that_are_gone_are_an_outage_and_no_end(onprem: OnPrem) -> None:
    onprem.append(("a", "x", OLD))
    with Lake.open(onprem.settings) as lake:
        kept = lake.scan_sql(NAME)
        for pattern in ("*.parquet", "*.metadata.json"):
            for file in (onprem.settings.root / "warehouse").rglob(pattern):
                file.unlink()
            with pytest.raises(UnavailableError):
                lake.query(f"SELECT * FROM {kept}")
        with pytest.raises(UnavailableError):
            lake.scan_sql(NAME)


def test_rows_whose_age_nobody_declares_are_not_repaired(onprem: OnPrem) -> None:
    text = onprem.file.read_text()
    declared = f"{{iceberg: {NAME}, key: pk, version: last_updated}}"
    assert declared in text
    onprem.file.write_text(text.replace(declared, f"{{iceberg: {NAME}, key: pk}}"))
    table = load_rules(onprem.file, {}).value.table("business")
    with pytest.raises(SettingsError) as refused, open_repairs(onprem.settings, table):
        pass
    assert "has no `version`" in refused.value.why
    assert "version: last_updated" in refused.value.fix
