"""The two older forms of rule sets still load, and say that they are old."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headgate.declarations.errors import Declared
from headgate.errors import DeclarationError, Fault
from headgate.quality.spec.loader import load_rules, tables_in
from headgate.quality.spec.rule_set import RuleSet

TYPED = """\
topic: sensors.raw
pk: id
rules:
  - id: R-1
    type: required
    fields: [id, source]
    severity: fail
    message: id or source is missing
  - id: value_range
    type: range
    field: value
    min: -100
    max: 500
    severity: warn
    null_handling: fail
  - id: fresh
    type: timestamp_fresh
    field: event_ts
    severity: info
  - id: known
    type: lookup_in
    field: source
    values: [a, b]
    severity: fail
  - id: order
    type: cross_field
    left: value
    op: "<="
    right: ceiling
"""
JOINED = """\
version: 1
metadata: {env: prod, pipeline: customer, owner: data}
sources:
  onprem: {topic: topic1, alias: t1, event_time: ts}
  cloud: {topic: topic2, alias: t2}
join: {type: left, on: pk, window: 10 MINUTES, grace: 5 MINUTES}
rules:
  - {name: delete_event, when: "t1.action = 'DELETE'",
     emit: {dq_status: DELETE_EVENT, metric: dq_delete_count}}
  - {name: missing_pk, when: "t1.pk IS NULL", emit: {dq_status: MISSING_PK, metric: dq_missing_pk}}
  - {name: missing_cloud_row, when: "t2.pk IS NULL",
     emit: {dq_status: MISSING_CLOUD, metric: dq_missing_cloud}}
  - {name: hash_match, when: "t1.hash = t2.hash",
     emit: {dq_status: MATCH, metric: dq_hash_match}}
  - {name: hash_mismatch, when: "t1.hash <> t2.hash",
     emit: {dq_status: MISMATCH, metric: dq_hash_mismatch}}
