"""Fields that nobody declared, that are missing, renamed, retyped, nested or differ by case only."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.support.dataset_events import compact, event
from tests.support.pipeline import InjectedFaultError, Pipeline, fail_at

from headgate.certify.certificate import broken
from headgate.core.engine.batch import Point
from headgate.core.ledger.model import DriftKind
from headgate.core.sql.script import PLACEHOLDERS
from headgate.declarations.types import BIGINT
from headgate.errors import OperationError
from headgate.pipeline.compile.evolution import evolved_column
from headgate.pipeline.drift_report import drift_report
from headgate.pipeline.loader import load_dataset
from headgate.pipeline.spec import Dataset

New = Callable[..., Pipeline]
TEN = range(10)


def record(number: int, **changes: Any) -> dict[str, Any]:
    return {**event(Random(number), number), **changes}


def without(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}


def drifting() -> list[bytes]:
    """Forty records: ten as declared, and ten each with something new, missing, renamed; five retyped."""
    renamed = [without(record(n, total=1.5), "amount") for n in TEN]
    return [
        compact(fields)
        for fields in (
            *(record(n) for n in TEN),
            *(record(n, tip=n + 0.5, stops=[{"at": n}], paid=True, zone=n) for n in TEN),
            *(without(record(n), "name", "day") for n in TEN),
            *renamed,
            *(record(n, amount="much") for n in range(5)),
            *(record(n, ID=n, **{"a.b": None}) for n in range(5)),
        )
    ]


def with_points() -> list[bytes]:
    """2.0 is no BIGINT, and `_extra` has it as 2: the column that it makes must take 2.5 later."""
    odd = [b'"fee":2.0,"ratio":1e2', b'"fee":4.0,"ratio":7', b'"fee":5,"big":10000000000000001.0']
    return [compact(record(n))[:-1] + b"," + text + b"}" for n, text in enumerate(odd)]


def counts(pipeline: Pipeline) -> dict[tuple[str, str], int]:
    found = pipeline.store.drift(f"bronze-{pipeline.name}")
    return {(row.kind.value, row.field): row.records for row in found}


RETYPED = {("retyped", "amount"): 5}
MISSING = {("missing", "name"): 10, ("missing", "day"): 10, ("missing", "amount"): 10}
UNKNOWN = {
    **{("unknown", name): 10 for name in ("tip", "stops", "paid", "zone", "total")},
    ("unknown", "ID"): 5,
    ("unknown", "a.b"): 5,
}


WITH_POINTS = {("unknown", "fee"): 3, ("unknown", "ratio"): 2, ("unknown", "big"): 1}


def under(pipeline: Pipeline, contract: str) -> Pipeline:
    with manifest(pipeline).open("a") as file:
        file.write(f"contract: {contract}\n")
    return pipeline


def manifest(pipeline: Pipeline) -> Path:
    return pipeline.settings.root / "datasets" / pipeline.name / "dataset.yml"


def declared(pipeline: Pipeline) -> Dataset:
    return load_dataset(manifest(pipeline), PLACEHOLDERS).value


def columns(pipeline: Pipeline) -> dict[str, str]:
    table = pipeline.session.table(f"lake.bronze.{pipeline.name}")
    return {field.name: field.dataType.simpleString() for field in table.schema.fields}


def certified(pipeline: Pipeline) -> None:
    pipeline.process("silver")
    assert broken(pipeline.certify()) == ()
    again = pipeline.recheck()
    assert again.returncode == 0, again.stdout


def test_evolve_makes_columns_of_what_is_new_and_keeps_the_rest(new_pipeline: New) -> None:
    pipeline = new_pipeline()
    pipeline.produce([*drifting(), *with_points()])
    pipeline.process("bronze")

    assert pipeline.outcomes() == {"accepted": 48, "refused": 5}
    assert {letter.code for letter in pipeline.dead_letters()} == {"wrong_type"}
    assert counts(pipeline) == {**UNKNOWN, **WITH_POINTS, **MISSING, **RETYPED}
    made = columns(pipeline)
    assert [made[name] for name in ("fee", "ratio", "big")] == ["double", "double", "string"]
    assert {name: made[name] for name in ("tip", "stops", "paid", "zone", "total")} == {
        "tip": "double", "stops": "string", "paid": "boolean", "zone": "bigint", "total": "double",
    }  # fmt: skip
    assert "ID" not in made
    new = pipeline.select("tip, stops, paid, zone", f"bronze.{pipeline.name}", "tip IS NOT NULL")
    assert sorted(new) == [(n + 0.5, f'[{{"at":{n}}}]', True, n) for n in TEN]
    kept = pipeline.select("_extra", f"bronze.{pipeline.name}", "_extra IS NOT NULL")
    assert sorted(json.loads(row[0])["ID"] for row in kept) == list(range(5))
    assert {tuple(json.loads(row[0])) for row in kept} == {("ID", "a.b")}
    assert len(pipeline.store.open_intents(f"bronze-{pipeline.name}")) == 0

    # What has become a column is no drift any more, and another type in it is refused.
    pipeline.produce([compact(record(n, tip=2.5)) for n in TEN] + [compact(record(1, tip="x"))])
    pipeline.produce([compact(record(9, fee=2.5))])
    pipeline.process("bronze")
    assert pipeline.outcomes() == {"accepted": 59, "refused": 6}
    known = {**UNKNOWN, **WITH_POINTS, **MISSING, **RETYPED}
    assert counts(pipeline) == {**known, ("retyped", "tip"): 1}
    found = pipeline.select("sum(fee), sum(ratio)", f"bronze.{pipeline.name}")
    assert found == [(13.5, 107.0)]
    told = drift_report(pipeline.settings, pipeline.store, declared(pipeline))
    assert told.columns == {
        "tip": 20, "stops": 10, "paid": 10, "zone": 10, "total": 10, "fee": 4, "ratio": 2, "big": 1,
    }  # fmt: skip
    assert "name: stops\n    kafka_type: JSON\n    bronze_type: STRING" in told.lines
    first, second = pipeline.ledger()
    assert first.revisions == second.revisions
    latest = pipeline.store.latest(f"bronze-{pipeline.name}")
    assert latest
    assert first.revisions != (latest.revision,)
    certified(pipeline)


def test_columns_that_would_refuse_what_is_sound_are_taken_back(
    new_pipeline: New, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = new_pipeline()
    pipeline.produce([compact(record(n, tip=n + 0.5)) for n in TEN])
    wrong = evolved_column("tip", BIGINT)
    monkeypatch.setattr("headgate.pipeline.drift.new_columns", lambda *_: (wrong,))
    pipeline.process("bronze")
    assert pipeline.outcomes() == {"accepted": 10}
    assert "tip" not in columns(pipeline)
    kept = pipeline.select("_extra", f"bronze.{pipeline.name}")
    assert sorted(json.loads(row[0])["tip"] for row in kept) == [n + 0.5 for n in TEN]
    assert counts(pipeline) == {("unknown", "tip"): 10}
    assert pipeline.store.open_intents(f"bronze-{pipeline.name}") == ()


def test_freeze_keeps_what_is_unknown_in_one_column(new_pipeline: New) -> None:
    pipeline = under(new_pipeline(), "freeze")
    pipeline.produce(drifting())
    pipeline.process("bronze")
    assert pipeline.outcomes() == {"accepted": 45, "refused": 5}
    assert counts(pipeline) == {**UNKNOWN, **MISSING, **RETYPED}
    assert not {"tip", "stops"} & set(columns(pipeline))
    kept = pipeline.select("_extra", f"bronze.{pipeline.name}", "_extra IS NOT NULL")
    extras = [json.loads(row[0]) for row in kept]
    assert len(extras) == 25
    assert {"tip": 0.5, "stops": [{"at": 0}], "paid": True, "zone": 0} in extras
    (lacking,) = set(
        pipeline.select("_missing", f"bronze.{pipeline.name}", "_extra LIKE '%total%'")
    )
    assert json.loads(lacking[0]) == ["amount"]


def test_quarantine_refuses_every_record_that_deviates(new_pipeline: New) -> None:
    pipeline = under(new_pipeline(), "quarantine")
    pipeline.produce(drifting())
    pipeline.process("bronze")
    assert pipeline.outcomes() == {"accepted": 10, "refused": 40}
    codes = [letter.code for letter in pipeline.dead_letters()]
    found = {code: codes.count(code) for code in set(codes)}
    assert found == {"unknown_field": 25, "missing_field": 10, "wrong_type": 5}
    assert counts(pipeline) == {**UNKNOWN, **MISSING, **RETYPED}
    words = {letter.reason for letter in pipeline.dead_letters()}
    assert "the record has a field that is not declared; +total; -amount" in words
    assert not {"tip", "_extra", "_missing"} & set(columns(pipeline))
    certified(pipeline)


def refuse_to_amend(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    def struck(*_: object) -> None:
        raise InjectedFaultError("after the table has its columns")

    monkeypatch.setattr(pipeline.store, "amend", struck)


LATER = [pytest.param(where, marks=pytest.mark.slow) for where in ("before", "after", "published")]


@pytest.mark.parametrize("where", ["between", *LATER])
def test_a_batch_broken_off_while_it_evolves_is_finished_right(
    new_pipeline: New, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    pipeline = new_pipeline()
    pipeline.produce(drifting())
    faults = {
        "before": fail_at(Point.AFTER_STAGING),
        "after": fail_at(Point.AFTER_STAGING, 2),
        "published": fail_at(Point.AFTER_PUBLISH),
    }
    with monkeypatch.context() as patched:
        if where == "between":
            refuse_to_amend(pipeline, patched)
        with pytest.raises(InjectedFaultError):
            pipeline.process("bronze", faults.get(where))
    assert ("tip" in columns(pipeline)) == (where != "before")
    pipeline.process("bronze")
    assert pipeline.outcomes() == {"accepted": 45, "refused": 5}
    assert counts(pipeline) == {**UNKNOWN, **MISSING, **RETYPED}
    total = pipeline.select("sum(tip), sum(zone), count(*)", f"bronze.{pipeline.name}")
    assert total == [(50.0, 45, 45)]
    assert len(pipeline.store.open_intents(f"bronze-{pipeline.name}")) == 0


@pytest.mark.slow
def test_a_flood_of_field_names_cannot_blow_up_the_table(new_pipeline: New) -> None:
    pipeline = new_pipeline()
    odd = ["x" * 10_000, "a.b", "b`c", "ID", "_extra", "kafka_offset", "", "größe", "${HOME}", "'"]
    flood = [record(n, **{f"f{n}_{m}": m for m in range(60)}) for n in range(20)]
    pipeline.produce([compact(record(1, **dict.fromkeys(odd, 1)))])
    pipeline.produce(compact(fields) for fields in flood)
    pipeline.process("bronze")
    assert pipeline.outcomes() == {"accepted": 21}
    assert 100 < len(columns(pipeline)) < 130
    kept = pipeline.select("_extra", f"bronze.{pipeline.name}", "_extra IS NOT NULL")
    in_extra = [name for row in kept for name in json.loads(row[0])]
    evolved = sum(1 for name in columns(pipeline) if name.startswith("f") and "_" in name)
    assert len([name for name in in_extra if name.startswith("f")]) + evolved == 1_200
    assert set(odd) - set(in_extra) <= {"größe"}
    found = counts(pipeline)
    assert len(found) == 201
    # Every one of the 1,210 fields stood in one record.
    assert found[DriftKind.UNKNOWN, "… 1010 further fields"] == 1_010


@pytest.mark.slow
def test_a_field_that_is_declared_later_is_the_column_that_it_became(new_pipeline: New) -> None:
    pipeline = new_pipeline()
    pipeline.produce([compact(record(n, tip=n + 0.5)) for n in TEN])
    pipeline.process("bronze")
    pipeline.process("silver")
    line = "{name: tip, kafka_type: DOUBLE, bronze_type: DOUBLE, silver_name: tip, silver_type: DOUBLE}"
    text = manifest(pipeline).read_text()
    manifest(pipeline).write_text(text.replace("dedup_key:", f"  - {line}\ndedup_key:"))
    assert "tip" not in pipeline.session.table(f"lake.silver.{pipeline.name}").columns
    certified(pipeline)
    assert columns(pipeline)["tip"] == "double"
    assert pipeline.select("sum(tip)", f"silver.{pipeline.name}")[0][0] > 0


@pytest.mark.slow
def test_a_column_that_is_new_to_both_tables_is_added_to_them(new_pipeline: New) -> None:
    pipeline = under(new_pipeline(), "freeze")
    pipeline.produce([compact(record(n, tip=n)) for n in TEN])
    pipeline.process("bronze")
    pipeline.process("silver")
    line = (
        "{name: tip, kafka_type: JSON, bronze_type: STRING, silver_name: tip, silver_type: STRING}"
    )
    text = manifest(pipeline).read_text()
    manifest(pipeline).write_text(text.replace("dedup_key:", f"  - {line}\ndedup_key:"))
    pipeline.process("silver")
    pipeline.produce([compact(record(n, tip={"n": n})) for n in range(10, 20)])
    pipeline.process("bronze")
    certified(pipeline)
    kept = pipeline.select("count(tip), max(tip)", f"silver.{pipeline.name}")
    assert kept[0][1].startswith('{"n":1')


@pytest.mark.slow
def test_a_declared_type_that_the_column_has_not_is_refused_with_a_way_out(
    new_pipeline: New,
) -> None:
    pipeline = new_pipeline()
    pipeline.produce([compact(record(n, tip=n)) for n in TEN])
    pipeline.process("bronze")
    line = "{name: tip, kafka_type: DOUBLE, bronze_type: DOUBLE, silver_name: tip, silver_type: DOUBLE}"
    text = manifest(pipeline).read_text()
    manifest(pipeline).write_text(text.replace("dedup_key:", f"  - {line}\ndedup_key:"))
    with pytest.raises(OperationError, match="is long, declared is DOUBLE") as refused:
        pipeline.process("bronze")
    _, _, way_out = refused.value.fix.partition("anew: ")
    pipeline.session.sql(way_out)
    # Bronze has no snapshot yet of after that: what is now called tip_before must not fill tip.
    pipeline.process("silver")
    assert pipeline.select("count(*) > 0, count(tip)", f"silver.{pipeline.name}") == [(True, 0)]
    pipeline.produce([compact(record(n, tip=n + 0.5)) for n in TEN])
    pipeline.process("bronze")
    found = pipeline.select("sum(tip), sum(tip_before)", f"bronze.{pipeline.name}")
    assert found == [(50.0, 45)]
