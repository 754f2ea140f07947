"""A manifest that cannot be compiled is refused, every fault at once and with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.manifests import ORDERS, compile_manifest

from headgate.errors import DeclarationError, Fault


def faults(folder: Path, text: str) -> tuple[Fault, ...]:
    with pytest.raises(DeclarationError) as caught:
        compile_manifest(folder, text)
    return caught.value.faults


def line_of(text: str, words: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if words in line)


def test_filters_outside_the_closed_language_are_refused_all_at_once(tmp_path: Path) -> None:
    text = ORDERS.replace(
        'quality_filters: ["created_at IS NOT NULL", "total_amount > 0"]',
        "quality_filters:\n  - \"reflect('a', 'b') = 1\"\n  - \"total_amout > 0\"",
    )
    first, second = faults(tmp_path, text)
    assert first.line == line_of(text, "reflect(")
    assert second.line == line_of(text, "total_amout")
    assert "total_amount" in second.sentence()


def test_a_date_expression_is_judged_too(tmp_path: Path) -> None:
    text = ORDERS.replace("CAST(created_at AS DATE)", "current_date()")
    (fault,) = faults(tmp_path, text)
    assert fault.field == "partition_date_expr"


@pytest.mark.parametrize("name", ["kafka_value", "record", "_reason"])
def test_a_field_cannot_have_a_name_that_the_sql_uses_itself(tmp_path: Path, name: str) -> None:
    text = ORDERS.replace("name: order_id, kafka_type", f"name: {name}, kafka_type").replace(
        "[order_id, created_at]", f"[{name}, created_at]"
    )
    (fault,) = faults(tmp_path, text)
    assert f"`{name}` is taken" in fault.what
    assert fault.line == line_of(text, f"name: {name}")


def test_a_silver_column_cannot_be_called_outcome(tmp_path: Path) -> None:
    text = ORDERS.replace("silver_name: order_id", "silver_name: outcome")
    (fault,) = faults(tmp_path, text)
    assert fault.field == "columns[0].silver_name"
    assert "Choose another name" in fault.fix


def test_a_field_may_be_called_like_a_column_of_the_dead_letters(tmp_path: Path) -> None:
    text = ORDERS.replace("name: total_amount, kafka_type", "name: reason_code, kafka_type")
    assert compile_manifest(tmp_path, text.replace('"total_amount > 0"', '"reason_code > 0"'))
