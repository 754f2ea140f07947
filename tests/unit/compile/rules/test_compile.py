"""What the compiled file says: the rules in their order, one pass, rows as text only where a rule matches."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.rule_tables import (
    LAKE,
    compile_script,
    compile_shipped,
    load_rule_table,
    shipped_table,
)

from headgate.compile.rules import compile as compile_module
from headgate.compile.rules.compile import compile_table
from headgate.compile.rules.model import JudgedTable
from headgate.compile.rules.tables import PARTIALS, RESULTS
from headgate.compile.rules.verdicts import rule_verdict

SHIPPED = ("business", "customer", "orders", "taxi")
STEPS = ("clock", "revision", "source", "table", "view", "accept", "partials", "refuse", "reading")


def many(folder: Path, count: int) -> JudgedTable:
    lines = "\n".join(f'{{name: rule_{n}, when: "amount = {n}"}}' for n in range(count))
    return load_rule_table(folder, lines)


def body(judged: JudgedTable, view: str) -> str:
    found = [sql for sql in compile_script(judged).named("view") if f"VIEW {view} AS" in sql]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("name", ["customer", "orders", "taxi"])
def test_every_step_that_the_engine_asks_for_is_there(name: str, tmp_path: Path) -> None:
    from headgate.compile.script import parse_script

    found = parse_script("x", compile_shipped(name).text)
    assert {step.name for step in found.steps} >= set(STEPS)
    for step in ("accept", "partials", "refuse"):
        assert found.one(step).startswith("INSERT INTO lake.")
        assert "\nSELECT" in found.one(step)


def test_each_rule_stands_once_with_its_condition_in_the_order_that_decides(tmp_path: Path) -> None:
    query = body(many(tmp_path, 100), "dq_judged_things")
    rules = re.findall(r"'rule_(\d+)', .*,\n +amount = (\d+)\b", query)
    assert rules == [(str(n), str(n)) for n in range(100)]
    assert query.count("amount = ") == 100


def test_a_rule_is_two_lines() -> None:
    rules = shipped_table("customer").rules
    assert (
        rule_verdict(rules[:1] + rules[-1:])
        == """rule_verdict(
  -- name, status, severity, reason, and the condition on which the rule matches
  'delete_event', 'DELETE_EVENT', 'INFO', 'the row was deleted on-prem',
    t1.action = 'DELETE',
  'hash_mismatch', 'MISMATCH', 'ERROR', 'both sides have the row, and their hashes differ',
    t1.hash_onprem <> t2.hash_cloud
)"""
    )


def test_a_long_condition_is_broken_before_its_connectives(tmp_path: Path) -> None:
    condition = "name = 'the first one' AND amount > 5 OR name IN ('a', 'b') AND (amount < 3 OR id = 'x' AND amount = 8)"
    judged = load_rule_table(tmp_path, f'{{name: long, when: "{condition}"}}')
    assert rule_verdict(judged.rules).endswith(
        """
    name = 'the first one' AND amount > 5
    OR name IN ('a', 'b') AND (amount < 3 OR id = 'x' AND amount = 8)
)"""
    )


def test_no_line_is_longer_than_140_characters(tmp_path: Path) -> None:
    words = "it's a reason with many words, " * 20
    values = ", ".join(f"'{n:030}'" for n in range(30))
    rules = f"""{{name: long, when: "name = '{"y" * 500}'", description: "{words}"}}
    {{name: listed, when: "name IN ({values})"}}
    {{name: once, type: unique, fields: [name, amount], horizon: 2 HOURS}}"""
    tables = [load_rule_table(tmp_path, rules), *map(shipped_table, SHIPPED)]
    for table in tables:
        lines = compile_script(table).text.splitlines()
        assert [line for line in lines if len(line) > 140] == []


def test_without_rules_there_is_no_verdict() -> None:
    assert rule_verdict([]) == "rule_verdict()"


def test_results_have_the_columns_of_their_table(tmp_path: Path) -> None:
    judged = load_rule_table(tmp_path, '{name: negative, when: "amount < 0"}')
    query = body(judged, "dq_results_things").partition("\nFROM (")[0]
    named = re.findall(r"^  (?:.* AS )?(\w+),?$|^  \) AS (\w+),?$", query, re.MULTILINE)
    assert [a or b for a, b in named] == list(RESULTS)


def test_partials_have_the_columns_of_their_table(tmp_path: Path) -> None:
    judged = load_rule_table(tmp_path, '{name: negative, when: "amount < 0"}')
    listed = compile_script(judged).one("partials").partition("SELECT\n")[2].partition("\nFROM")[0]
    assert [line.strip(" ,") for line in listed.splitlines()] == list(PARTIALS)


def test_a_sensitive_column_is_masked_in_the_row(tmp_path: Path) -> None:
    query = body(
        load_rule_table(tmp_path, '{name: negative, when: "amount < 0"}'), "dq_results_things"
    )
    assert "'name', '***'" in query
    assert "'amount', amount" in query


def test_only_rules_that_say_so_make_dead_letters(tmp_path: Path) -> None:
    rules = """{name: kept, when: "amount < 0"}
    {name: sent, when: "amount > 9", on_fail: dead_letter}"""
    query = body(load_rule_table(tmp_path, rules), "dq_results_things")
    assert "WHEN arrays_overlap(_verdict.rules, array('sent')) THEN 'dead_letter'" in query
    kept = load_rule_table(tmp_path, '{name: kept, when: "amount < 0"}')
    assert "dead_letter'" not in body(kept, "dq_results_things")
    assert "dq_committed" not in compile_script(kept).one("refuse")


def test_uniqueness_in_a_stream_looks_at_earlier_keys_but_not_its_own(tmp_path: Path) -> None:
    judged = load_rule_table(
        tmp_path, "{name: twice, type: unique, fields: [amount], horizon: 2 HOURS}"
    )
    query = body(judged, "dq_rows_things")
    assert "batch_time <> session.batch_time" in query
    assert query.count("<= 7200000000L") == 6
    assert len(compile_script(judged).named("keys")) == 1


def test_a_table_of_the_lake_is_judged_as_a_whole(tmp_path: Path) -> None:
    judged = load_rule_table(tmp_path, "{name: twice, type: unique, fields: [amount]}", LAKE)
    found = compile_script(judged)
    assert not found.named("keys")
    assert "keys_things" not in found.text
    assert "'accepted'" in found.one("outcomes")


def test_a_key_with_a_sensitive_value_is_hashed(tmp_path: Path) -> None:
    judged = load_rule_table(tmp_path, "{name: twice, type: unique, fields: [name]}")
    assert "sha2(to_json(" in body(judged, "dq_keyed_things")


def test_a_pair_without_a_rule_that_holds_has_a_verdict() -> None:
    rules = [(rule.status, rule.metric) for rule in compile_shipped("customer").rules]
    assert rules[-5:] == [
        ("DELETE_EVENT", "delete_count"),
        ("INVALID_HASH", "invalid_hash"),
        ("MISSING_CLOUD", "missing_cloud"),
        ("MISSING_ONPREM", "missing_onprem"),
        ("MISMATCH", "hash_mismatch"),
    ]


def test_all_three_severities_have_their_total(tmp_path: Path) -> None:
    query = body(
        load_rule_table(tmp_path, '{name: negative, when: "amount < 0"}'), "dq_metrics_things"
    )
    for severity in ("error", "warn", "info"):
        assert f"AS dq_{severity}_total" in query


def revision(judged: JudgedTable) -> str:
    return compile_table(judged, "rules.yml").revision


def test_the_revision_changes_with_a_rule_and_not_with_a_comment(tmp_path: Path) -> None:
    first = revision(load_rule_table(tmp_path, '{name: negative, when: "amount < 0"}'))
    again = revision(load_rule_table(tmp_path, '{name: negative, when: "amount < 0"} # why'))
    other = revision(load_rule_table(tmp_path, '{name: negative, when: "amount < 1"}'))
    assert first == again != other


def test_another_version_of_headgate_is_another_revision_only_with_other_sql(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = load_rule_table(tmp_path, '{name: negative, when: "amount < 0"}')
    before = compile_table(judged, "rules.yml")
    monkeypatch.setattr(compile_module, "__version__", "99.0")
    after = compile_table(judged, "elsewhere/rules.yml")
    assert "Headgate 99.0" in after.text
    assert after.revision == before.revision
    monkeypatch.setattr(compile_module, "CLOCK", compile_module.CLOCK.replace("-- Where", "-- And"))
    assert revision(judged) == before.revision
    monkeypatch.setattr(compile_module, "CLOCK", compile_module.CLOCK.replace("step: c", "step: d"))
    marked = revision(judged)
    monkeypatch.setattr(compile_module, "CLOCK", compile_module.CLOCK.replace("NULL", "''"))
    assert len({before.revision, marked, revision(judged)}) == 3


def test_hostile_words_stay_words(tmp_path: Path) -> None:
    words = "it's; DROP TABLE x; -- \\\\ ${HOME}"
    judged = load_rule_table(
        tmp_path, f'{{name: odd, when: "amount < 0", description: "{words}"}}'.replace("$", "$$")
    )
    plain = load_rule_table(tmp_path, '{name: odd, when: "amount < 0"}')
    found = compile_script(judged)
    assert [step.name for step in found.steps] == [
        step.name for step in compile_script(plain).steps
    ]
    assert "${HOME}" not in found.text
