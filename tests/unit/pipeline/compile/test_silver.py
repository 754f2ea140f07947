"""Silver SQL: filters, casts, names, key and order as declared."""

from __future__ import annotations

from pathlib import Path

import sqlglot
from sqlglot import exp
from tests.support.manifests import ORDERS, compile_manifest, selected_columns

from headgate.core.sql.script import Script, parse_script
from headgate.pipeline.compile.dataset import SILVER, SILVER_BACKFILL, SILVER_INCREMENTAL
from headgate.pipeline.compile.silver import columns_as


def script(folder: Path, file: str = SILVER, text: str = ORDERS) -> Script:
    return parse_script(file, compile_manifest(folder, text).template(file).text)


def test_the_steps_that_the_engine_runs_are_there(tmp_path: Path) -> None:
    shared = "source table table view view".split()
    assert [s.name for s in script(tmp_path).steps] == [*shared, "rebuild"]
    merged = script(tmp_path, SILVER_INCREMENTAL)
    assert [s.name for s in merged.steps] == [
        *shared,
        *["bounds"] * 3,
        "classify",
        "append",
        "merge",
    ]


def test_both_forms_clean_alike(tmp_path: Path) -> None:
    whole, merged = script(tmp_path), script(tmp_path, SILVER_INCREMENTAL)
    assert whole.named("view") == merged.named("view")
    assert whole.named("table") == merged.named("table")


def test_a_row_fulfils_every_filter_and_fits_its_types(tmp_path: Path) -> None:
    clean = script(tmp_path).named("view")[0]
    assert "(created_at IS NOT NULL)\n  AND (total_amount > 0)" in clean
    fits = "AND (total_amount IS NULL OR try_cast(total_amount AS DECIMAL(10, 2)) IS NOT NULL)"
    assert fits in clean


def test_money_is_cast_and_the_key_is_an_md5_over_the_silver_values(tmp_path: Path) -> None:
    clean = script(tmp_path).named("view")[0]
    assert "try_cast(total_amount AS DECIMAL(10, 2)) AS total_amount" in clean
    assert "AS orders_id" in clean
    assert clean.index("md5(") < clean.index("coalesce(char_length(order_id), -1)")


def test_silver_is_made_so_that_a_task_has_one_open_file(tmp_path: Path) -> None:
    table = script(tmp_path).named("table")[1]
    assert "'write.spark.fanout.enabled' = 'false'" in table
    assert "'write.distribution-mode' = 'hash'" in table


def test_the_newest_row_of_a_key_is_known_by_its_origin_not_by_when_it_came_in(
    tmp_path: Path,
) -> None:
    newest = script(tmp_path).named("view")[1]
    assert "PARTITION BY order_id, created_at" in newest
    assert "ORDER BY kafka_timestamp DESC, kafka_partition DESC, kafka_offset DESC" in newest


def test_the_insert_names_the_columns_in_the_order_of_the_table(tmp_path: Path) -> None:
    whole = script(tmp_path)
    table = sqlglot.parse_one(whole.named("table")[1], read="spark")
    declared = [column.name for column in table.find_all(exp.ColumnDef)]
    assert selected_columns(whole.one("rebuild")) == declared


def test_the_merge_looks_only_at_the_dates_of_its_keys_where_the_key_decides_the_date(
    tmp_path: Path,
) -> None:
    near = "AND held.order_date <=> fresh.order_date"
    assert near in script(tmp_path, SILVER_INCREMENTAL).one("merge")
    loose = ORDERS.replace("dedup_key: [order_id, created_at]", "dedup_key: [order_id]")
    assert near not in script(tmp_path, SILVER_INCREMENTAL, loose).one("merge")


def test_the_merge_compares_keys_so_that_null_equals_null(tmp_path: Path) -> None:
    merged = script(tmp_path, SILVER_INCREMENTAL)
    assert "ON held.order_id <=> fresh.order_id" in merged.one("merge")
    assert "ON held.order_id <=> fresh.order_id" in merged.one("classify")


def test_a_backfill_replaces_the_rows_of_its_dates_alone(tmp_path: Path) -> None:
    made = script(tmp_path, SILVER_BACKFILL)
    assert [s.name for s in made.steps] == [
        *"dates dates source view view view".split(),
        *"columns statement statement backfill".split(),
    ]
    assert "BETWEEN session.backfill_from AND session.backfill_to" in made.named("view")[0]
    statement = made.named("statement")[-1]
    assert "REPLACE WHERE order_date BETWEEN :first_date AND :last_date" in statement
    assert "FROM orders_newest" in statement


def test_the_rows_of_a_backfill_go_in_in_the_order_that_the_table_has() -> None:
    assert columns_as(["a", "b", "day"], ["b", "day", "old", "a"]) == "b, day, NULL AS old, a"
    assert columns_as(["a", "b"], ["b"]) == "b, a"  # Spark refuses one too many


def test_a_backfill_leaves_keys_alone_that_silver_holds_under_another_date(tmp_path: Path) -> None:
    loose = ORDERS.replace("dedup_key: [order_id, created_at]", "dedup_key: [order_id]")
    made = script(tmp_path, SILVER_BACKFILL, loose)
    unclaimed = made.named("view")[-1]
    assert "LEFT ANTI JOIN" in unclaimed
    assert "ON held.order_id <=> fresh.order_id" in unclaimed
    assert "FROM orders_unclaimed" in made.named("statement")[-1]
