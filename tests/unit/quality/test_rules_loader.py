"""A rule set with faults: all of them at once, each with its line and what to write."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from headgate.declarations.errors import Declared
from headgate.declarations.types import SqlType
from headgate.errors import DeclarationError, Fault, UsageError
from headgate.quality.spec.loader import find_table, load_rules, rule_files
from headgate.quality.spec.rule_set import RuleSet

ROOT = Path(__file__).parents[3]
PAIR = """\
version: 2
metadata: {env: prod, pipeline: customer}
metrics: {namespace: dq.cassandra, window: 10 SECONDS}
tables:
  - name: customer
    pk: customer_id
    sources:
      onprem:
        topic: onprem.customer.events
        table: onprem_customer_events
        columns: {customer_id: STRING, action: STRING, hash_onprem: STRING, ts: TIMESTAMP(3)}
        event_time: ts
      cloud:
        topic: cloud.customer.hash
        table: cloud_customer_hash
        dc: azure
        columns: {customer_id: STRING, hash_cloud: STRING, ts: TIMESTAMP(3)}
    hash: {onprem_field: hash_onprem, cloud_field: hash_cloud}
rules:
  - name: delete_event
    when: "{t1}.action = 'DELETE'"
    emit: {dq_status: DELETE_EVENT, metric: delete_count, severity: INFO}
"""
ONE = """\
version: 2
tables:
  - name: orders
    pk: order_id
    sources:
      onprem:
        topic: orders.raw
        table: orders_rows
        columns:
          order_id: STRING
          total: DOUBLE
          email: {type: STRING, sensitive: true}
          at: TIMESTAMP(3)
    rules:
      - {name: total_there, type: required, field: total}
    aggregates:
      - {name: orders_a_day, measure: row_count, min: 2}
