"""dbt is told where silver is read, and tests exactly what the manifest promises."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
import yaml
from tests.support.manifests import ORDERS, ROOT, load_manifest

from headgate.pipeline.compile.dbt_files import model_tests, promises, quoted, source_entry

FILTERS = 'quality_filters: ["created_at IS NOT NULL", "total_amount > 0"]'
NOT_NULL = {"not_null": {"config": {"severity": "warn"}}}


def columns(folder: Path, text: str = ORDERS) -> dict[str, dict[str, object]]:
    document = yaml.safe_load(model_tests(load_manifest(folder, text).value, "m"))
    (model,) = document["models"]
    return {column["name"]: column for column in model["columns"]}


def asked(folder: Path, column: str, filters: str = "", text: str = ORDERS) -> object:
    given = text.replace(FILTERS, f"quality_filters: [{filters}]") if filters else text
    return columns(folder, given)[column].get("data_tests", [])


def test_keys_times_and_dates_are_tested(tmp_path: Path) -> None:
    assert asked(tmp_path, "orders_id") == ["not_null", "unique"]
    assert asked(tmp_path, "created_at") == ["not_null"]
    assert asked(tmp_path, "order_date") == ["not_null"]


def test_what_no_filter_promises_is_a_warning(tmp_path: Path) -> None:
    assert asked(tmp_path, "created_at", '"total_amount > 0"') == [NOT_NULL]
    assert asked(tmp_path, "order_date", '"total_amount > 0"') == [NOT_NULL]
    other_key = ORDERS.replace("surrogate_key_fields: [order_id, created_at]",
                               "surrogate_key_fields: [order_id]")  # fmt: skip
    found = asked(tmp_path, "orders_id", text=other_key)
    assert found == ["not_null", {"unique": {"config": {"severity": "warn"}}}]


@pytest.mark.parametrize(
    ("filters", "column", "expected"),
    [
        # Rounding to two decimals may give zero.
        ('"total_amount > 0"', "total_amount", ["not_null", "zero"]),
        ('"total_amount >= 0"', "total_amount", ["not_null", "zero"]),
        ('"total_amount IS NULL OR total_amount >= 0"', "total_amount", ["zero"]),
        ('"total_amount BETWEEN 1 AND 9"', "total_amount", ["not_null", "zero"]),
        ('"total_amount > -5"', "total_amount", ["not_null"]),
        ('"total_amount < 9 AND order_id IS NOT NULL"', "order_id", ["not_null"]),
        ('"total_amount < 9 OR order_id IS NOT NULL"', "order_id", []),
        ('"NOT (order_id IS NULL)"', "order_id", ["not_null"]),
        ("\"order_id <=> 'a'\"", "order_id", ["not_null"]),
        ('"order_id IS NULL OR total_amount > 0"', "total_amount", []),
    ],
)
def test_a_filter_makes_the_tests_that_it_allows(
    filters: str, column: str, expected: list[str], tmp_path: Path
) -> None:
    zero = {"positive_value": {"arguments": {"or_zero": True}}}
    wanted = [zero if name == "zero" else name for name in expected]
    assert asked(tmp_path, column, filters) == wanted


def test_values_and_signs_hold_where_the_type_stays(tmp_path: Path) -> None:
    text = ORDERS.replace('silver_type: "DECIMAL(10, 2)"', "silver_type: DOUBLE")
    assert asked(tmp_path, "total_amount", text=text) == ["not_null", "positive_value"]
    listed = asked(tmp_path, "order_id", "\"order_id IN ('a', 'no', '1')\"")
    values = {"accepted_values": {"arguments": {"values": ["a", "no", "1"]}}}
    assert listed == ["not_null", values]


@pytest.mark.parametrize("text", ["it\\\\'s", "{{ x }}"])
def test_a_text_that_dbt_would_read_as_its_own_is_not_listed(text: str, tmp_path: Path) -> None:
    assert asked(tmp_path, "order_id", f"\"order_id IN ('a', '{text}')\"") == ["not_null"]


def test_the_record_time_is_never_null(tmp_path: Path) -> None:
    text = (
        ORDERS.replace("event_ts_col: created_at", "event_ts_col: kafka_timestamp")
        .replace(", is_event_ts: true", "")
        .replace("CAST(created_at AS DATE)", "CAST(kafka_timestamp AS DATE)")
    )
    assert asked(tmp_path, "order_date", '"total_amount > 0"', text) == ["not_null"]
    assert promises(load_manifest(tmp_path, text).value)["kafka_timestamp"].not_null


@pytest.mark.parametrize("comment", ["{{ x }}", '{% y %} "', "a: b # c", "- é ü\\tz", "{ d }"])
def test_a_comment_is_a_description_and_nothing_else(comment: str, tmp_path: Path) -> None:
    text = ORDERS.replace('comment: "in USD"', f"comment: '{comment}'")
    described = columns(tmp_path, text)["total_amount"]["description"]
    plain = comment if "{" not in comment else f"{{% raw %}}{comment}{{% endraw %}}"
    assert described == plain


def test_a_reserved_name_is_quoted_in_tests_too(tmp_path: Path) -> None:
    text = ORDERS.replace("silver_name: total_amount", "silver_name: group")
    assert columns(tmp_path, text)["group"]["quote"] is True


def test_no_word_that_duckdb_reserves_stands_bare() -> None:
    words = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category IN"
    found = duckdb.sql(f"{words} ('reserved', 'type_function')").fetchall()
    assert found
    assert [word for (word,) in found if quoted(word) == word] == []


def test_the_source_has_the_form_of_the_shipped_one(tmp_path: Path) -> None:
    made = yaml.safe_load(source_entry(load_manifest(tmp_path).value, "m"))["sources"][0]
    path = ROOT / "dbt" / "models" / "sources" / "sources.yml"
    shipped = yaml.safe_load(path.read_text())["sources"][0]
    ours, theirs = made["tables"][0], shipped["tables"][0]
    assert (made["name"], ours["name"]) == ("silver", "cleaned_orders")
    assert ours["config"].keys() == theirs["config"].keys()
    assert ours["config"]["freshness"] == theirs["config"]["freshness"]
    scanned = theirs["config"]["meta"]["external_location"]
    assert ours["config"]["meta"]["external_location"] == scanned.replace(
        "cleaned_trips", "silver__cleaned_orders"
    )
