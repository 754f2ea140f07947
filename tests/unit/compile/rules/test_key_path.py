"""A key inside the record: only what is on the path is read, and several keys become a list."""

from __future__ import annotations

from headgate.compile.rules.key_path import Step, key_value, read_path


def test_a_path_is_fields_indexes_and_choices() -> None:
    assert read_path("a.b[0].c[type='PK'].value") == (
        Step("a"),
        Step("b", index=0),
        Step("c", field="type", text="PK"),
        Step("value"),
    )


def test_only_the_fields_on_the_path_are_read() -> None:
    sql = key_value("t", "rows[type='PK'].value")
    assert "from_json(t, 'rows ARRAY<STRUCT<type: STRING, value: STRING>>')" in sql
    assert "filter(" in sql
    assert "item.type = 'PK'" in sql


def test_a_plain_path_needs_no_list() -> None:
    assert key_value("t", "a.b") == "from_json(t, 'a STRUCT<b: STRING>').a.b"


def test_an_index_out_of_range_is_null() -> None:
    assert key_value("t", "a[3]") == "get(from_json(t, 'a ARRAY<STRING>').a, 3)"
