"""What a dataset's contract makes of fields that are unknown, missing or of any shape."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.manifests import ORDERS, compile_manifest, load_manifest, load_templates

from headgate.core.sql.script import Script, parse_script
from headgate.core.sql.strict_json import OWN_NAMES
from headgate.declarations.types import DOUBLE, JSON
from headgate.errors import DeclarationError
from headgate.pipeline.compile.dataset import BRONZE_BATCH, evolved_bronze
from headgate.pipeline.compile.evolution import evolved_column


def script(folder: Path, contract: str) -> Script:
    text = compile_manifest(folder, f"{ORDERS}contract: {contract}\n").template(BRONZE_BATCH).text
    return parse_script(BRONZE_BATCH, text)


@pytest.mark.parametrize("contract", ["evolve", "freeze"])
def test_what_is_kept_has_columns_of_its_own(tmp_path: Path, contract: str) -> None:
    made = script(tmp_path, contract)
    assert "record.* EXCEPT (_reason_code, _reason, _drift)," in made.one("accept")
    assert "'drift', 'keep'" in made.text
    assert "_extra STRING COMMENT" in made.named("table")[1]
    assert "'write.metadata.metrics.column._extra' = 'counts'" in made.named("table")[1]


def test_quarantine_refuses_and_adds_no_column(tmp_path: Path) -> None:
    made = script(tmp_path, "quarantine")
    assert "EXCEPT (_extra, _missing, _reason_code, _reason, _drift)" in made.one("accept")
    assert "_extra STRING" not in made.text
    assert "'drift', 'refuse'" in made.text


@pytest.mark.parametrize("contract", ["evolve", "freeze", "quarantine"])
def test_the_header_says_what_becomes_of_unknown_fields(tmp_path: Path, contract: str) -> None:
    assert f"-- Contract {contract}: " in script(tmp_path, contract).text.split("\n\n")[0]


def test_without_a_word_the_contract_is_to_evolve(tmp_path: Path) -> None:
    assert load_manifest(tmp_path).value.contract == "evolve"


def test_another_contract_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(DeclarationError) as refused:
        load_manifest(tmp_path, f"{ORDERS}contract: ignore\n")
    (fault,) = refused.value.faults
    assert (fault.field, fault.fix) == ("contract", "Known values: evolve, freeze, quarantine.")


@pytest.mark.parametrize("name", ["_extra", "_Missing"])
def test_a_field_cannot_have_the_name_of_such_a_column(tmp_path: Path, name: str) -> None:
    assert name.lower() in OWN_NAMES
    with pytest.raises(DeclarationError) as refused:
        compile_manifest(tmp_path, ORDERS.replace("{name: total_amount,", f"{{name: {name},"))
    assert "is taken" in refused.value.why


def test_columns_that_came_by_themselves_are_filled_but_not_asked_for(tmp_path: Path) -> None:
    dataset = load_manifest(tmp_path).value
    brought = [evolved_column("tip", DOUBLE), evolved_column("stops", JSON)]
    made = {t.file: t.text for t in evolved_bronze(dataset, brought, load_templates(), "m.yml")}
    evolved = parse_script(BRONZE_BATCH, made[BRONZE_BATCH])
    assert "-- Columns that the topic brought: tip, stops." in evolved.text
    (read,) = evolved.named("view")
    assert "     tip DOUBLE,\n     stops STRING'," in read
    assert "'json', 'stops'," in read
    assert "'evolved', 'tip, stops'" in read
    assert "tip DOUBLE COMMENT 'Not declared; read from the topic as DOUBLE'" in evolved.text
    assert compile_manifest(tmp_path).revision[:12] not in evolved.text


@pytest.mark.parametrize("types", [("JSON", "JSON"), ("JSON", "BIGINT"), ("STRING", "JSON")])
def test_json_is_text_in_the_tables(tmp_path: Path, types: tuple[str, str]) -> None:
    kafka, stored = types
    text = ORDERS.replace(
        "kafka_type: DOUBLE, bronze_type: DOUBLE", f"kafka_type: {kafka}, bronze_type: {stored}"
    )
    with pytest.raises(DeclarationError) as refused:
        load_manifest(tmp_path, text)
    assert "cannot become" in refused.value.why
    assert "a table keeps JSON as its text" in refused.value.why


def test_a_json_column_keeps_any_value_as_its_text(tmp_path: Path) -> None:
    text = ORDERS.replace(
        "kafka_type: DOUBLE, bronze_type: DOUBLE", "kafka_type: JSON, bronze_type: STRING"
    ).replace('"total_amount > 0"', '"total_amount IS NOT NULL"')
    made = parse_script(BRONZE_BATCH, compile_manifest(tmp_path, text).template(BRONZE_BATCH).text)
    assert "total_amount STRING" in made.named("view")[0]
    assert "'json', 'total_amount'" in made.named("view")[0]