"""
Load = Callable[[str], Declared[RuleSet]]
Faults = Callable[..., list[Fault]]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load(text: str) -> Declared[RuleSet]:
        path = tmp_path / "orders.yml"
        path.write_text(text)
        return load_rules(path, {"TOPIC": "orders.raw"})

    return load


@pytest.fixture
def faults(load: Load) -> Faults:
    def faults(text: str, old: str = "", new: str = "") -> list[Fault]:
        assert old in text
        with pytest.raises(DeclarationError) as caught:
            load(text.replace(old, new, 1) if old else text)
        return list(caught.value.faults)

    return faults


def line(text: str, part: str) -> int:
    return next(at for at, found in enumerate(text.splitlines(), 1) if part in found)


def test_the_form_of_the_documents_loads(load: Load) -> None:
    table = load(PAIR).value.table("customer")
    assert table.is_pair
    assert [source.alias for source in table.sources.values()] == ["t1", "t2"]
    assert table.first.watermark == timedelta(seconds=5)
    assert load(PAIR).notes == ()


def test_times_of_rule_sets_are_points_in_time(load: Load) -> None:
    types = load(ONE).value.table("orders").first.types
    assert types["at"] == SqlType("TIMESTAMP_LTZ", 3)


def test_a_column_may_be_sensitive(load: Load) -> None:
    assert load(ONE).value.table("orders").first.sensitive == {"email"}


def test_a_rule_set_goes_to_plain_values_and_back(load: Load) -> None:
    adapter = TypeAdapter(RuleSet)
    for text in (PAIR, ONE):
        rule_set = load(text).value
        assert adapter.validate_python(adapter.dump_python(rule_set, mode="json")) == rule_set


def test_all_faults_are_told_at_once_in_the_order_of_lines(faults: Faults) -> None:
    text = PAIR.replace("INFO", "INFFO").replace("10 SECONDS", "10 PARSECS")
    found = faults(text.replace("event_time: ts", "event_time: tz"))
    assert [(fault.field, fault.line) for fault in found] == [
        ("metrics.window", 3),
        ("tables[0].sources.onprem.event_time", line(PAIR, "event_time")),
        ("rules[0].emit.severity", line(PAIR, "INFO")),
    ]


@pytest.mark.parametrize(
    ("text", "old", "new", "field", "what", "fix"),
    [
        (PAIR, "severity: INFO", "severity: INFFO", "rules[0].emit.severity", "INFFO", "`INFO`"),
        (PAIR, "severity: INFO", "severity: info", "rules[0].emit.severity", "info", "`INFO`"),
        (PAIR, "10 SECONDS", "10 PARSECS", "metrics.window", "length of time", "10 SECONDS"),
        (PAIR, "10 SECONDS", "0 SECONDS", "metrics.window", "length of time", "10 SECONDS"),
        (PAIR, "dq.cassandra", "DQ Cassandra", "metrics.namespace", "namespace", "dq.cassandra"),
        (PAIR, "    when", "    wen", "rules[0].wen", "unknown", "`when`"),
        (PAIR, "action: STRING", "action: STRNG", "columns.action", "not a type", "STRING"),
        (PAIR, "action: STRING", "action: JSON", "columns.action", "no JSON", "STRING"),
        (PAIR, "      cloud:", "      clowd:", "sources.clowd", "unknown", "`cloud`"),
        (PAIR, "name: customer", "name: Customer-1", "tables[0].name", "view", "lower-case"),
        (PAIR, "table: onprem", "table: dq_onprem", "onprem.table", "compiled views", "another"),
        (PAIR, "pk: customer_id", "pk: customer", "tables[0].pk", "customer", "`customer_id`"),
        (PAIR, "event_time: ts", "event_time: action", "event_time", "not a time", "TIMESTAMP"),
        (PAIR, "cloud.customer.hash", "onprem.customer.events", "cloud.topic", "both", "another"),
        (PAIR, "        dc: azure", "        alias: t1", "cloud.alias", "something else", "t2"),
        (PAIR, "cloud_field: hash_cloud", "cloud_field: hsh", "hash.cloud_field", "hsh", ""),
        (PAIR, "{customer_id: STRING, hash", "{customer_id: INT, hash", "customer_id", "INT", ""),
        (PAIR, "metric: delete_count", "metric: dq_delete", "emit.metric", "dq_", "Write delete."),
        (PAIR, "metric: delete_count", "metric: error_total", "emit.metric", "itself", "another"),
        (PAIR, "metric: delete_count", "metric: rows_total", "emit.metric", "itself", "another"),
        (ONE, "name: total_there", "name: error_total", "rules[0].name", "itself", "another"),
        (ONE, "name: total_there", "name: clean_total", "rules[0].name", "itself", "another"),
        (ONE, "name: total_there", "name: dq_total", "rules[0].name", "dq_", "Write total."),
        (ONE, "name: orders_a_day", "name: kafka_lag", "aggregates[0].name", "itself", "another"),
        (ONE, "name: orders_a_day", "name: Orders a day", "aggregates[0].name", "name", "lower"),
        (ONE, "name: orders_a_day", "name: dq_orders", "aggregates[0].name", "dq_", "orders"),
        (PAIR, "10 SECONDS", "3651 DAYS", "metrics.window", "3650 DAYS", "Write 3650 DAYS."),
        (PAIR, "event_time: ts", "watermark: 999999999 DAYS", "watermark", "3650 DAYS", "3650"),
        (PAIR, "DELETE_EVENT, m", "delete event, m", "dq_status", "status", "DELETE_EVENT"),
        (PAIR, "name: delete_event", "name: Delete event", "rules[0].name", "name", "lower"),
        (PAIR, "version: 2", "version: 3", "version", "2", ""),
        (ONE, "topic: orders.raw", "topic: orders/raw", "onprem.topic", "topic name", "letters"),
        (ONE, "topic: orders.raw", "dc: here", "sources.onprem", "no topic", "`iceberg`"),
        (ONE, "topic: orders.raw", "iceberg: orders", "iceberg", "schema.table", "silver.orders"),
        (ONE, "onprem:", "The orders:", "sources.The orders", "name for a source", "lower"),
        (ONE, "order_id: STRING", "order_id: DOUBLE", "order_id", "exact", "STRING"),
        (ONE, "email:", "_extra:", "columns._extra", "uses itself", "Rename"),
        (ONE, "email:", "session:", "columns.session", "uses itself", "Rename"),
        (ONE, "email:", "kafka_key:", "columns.kafka_key", "uses itself", "Rename"),
        (ONE, "name: orders\n", "name: sink_orders\n", "tables[0].name", "sink", "another"),
        (ONE, "name: total_there", "name: verdict_a", "rules[0].name", "verdicts", "another"),
        (PAIR, "cloud_customer_hash", "onprem_customer_events_read", "cloud.table", "view", ""),
        (PAIR, "DELETE_EVENT, metric: delete_count, severity: INFO", "MATCH", "status", "no", ""),
        (ONE, "email:", "Total:", "columns.Total", "case", "Keep one"),
        (ONE, "type: required", "type: requird", "rules[0].type", "requird", "`required`"),
        (ONE, "field: total", "feild: total", "rules[0].feild", "unknown", "`field`"),
        (ONE, "min: 2", "min: one", "aggregates[0].min", "number", "without quotes"),
        (ONE, "measure: row_count", "measure: rows", "measure", "rows", "row_count"),
    ],
)
def test_a_fault_is_told_with_its_place_and_what_to_write(
    faults: Faults, text: str, old: str, new: str, field: str, what: str, fix: str
) -> None:
    found = faults(text, old, new)
    fault = next(fault for fault in found if fault.field.endswith(field))
    assert what.lower() in fault.what.lower() or what.lower() in fault.fix.lower()
    assert fix.lower() in fault.fix.lower()
    assert fault.line
    assert text.replace(old, new, 1).splitlines()[fault.line - 1].strip()


@pytest.mark.parametrize("name", ["orders", "cloud", "onprem"])
def test_a_single_source_may_have_any_name(load: Load, name: str) -> None:
    table = load(ONE.replace("onprem:", f"{name}:")).value.tables[0]
    assert (list(table.sources), table.is_pair, table.first.alias) == ([name], False, "t1")
    assert table.sides == {"onprem": table.first}


def test_a_table_has_no_third_source(faults: Faults) -> None:
    third = "      third: {topic: a, table: b, columns: {customer_id: STRING}}\n"
    (fault,) = [f for f in faults(PAIR, "    hash:", f"{third}    hash:") if "two" in f.what]
    assert (fault.field, fault.what) == ("tables[0].sources", "a table has one source or two")


def test_two_sources_need_a_hash(faults: Faults) -> None:
    found = faults(PAIR, "    hash: {onprem_field: hash_onprem, cloud_field: hash_cloud}\n", "")
    assert [fault.what for fault in found] == [
        "two sources are compared by a hash, and `hash` is missing"
    ]


def test_a_key_may_be_read_by_a_path(load: Load, faults: Faults) -> None:
    path = (
        "pk: key\n    sources:\n      onprem:\n        pk_path: partitionColumns[type='PK'].value"
    )
    text = ONE.replace("pk: order_id\n    sources:\n      onprem:", path)
    assert load(text).value.table("orders").first.pk_path == "partitionColumns[type='PK'].value"
    assert faults(text, "[type='PK']", "[[type]]")[0].field.endswith("pk_path")


@pytest.mark.parametrize("side", ["onprem", "cloud"])
def test_a_key_by_a_path_is_compared_with_the_other_sources_key(
    load: Load, faults: Faults, side: str
) -> None:
    column = "{customer_id: STRING, "
    text = PAIR.replace(f"      {side}:", f"      {side}:\n        pk_path: a.b")
    first, second = text.split("      cloud:")
    if side == "onprem":
        first = first.replace(column, "{")
    else:
        second = second.replace(column, "{")
    text = f"{first}      cloud:{second}"
    assert load(text).value.tables[0].sources["cloud"]
    (fault,) = faults(text, column, "{customer_id: BIGINT, ")
    other = "cloud" if side == "onprem" else "onprem"
    assert fault.field == f"tables[0].sources.{other}.columns.customer_id"
    assert "BIGINT" in fault.what
    assert "from a path is STRING" in fault.fix


@pytest.mark.parametrize(
    "keys",
    [
        r'type: lookup_in, values: [a, "\ud800"]',
        r'type: range, min: "\ud800"',
        r'type: regex, pattern: "\udfff"',
        r'type: lookup_in, values_file: "a\0b"',
        r'type: lookup_in, values_file: "\ud800"',
    ],
)
def test_what_is_no_text_is_refused_in_words(faults: Faults, keys: str) -> None:
    rule = f"{{name: a, field: email, {keys}}}"
    found = faults(ONE, "{name: total_there, type: required, field: total}", rule)
    assert "character" in found[0].what
    assert found[0].line == line(ONE, "total_there")


def test_a_name_is_used_once_in_a_table(faults: Faults) -> None:
    rule = "rules:\n      - {name: total_there, when: total > 1}"
    assert "already the name of tables[0].rules[0]" in faults(ONE, "rules:", rule)[0].what
    same = "orders_a_day, measure"
    assert "already" in faults(ONE, same, "total_there, measure")[0].what


def test_a_metric_is_counted_or_measured(load: Load, faults: Faults) -> None:
    metric = "total_there, emit: {dq_status: A, metric: orders_a_day}"
    (fault,) = faults(ONE, "total_there", metric)
    assert fault.field == "tables[0].rules[0].emit.metric"
    assert "name of an aggregate" in fault.what
    # Rules may share one, and a name that is taken as a metric is free for a rule with another.
    shared = "total_there, emit: {dq_status: A, metric: b}"
    named = "rows_total, type: required, field: at, emit: {dq_status: A, metric: b}"
    assert load(
        ONE.replace("total_there", shared).replace("rules:", f"rules:\n      - {{name: {named}}}")
    )


def test_ten_years_are_a_length_of_time(load: Load) -> None:
    assert load(PAIR.replace("10 SECONDS", "3650 DAYS")).value.metrics.window.days == 3650


def test_tables_and_views_have_names_of_their_own(faults: Faults) -> None:
    second = PAIR.replace("rules:", "").split("tables:\n")[1].split("\n  - name: delete")[0]
    found = faults(PAIR.replace("\nrules:", f"\n{second}\nrules:"))
    assert {
        "`customer` is declared twice",
        "`onprem_customer_events` is the view of another source",
    }
    assert any("is declared twice" in fault.what for fault in found)
    assert any("is the view of another source" in fault.what for fault in found)


def test_a_variable_that_is_not_set_is_a_fault_with_its_line(faults: Faults) -> None:
    found = faults(ONE, "topic: orders.raw", 'topic: "${TOPICS}"')
    assert found[0].what == "the variable TOPICS is not set"
    assert found[0].line == line(ONE, "topic:")


def test_what_is_no_rule_set_at_all(faults: Faults, tmp_path: Path) -> None:
    assert faults("")[0].what == "the file is empty"
    assert faults("- a")[0].what == "the rule set is not a mapping"
    assert "not YAML" in faults("a: [")[0].what
    with pytest.raises(DeclarationError, match="one fault"):
        load_rules(tmp_path / "none.yml", {})


@pytest.mark.parametrize(
    ("rule", "what", "fix"),
    [
        ("{name: a, when: total > 1, type: required, field: total}", "both", "a condition"),
        ("{name: a}", "neither", "a condition"),
        ("{name: a, type: required}", "lacks `fields` or `field`", "Add"),
        ("{name: a, type: required, field: total, fields: [total]}", "field", "Keep one"),
        ("{name: a, type: required, field: total, null_handling: skip}", "never match", "Leave"),
        ("{name: a, type: range, field: total}", "lacks `min` or `max`", "Add"),
        ("{name: a, type: range, min: 1}", "lacks `field`", "Add"),
        ("{name: a, type: range, field: total, min: 5, max: 1}", "below min", "Swap"),
        ("{name: a, type: range, field: total, minn: 5}", "unknown", "`min`"),
        ("{name: a, type: range, field: total, min: 5, values: [1]}", "no key `values`", ""),
        ("{name: a, type: regex, field: email}", "lacks `pattern`", "Add"),
        ("{name: a, type: cross_field, left: total, op: ~, right: total}", "lacks `op`", "Add"),
        ("{name: a, type: cross_field, left: total, op: is, right: total}", "operator", "<="),
        ("{name: a, type: lookup_in, field: email}", "`values` or `values_file`", "Add"),
        ("{name: a, type: lookup_in, field: email, url: x}", "fetched", "values_file"),
        ("{name: a, type: lookup_in, field: email, values_file: no.json}", "read", "name"),
        ("{name: a, type: lookup_in, field: email, values_file: /etc/hosts}", "beside", "there"),
        ("{name: a, type: custom_sql, sql: total > 1, null_handling: fail}", "changes", "IS NULL"),
        ("{name: a, type: unique, field: email, horizon: 5}", "length of time", "10 SECONDS"),
        ("{name: a, type: unique, field: email, horizon: 87601 HOURS}", "3650 DAYS", "3650 DAYS"),
        ("{name: a, when: total > 1, pattern: x}", "a rule with `when` has no key", "Leave it out"),
        ("{name: a, when: total > 1, severity: WARN, emit: {dq_status: A}}", "here and in", "Keep"),
        ("{name: a, type: timestamp_freshness, field: at, max_age_seconds: 0}", "1", ""),
        ("{name: a, when: total > 1, on_fail: drop}", "`drop`", "dead_letter"),
    ],
)
def test_a_form_takes_its_keys_and_no_other(faults: Faults, rule: str, what: str, fix: str) -> None:
    found = faults(ONE, "{name: total_there, type: required, field: total}", rule)
    assert what in found[0].what
    assert fix in found[0].fix
    assert {fault.line for fault in found} == {line(ONE, "total_there")}


@pytest.mark.parametrize(
    ("aggregate", "what"),
    [
        ("{name: a, measure: row_count}", "neither `min` nor `max`"),
        ("{name: a, measure: row_count, field: total, min: 1}", "counts all rows"),
        ("{name: a, measure: sum, min: 1}", "lacks `field`"),
        ("{name: a, measure: quantile, field: total, max: 1}", "goes with the measure"),
        ("{name: a, measure: sum, field: total, max: 1, quantile: 0.5}", "goes with the measure"),
        ("{name: a, measure: quantile, field: total, max: 1, quantile: 1}", "not between"),
        ("{name: a, measure: null_rate, field: total, max: 5}", "no share"),
        ("{name: a, measure: sum, field: total, min: 5, max: 1}", "below min"),
    ],
)
def test_an_aggregate_takes_its_keys_and_no_other(
    faults: Faults, aggregate: str, what: str
) -> None:
    found = faults(ONE, "{name: orders_a_day, measure: row_count, min: 2}", aggregate)
    assert what in found[0].what


def test_a_list_of_values_may_stand_beside_the_file(load: Load, tmp_path: Path) -> None:
    (tmp_path / "known.json").write_text('["a@x", "b@x"]')
    rule = "{name: a, type: lookup_in, field: email, values_file: known.json}"
    found = load(ONE.replace("{name: total_there, type: required, field: total}", rule))
    assert found.value.tables[0].rules[0].values == ("a@x", "b@x")


@pytest.mark.parametrize("text", ["{}", "[]", "[1", "[[1]]", "[null]"])
def test_a_list_of_values_that_is_none_is_refused(
    faults: Faults, tmp_path: Path, text: str
) -> None:
    (tmp_path / "known.json").write_text(text)
    rule = "{name: a, type: lookup_in, field: email, values_file: known.json}"
    found = faults(ONE, "{name: total_there, type: required, field: total}", rule)
    assert found[0].line == line(ONE, "total_there")


def test_rule_files_are_those_in_the_root_and_in_the_folder() -> None:
    names = [path.relative_to(ROOT).as_posix() for path in rule_files(ROOT)]
    assert names == ["rules.yaml", "rules/taxi.yml", "rules/topic1.yml"]


def test_a_table_is_found_by_its_name() -> None:
    assert find_table(ROOT, "orders") == ROOT / "rules.yaml"
    with pytest.raises(UsageError) as caught:
        find_table(ROOT, "order")
    assert caught.value.fix.startswith("Did you mean `orders`?")


def test_blanks_at_the_ends_of_a_value_are_part_of_it(load: Load) -> None:
    rule = "{name: a, type: lookup_in, field: email, values: [' x ', y]}"
    found = load(ONE.replace("{name: total_there, type: required, field: total}", rule))
    assert found.value.tables[0].rules[0].values == (" x ", "y")
