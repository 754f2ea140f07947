"""A key inside the record: the steps of its path."""

from __future__ import annotations

from headgate.quality.record_parser import Step, read_path


def test_a_path_is_fields_indexes_and_choices() -> None:
    assert read_path("a.b[0].c[type='PK'].value") == (
        Step("a"),
        Step("b", index=0),
        Step("c", field="type", text="PK"),
        Step("value"),
    )
