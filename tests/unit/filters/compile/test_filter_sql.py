"""The SQL of filters: golden files, the documents' Flink example, and strings that would break out."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.support.filter_documents import DEALER, EVERYTHING
from tests.support.hostile_texts import hostile_texts

from headgate.core.sql.script import parse_script
from headgate.errors import DeclarationError
from headgate.filters.compile.flink import flink_sql, flink_statements
from headgate.filters.compile.routing import router_script
from headgate.filters.compile.spark_sql import CompiledFilter, alone_sql, compile_filter
from headgate.filters.loader import filter_files, load_filter, parse_filter
from headgate.filters.spec import Filter

HOSTILE = hostile_texts(Random(7), 300)
ROOT = Path(__file__).parents[4]
GOLDEN = ROOT / "tests" / "golden" / "filters"
FLINK_EXAMPLE = """-- Sink Table
CREATE TABLE `filtered-service-events-dealer-001` (
    `key` BYTES,
    `id` STRING,
    `event_name` STRING,
    `event_type` STRING,
    `created_date` STRING,
    `saved_date` STRING,
    `header_data` STRING,
    `__op` STRING,
    `__table` STRING
) WITH (
    'connector' = 'confluent',
    'value.format' = 'json-registry'
);

-- INSERT Statement with JSON path extraction
INSERT INTO `filtered-service-events-dealer-001`
SELECT\x20
    CAST(`id` AS BYTES) AS `key`,
    `id`, `event_name`, `event_type`, `created_date`,\x20
    `saved_date`, `header_data`, `__op`, `__table`
FROM `raw-event-headers`
WHERE `event_type` = 'CarServiceDone'\x20
  AND `__op` = 'c'
  AND JSON_VALUE(`header_data`, '$.dealerId') = 'DEALER-001';
"""
EVERY_FILTER = {**DEALER, "id": "everything", "conditions": EVERYTHING, "ops": ["r", "c"]}


def compiled(**changed: Any) -> CompiledFilter:
    return compile_filter(parse_filter({**DEALER, **changed}))


def golden(file: str, text: str) -> str:
    """What the golden file says; it is written anew with HEADGATE_GOLDEN=write."""
    if os.environ.get("HEADGATE_GOLDEN") == "write":
        (GOLDEN / file).write_text(text)
    return (GOLDEN / file).read_text()


@pytest.mark.parametrize("path", filter_files(ROOT), ids=lambda path: path.stem)
def test_the_sql_of_the_shipped_filters_is_what_it_was(path: Path) -> None:
    text = alone_sql(compile_filter(load_filter(path)))
    assert text == golden(f"{path.stem}.sql", text)


def test_the_sql_of_every_operator_is_what_it_was() -> None:
    declared = parse_filter(EVERY_FILTER)
    spark, flink = compile_filter(declared).sql, flink_sql(declared)
    assert spark == golden("everything.sql", spark)
    assert flink == golden("everything.flink.sql", flink)


def test_the_script_of_the_shipped_filters_is_what_it_was() -> None:
    shipped = [compile_filter(load_filter(path)) for path in filter_files(ROOT)]
    script = router_script([*shipped, compile_filter(parse_filter(EVERY_FILTER))])
    keys = "\n".join(f"-- {json.dumps(key)}" for key in script.keys)
    text = ";\n\n".join(script.views) + f";\n\n{keys}\n"
    assert text == golden("router.sql", text)


def test_the_flink_sql_is_the_documents_example_byte_for_byte() -> None:
    declared = load_filter(ROOT / "schemas/v1/filters/service-by-dealer-001.json")
    assert flink_sql(declared) == FLINK_EXAMPLE
    assert "\n\n".join(flink_statements(declared)) + "\n" == FLINK_EXAMPLE


def test_with_or_the_check_of_the_operation_stays_outside() -> None:
    declared = parse_filter({**DEALER, "conditionLogic": "OR"})
    either = "(event_type = 'CarServiceDone' OR `header_data.dealerId` = 'DEALER-001')"
    assert f"WHERE __op = 'c'\n  AND {either};" in compile_filter(declared).sql
    assert "`__op` = 'c' \n  AND (`event_type` = " in flink_sql(declared)


def test_the_same_document_gives_the_same_bytes_and_an_edit_other_ones() -> None:
    assert compiled() == compiled()
    assert compiled(name="Another").sql_hash == compiled().sql_hash
    assert compiled(name="Another").revision != compiled().revision
    assert compiled(ops=["c", "u"]).sql_hash != compiled().sql_hash


def test_a_pattern_outside_the_safe_subset_is_refused_at_its_pointer() -> None:
    bad = {"field": "id", "operator": "matches", "value": "(?=a)b"}
    with pytest.raises(DeclarationError) as raised:
        compiled(conditions=[bad, {"any": [bad]}])
    assert [fault.field for fault in raised.value.faults] == [
        "/conditions/0/value",
        "/conditions/1/any/0/value",
    ]


@pytest.mark.heavy
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_string_stays_inside_its_quotes(text: str) -> None:
    condition = {"field": "header_data.x", "operator": "equals", "value": text}
    said = "".join(letter for letter in text[:150] if letter.isprintable()) or "x"
    made = compiled(name=said, consumerId=said, conditions=[condition])
    steps = parse_script("f.sql", made.sql).steps
    assert [step.sql.split()[0] for step in steps] == ["CREATE", "INSERT"]
    assert "${" not in made.sql
    routed = router_script([made])
    assert [key[1] for key in routed.keys] == [["c", text]]
    assert not any(text in view for view in routed.views if len(text) > 3 and not text.isalnum())


@pytest.mark.heavy
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_string_is_one_text_of_the_flink_sql(text: str) -> None:
    condition = {"field": "id", "operator": "equals", "value": text}
    declared: Filter = parse_filter({**DEALER, "conditions": [condition]})
    inside = (
        flink_sql(declared).split("WHERE `id` = '", 1)[1].rsplit("' \n  AND `__op` = 'c';", 1)[0]
    )
    assert inside.replace("''", "") == text.replace("'", "")
    assert inside.count("'") == 2 * text.count("'")


def faulty(document: dict[str, Any]) -> set[str]:
    """The pointers of all that is refused; none where the document is sound."""
    try:
        compile_filter(parse_filter(document))
    except DeclarationError as error:
        return {fault.field for fault in error.faults}
    return set()


@pytest.mark.parametrize("key", ["id", "outputTopic", "source"])
def test_a_hostile_name_is_refused_or_plain(key: str) -> None:
    plain = re.compile("[A-Za-z0-9._-]+" if key == "source" else "[a-z0-9-]+")
    for text in HOSTILE:
        found = faulty({**DEALER, key: text})
        assert found == {f"/{key}"} or (not found and plain.fullmatch(text))


@pytest.mark.parametrize("form", ["{}", "header_data.{}", "header_data[{}]"])
def test_a_hostile_field_is_refused_or_plain(form: str) -> None:
    for text in HOSTILE:
        field = form.replace("{}", text)
        found = faulty({**DEALER, "conditions": [{"field": field, "operator": "isNull"}]})
        plain = re.fullmatch(r"[A-Za-z0-9_.\[\]]+", field)
        assert found == {"/conditions/0/field"} or (not found and plain)