outputs: {results: dq_results}
metrics: {namespace: dq.cassandra, window: 1 MINUTE}
"""
Load = Callable[[str], Declared[RuleSet]]
Faults = Callable[..., list[Fault]]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load(text: str) -> Declared[RuleSet]:
        path = tmp_path / "sensor-rules.yaml"
        path.write_text(text)
        return load_rules(path, {})

    return load


@pytest.fixture
def faults(load: Load) -> Faults:
    def faults(text: str, old: str = "", new: str = "") -> list[Fault]:
        assert old in text
        with pytest.raises(DeclarationError) as caught:
            load(text.replace(old, new, 1) if old else text)
        return list(caught.value.faults)

    return faults


def test_the_old_typed_form_loads_with_a_line_that_says_so(load: Load) -> None:
    declared = load(TYPED)
    assert declared.notes == (
        "sensor-rules.yaml is written in the old typed form: "
        "it still loads, but write version 2 (docs/rules.md says how)",
    )
    table = declared.value.tables[0]
    assert (table.name, table.pk, table.first.topic) == ("sensor_rules", "id", "sensors.raw")
    assert [rule.name for rule in table.rules] == ["r_1", "value_range", "fresh", "known", "order"]
    assert table.rules[0].description == "id or source is missing"
    assert table.rules[2].type == "timestamp_freshness"


def test_its_severities_become_statuses(load: Load) -> None:
    emits = [rule.emit for rule in load(TYPED).value.tables[0].rules]
    said = [(emit.dq_status, emit.severity) for emit in emits if emit]
    assert said == [
        ("INVALID", "ERROR"),
        ("QUARANTINE", "WARN"),
        ("UNKNOWN", "INFO"),
        ("INVALID", "ERROR"),
        ("INVALID", "ERROR"),
    ]


def test_its_columns_follow_from_how_rules_use_them(load: Load) -> None:
    types = {name: str(kind) for name, kind in load(TYPED).value.tables[0].first.types.items()}
    assert types == {
        "id": "STRING",
        "source": "STRING",
        "value": "DOUBLE",
        "event_ts": "TIMESTAMP_LTZ(3)",
        "ceiling": "DOUBLE",
    }


def test_a_field_used_in_two_ways_must_be_declared(faults: Faults, load: Load) -> None:
    text = TYPED.replace("field: source", "field: value")
    found = faults(text)
    assert found[0].what == "`value` is used as DOUBLE and as STRING"
    assert "Add columns:" in found[0].fix
    declared = "columns: {id: STRING, source: STRING, value: STRING, event_ts: TIMESTAMP(3), "
    assert load(f"{declared}ceiling: STRING}}\n{text}").value.tables[0].first.types


def test_a_field_that_stands_in_sql_alone_must_be_declared(faults: Faults) -> None:
    text = (
        TYPED + "  - {id: odd, type: custom_sql, sql: \"battery < 5 AND source <> 'battery_x'\"}\n"
    )
    found = faults(text)
    assert [fault.what for fault in found] == [
        "the type of `battery` cannot be told from the rules"
    ]
    assert found[0].line == len(text.splitlines())


@pytest.mark.parametrize(
    ("old", "new", "what", "fix"),
    [
        ("pk: id\n", "", "`pk` is missing", "Add pk:"),
        ("topic: sensors.raw\n", "", "`topic` is missing", "Add topic:"),
        ("type: required", "type: schema_registry", "never matched", "type: schema"),
        ("type: required", "type: requird", "`requird`", "`required`"),
        ("    values: [a, b]", "    url: http://x/list", "fetched", "values_file"),
        ("topic:", "tpoic:", "no key `tpoic`", "topic"),
    ],
)
def test_what_the_old_typed_form_leaves_open_or_wrong(
    faults: Faults, old: str, new: str, what: str, fix: str
) -> None:
    found = faults(TYPED, old, new)
    assert any(what in fault.what and fix in fault.fix for fault in found), found


def test_version_1_loads_with_a_line_that_says_so(load: Load) -> None:
    declared = load(JOINED)
    assert "the form of version 1" in declared.notes[0]
    left_out = ("join.grace", "join.type", "join.window", "metadata.owner", "outputs")
    assert [note.split(": ")[1] for note in declared.notes[1:]] == [
        f"{key} says nothing here and is left out" for key in left_out
    ]
    table = declared.value.tables[0]
    assert (table.name, table.pk, table.is_pair) == ("sensor_rules", "pk", True)
    assert table.hash is not None
    assert (table.hash.onprem_field, table.hash.cloud_field) == ("hash", "hash")
    assert list(table.first.types) == ["pk", "action", "hash", "ts"]
    assert declared.value.metadata.env == "prod"


def test_its_metrics_lose_the_prefix_that_is_put_before_them(load: Load) -> None:
    emits = [rule.emit for rule in load(JOINED).value.tables[0].rules]
    assert [(emit.metric, emit.severity) for emit in emits if emit] == [
        ("delete_count", "INFO"),
        ("missing_pk", "ERROR"),
        ("missing_cloud", "ERROR"),
        ("hash_match", "INFO"),
        ("hash_mismatch", "ERROR"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "what", "fix"),
    [
        ("on: pk", "by: pk", "`on` is missing", "join: {on"),
        ('t2.hash",\n     emit: {dq_status: MA', 't2.h",\n     emit: {dq_status: MA', "hash", ""),
        ("outputs:", "output:", "no key `output`", "outputs"),
        ("topic: topic2", "topci: topic2", "says nothing", "Leave"),
        ("MISSING_PK", "missing pk", "not a status", "MISSING_PK"),
    ],
)
def test_what_version_1_leaves_open_or_wrong(
    faults: Faults, old: str, new: str, what: str, fix: str
) -> None:
    text = JOINED.replace("<> t2.hash", "<> t2.other") if 't2.h"' in new else JOINED
    found = faults(text, old, new)
    assert any(what in fault.what and fix in fault.fix for fault in found), found
    assert all(fault.line for fault in found)


def test_the_tables_of_old_files_have_the_name_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "2024 sensors.yml"
    path.write_text(TYPED)
    assert tables_in(path) == ("t_2024_sensors",)
