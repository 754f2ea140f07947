"""An edited template is what runs; an untouched one follows the manifest; neither is a surprise."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.manifests import ORDERS, compile_manifest

from headgate.core.sql.script import Template
from headgate.errors import DeclarationError, Fault
from headgate.pipeline.compile.dataset import (
    BRONZE_BATCH,
    SILVER,
    SILVER_BACKFILL,
    SILVER_INCREMENTAL,
)
from headgate.pipeline.compile.templates import check_edited, choose, is_sealed, seal

SELECTED = "SELECT\n  record.* EXCEPT (_reason_code, _reason, _drift),"
STRICTER = ORDERS.replace("total_amount > 0", "total_amount > 1")


def edited_faults(folder: Path, file: str, old: str, new: str) -> tuple[Fault, ...]:
    made = compile_manifest(folder)
    text = made.template(file).text
    assert old in text
    picked = choose(made.templates, {file: text.replace(old, new)})
    with pytest.raises(DeclarationError) as caught:
        check_edited(made.dataset, picked, "spark/sql/orders")
    return caught.value.faults


def test_the_digest_ends_the_header_and_fits() -> None:
    text = seal("-- a\n-- b\n\nSELECT 1;\n")
    assert text.startswith("-- a\n-- b\n-- Digest ")
    assert text.endswith("\n\nSELECT 1;\n")
    assert is_sealed(text)


@pytest.mark.parametrize("change", [("SELECT 1", "SELECT 2"), ("-- a", "-- A"), ("\n\n", "\n")])
def test_any_change_breaks_the_seal(change: tuple[str, str]) -> None:
    assert not is_sealed(seal("-- a\n-- b\n\nSELECT 1;\n").replace(*change))


def test_other_line_ends_do_not_break_it_and_a_text_without_a_digest_has_none() -> None:
    assert is_sealed(seal("-- a\n\nSELECT 1;\n").replace("\n", "\r\n"))
    assert not is_sealed("-- a\n\nSELECT 1;\n")


def test_an_untouched_template_of_an_older_manifest_does_not_run(tmp_path: Path) -> None:
    old, new = compile_manifest(tmp_path), compile_manifest(tmp_path, STRICTER)
    picked = choose(new.templates, {SILVER: old.template(SILVER).text})
    assert picked.templates == new.templates
    assert (picked.edited, picked.behind) == ((), (SILVER,))


def test_an_edited_template_runs_also_when_the_manifest_has_moved_on(tmp_path: Path) -> None:
    text = (
        compile_manifest(tmp_path)
        .template(SILVER)
        .text.replace("total_amount > 0", "total_amount > 5")
    )
    new = compile_manifest(tmp_path, STRICTER)
    picked = choose(new.templates, {SILVER: text})
    assert Template(SILVER, text) in picked.templates
    assert (picked.edited, picked.behind) == ((SILVER,), ())
    check_edited(new.dataset, picked, "spark/sql/orders")


def test_templates_equal_to_the_compiled_ones_are_neither(tmp_path: Path) -> None:
    made = compile_manifest(tmp_path)
    picked = choose(made.templates, {t.file: t.text for t in made.templates})
    assert (picked.edited, picked.behind) == ((), ())


def test_an_edited_template_must_give_the_declared_columns(tmp_path: Path) -> None:
    (fault,) = edited_faults(tmp_path, BRONZE_BATCH, SELECTED, "SELECT\n  record.created_at,")
    assert fault.file == "spark/sql/orders/05_bronze_batch.sql.tmpl"
    assert fault.line
    assert "Give exactly: order_id, created_at" in fault.fix


def test_the_columns_of_the_reader_count_as_columns(tmp_path: Path) -> None:
    (fault,) = edited_faults(tmp_path, BRONZE_BATCH, "created_at TIMESTAMP_NTZ,\n", "")
    assert "gives the columns order_id, total_amount" in fault.sentence()


def test_their_order_counts_only_where_rows_are_inserted_by_position(tmp_path: Path) -> None:
    made = compile_manifest(tmp_path)
    turned = made.template(BRONZE_BATCH).text.replace(
        "  session.batch_time AS ingestion_ts,\n  kafka_topic,",
        "  kafka_topic,\n  session.batch_time AS ingestion_ts,",
    )
    by_name = choose(made.templates, {BRONZE_BATCH: turned})
    check_edited(made.dataset, by_name, "spark/sql/orders")
    by_position = choose(made.templates, {BRONZE_BATCH: turned.replace(" BY NAME", "")})
    with pytest.raises(DeclarationError):
        check_edited(made.dataset, by_position, "spark/sql/orders")


def test_an_edited_template_must_keep_its_steps(tmp_path: Path) -> None:
    (fault,) = edited_faults(tmp_path, BRONZE_BATCH, "-- step: refuse\n", "")
    assert "has no step `refuse`" in fault.sentence() or "2 steps" in fault.sentence()
    faults = edited_faults(tmp_path, SILVER_INCREMENTAL, "-- step: classify\n", "")
    assert "classify" in faults[0].sentence()


def test_an_edited_statement_that_is_no_sql_is_told_with_its_line(tmp_path: Path) -> None:
    (fault,) = edited_faults(tmp_path, SILVER, "FROM orders_newest;", "FROM (orders_newest;")
    assert "cannot be read" in fault.what
    assert fault.line


def test_an_edited_backfill_needs_its_step(tmp_path: Path) -> None:
    faults = edited_faults(tmp_path, SILVER_BACKFILL, "-- step: backfill\n", "")
    assert [fault.field for fault in faults] == ["backfill"]
