"""What `dataset drift` says of a field: what becomes of it, whether it was renamed, how to declare it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.clock import START
from tests.support.manifests import ORDERS, load_manifest

from headgate.core.ledger.model import Drifted, DriftKind
from headgate.declarations.types import DOUBLE, JSON
from headgate.pipeline.compile.evolution import evolved_column
from headgate.pipeline.drift_report import Brought, manifest_lines, plain_name, report


def drifted(field: str, kind: DriftKind, records: int = 10) -> Drifted:
    return Drifted(field, kind, records, START, START, 1)


TIP = Brought(evolved_column("tip", DOUBLE), 25)
SEEN = (
    drifted("tip", DriftKind.UNKNOWN),
    drifted("Order_ID", DriftKind.UNKNOWN, 3),
    drifted("a.b", DriftKind.UNKNOWN, 2),
    drifted("total_amount", DriftKind.MISSING, 25),
    drifted("created_at", DriftKind.RETYPED, 1),
)


def becomes(folder: Path, contract: str, *brought: Brought) -> dict[str, str]:
    dataset = load_manifest(folder, f"{ORDERS}contract: {contract}\n").value
    return {d.field: d.becomes for d in report(dataset, SEEN, brought).deviations}


def test_what_becomes_of_each_field_follows_the_contract(tmp_path: Path) -> None:
    assert becomes(tmp_path, "evolve", TIP) == {
        "tip": "column, DOUBLE",
        "Order_ID": "kept in _extra: a column has that name, or one that differs by case only",
        "a.b": "kept in _extra: its name has signs that a column's cannot have",
        "total_amount": "NULL",
        "created_at": "dead letter",
    }
    assert set(becomes(tmp_path, "quarantine").values()) == {"dead letter"}
    assert becomes(tmp_path, "freeze")["tip"] == "kept in _extra"


def test_missing_as_often_as_a_new_one_is_there_may_be_renamed(tmp_path: Path) -> None:
    dataset = load_manifest(tmp_path).value
    hints = {d.field: d.hint for d in report(dataset, SEEN, [TIP]).deviations}
    assert hints["total_amount"] == "renamed to tip?"
    assert hints["tip"] == ""
    # Without the rows of the table there is nothing that is there as often.
    assert {d.hint for d in report(dataset, SEEN, []).deviations} == {""}


def test_only_a_field_of_a_fitting_type_may_be_the_renamed_one_and_only_once(
    tmp_path: Path,
) -> None:
    columns = {"fare": "DOUBLE", "fee": "INT", "paid_at": "STRING", "shared": "BOOLEAN"}
    lines = "".join(
        f"  - {{name: {name}, kafka_type: {kind}, bronze_type: {kind},"
        f" silver_name: {name}, silver_type: {kind}}}\n"
        for name, kind in columns.items()
    )
    dataset = load_manifest(tmp_path, ORDERS.replace("dedup_key:", f"{lines}dedup_key:")).value
    missing = [drifted(name, DriftKind.MISSING, 25) for name in columns]
    told = report(dataset, [drifted("tip", DriftKind.UNKNOWN, 25), *missing], [TIP])
    hints = {d.field: d.hint for d in told.deviations if d.hint}
    assert hints == {"fare": "renamed to tip?"}
    fares = Brought(evolved_column("Fare_amount", DOUBLE), 25)
    seen_ = [drifted(name, DriftKind.UNKNOWN, 25) for name in ("tip", "Fare_amount")]
    both = report(dataset, [*seen_, *missing], [TIP, fares])
    assert [d.hint for d in both.deviations if d.hint] == ["renamed to Fare_amount?"]


def test_the_lines_can_be_pasted_and_are_then_no_drift(tmp_path: Path) -> None:
    dataset = load_manifest(tmp_path).value
    lines = report(dataset, SEEN, [TIP]).lines
    assert "name: tip" in lines
    assert "Order_ID" not in lines
    pasted = load_manifest(tmp_path, ORDERS.replace("dedup_key:", f"{lines}dedup_key:")).value
    assert pasted.column("tip").bronze_type == DOUBLE
    assert report(pasted, SEEN, []).deviations[0].becomes == "declared now"


@pytest.mark.parametrize(
    ("name", "silver"),
    [
        ("TipAmount", "tip_amount"),
        ("größe", "gr_e"),
        ("no", "no"),
        ("9", "field_9"),
        ("名", "field"),
    ],
)
def test_any_name_can_be_declared(tmp_path: Path, name: str, silver: str) -> None:
    lines = manifest_lines([evolved_column(name, JSON)])
    declared = load_manifest(tmp_path, ORDERS.replace("dedup_key:", f"{lines}dedup_key:")).value
    column = declared.columns[-1]
    assert (column.name, column.silver_name, plain_name(name)) == (name, silver, silver)
