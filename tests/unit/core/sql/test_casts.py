"""Texts become numbers and times only in the forms that the condition language takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.manifests import ORDERS, compile_manifest

from headgate.conditions.literals import spark_literal
from headgate.conditions.type_coercion import FORMS
from headgate.core.sql.fragments import tried, tried_of_any
from headgate.declarations.types import (
    DATE,
    DOUBLE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    SqlType,
    decimal,
)
from headgate.pipeline.compile.dataset import SILVER

MONEY = decimal(10, 2)


@pytest.mark.parametrize("target", [MONEY, TIMESTAMP, TIMESTAMP_LTZ])
def test_a_text_is_tried_in_its_form_alone(target: SqlType) -> None:
    form = spark_literal(FORMS[target.name].pattern)
    said = f"CASE WHEN regexp_like(`a b`, {form}) THEN `a b` END"
    assert tried("a b", STRING, target).startswith(f"try_cast({said} AS ")
    assert f"typeof(`a b`) <> 'string'\n    OR regexp_like(CAST(`a b` AS STRING), {form})" in (
        tried_of_any("a b", target)
    )


def test_what_is_no_text_or_has_no_form_is_tried_as_it_is() -> None:
    assert tried("total", DOUBLE, MONEY) == "try_cast(total AS DECIMAL(10, 2))"
    assert tried("total", STRING, DATE) == "try_cast(total AS DATE)" == tried_of_any("total", DATE)


@pytest.mark.parametrize(
    ("text", "kind"),
    [("1e-2147483647", "DECIMAL"), ("12:30", "TIMESTAMP_LTZ"), ("T12:30", "TIMESTAMP_LTZ")],
)
def test_what_spark_cannot_read_alike_each_day_is_in_no_form(text: str, kind: str) -> None:
    assert not FORMS[kind].matches(text)


def test_silver_filters_a_text_that_is_in_no_form(tmp_path: Path) -> None:
    text = ORDERS.replace(
        "kafka_type: DOUBLE, bronze_type: DOUBLE", "kafka_type: STRING, bronze_type: STRING"
    ).replace("total_amount > 0", "total_amount <> ''")
    silver = compile_manifest(tmp_path, text).template(SILVER).text
    value = tried("total_amount", STRING, MONEY)
    assert f"{value} AS total_amount" in silver
    assert f"total_amount IS NULL OR {value} IS NOT NULL" in silver
