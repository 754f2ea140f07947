"""What the compiled files say: the rules in their order, one pass, rows as text only where a rule matches."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp
from tests.support.rule_files import ONE, load_rule_file
from tests.support.rule_tables import (
    LAKE,
    compile_script,
    compile_shipped,
    load_rule_table,
    script_of,
    shipped_table,
)

from headgate.core.sql.script import Script
from headgate.quality.compile import file as compile_module
from headgate.quality.compile.file import compile_table, revision_of
from headgate.quality.compile.resolve import JudgedTable
from headgate.quality.compile.results import rule_verdict
from headgate.quality.compile.tables import PARTIALS, RESULTS
from headgate.reconcile.compile.states import CHANGES
from headgate.reconcile.decision_table import statuses

SHIPPED = ("business", "customer", "orders", "taxi")
QUALITY = {"clock", "source", "view", "accept", "partial view", "partials", "refuse"}
PAIR = {*QUALITY, "states view", "states", "outcomes", "counts"}
STEPS = {
    "business": PAIR,
    "customer": PAIR,
    "orders": PAIR,
    "taxi": {*QUALITY, "keys", "reading"},
}
NEGATIVE = '{name: negative, when: "amount < 0"}'


def many(folder: Path, count: int) -> JudgedTable:
    lines = "\n".join(f'{{name: rule_{n}, when: "amount = {n}"}}' for n in range(count))
    return load_rule_table(folder, lines)


def body(judged: JudgedTable, view: str) -> str:
    """The statement that makes a view; one that the engine makes anew is that of the file for readers."""
    return compile_script(judged).view(view)


def columns(statement: str) -> list[str]:
    """The columns that a view or an INSERT selects, by another reader of SQL."""
    query = sqlglot.parse_one(statement[statement.index("SELECT") :], read="spark")
    assert isinstance(query, exp.Query)
    return query.named_selects


@pytest.mark.parametrize("name", SHIPPED)
def test_the_engine_has_every_step_that_it_asks_for(name: str) -> None:
    found = script_of(compile_shipped(name), shipped_table(name))
    assert {step.name for step in found.steps} == STEPS[name]
    for step in STEPS[name] & {"accept", "states", "partials", "keys", "refuse"}:
        assert found.one(step).startswith("INSERT INTO lake.")
        assert "\nSELECT" in found.one(step)


def test_each_rule_stands_once_with_its_condition_in_the_order_that_decides(tmp_path: Path) -> None:
    query = body(many(tmp_path, 100), "dq_judged_things")
    rules = re.findall(r"'rule_(\d+)', [^\n]*,\s+amount = (\d+)\b", query)
    assert rules == [(str(n), str(n)) for n in range(100)]
    assert query.count("amount = ") == 100


def test_a_rule_is_one_line_or_two() -> None:
    rules = shipped_table("customer").rules
    assert (
        rule_verdict(rules[:1] + rules[-1:])
        == """rule_verdict(
  -- name, status, severity, reason, and the condition on which the rule matches
  'delete_event', 'DELETE_EVENT', 'INFO', 'the row was deleted on-prem', t1.action = 'DELETE',
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
    quality = columns(body(load_rule_table(tmp_path, NEGATIVE), "dq_results_things"))
    assert sorted([*quality, "revision"]) == sorted(RESULTS)
    pair = columns(body(shipped_table("customer"), "dq_results_customer"))
    assert sorted([*pair, "revision"]) == sorted(CHANGES)
    accept = columns(compile_script(shipped_table("customer")).one("accept"))
    assert sorted(accept) == sorted(CHANGES)


@pytest.mark.parametrize("name", ["customer", "taxi"])
def test_partials_have_the_columns_of_their_table(name: str) -> None:
    found = script_of(compile_shipped(name), shipped_table(name))
    counted = columns(found.view(f"dq_partials_{name}"))
    whole, *more = columns(found.one("partials"))
    assert whole == "*"
    assert sorted([*counted, *more]) == sorted(PARTIALS)
    if name == "taxi":
        measured = found.view("dq_aggregate_partials_taxi")
        assert columns(measured[measured.rindex("\nSELECT") :]) == counted


def test_a_sensitive_column_is_masked_in_the_row(tmp_path: Path) -> None:
    query = body(load_rule_table(tmp_path, NEGATIVE), "dq_results_things")
    assert "to_json(struct(\n      id, '***' AS name, amount, `at`\n" in query


def test_sensitive_keys_hashes_and_actions_are_masked_and_only_the_window_of_a_time_is_told(
    tmp_path: Path,
) -> None:
    kinds = {"order_id": "STRING", "email": "STRING", "at": "TIMESTAMP(3)"}
    text = ONE.replace("email: STRING", "email: STRING, action: STRING")
    for name, kind in {**kinds, "action": "STRING"}.items():
        text = text.replace(f"{name}: {kind}", f"{name}: {{type: {kind}, sensitive: true}}")
    text = text.replace(
        "    rules:\n", "    hash: {onprem_field: email, cloud_field: email}\n    rules:\n"
    )
    judged = load_rule_file(tmp_path, f'{text}      - {{name: a, when: "total > 1"}}\n').tables[0]
    results = body(judged, "dq_results_orders")
    assert "sha2(CAST(order_id AS STRING), 256) AS pk" in results
    assert re.search(
        r"IF\(coalesce\([^\n]*action[^\n]*IS NULL, NULL, '\*\*\*'\) AS action", results
    )
    assert "IF(email IS NULL, NULL, '***') AS hash_onprem" in results
    assert "_at AS event_time" not in results
    for name in ("order_id", "email", "action", "`at`"):
        assert f"'***' AS {name}" in results


def test_only_rules_that_say_so_make_dead_letters(tmp_path: Path) -> None:
    rules = """{name: kept, when: "amount < 0"}
    {name: sent, when: "amount > 9", on_fail: dead_letter}"""
    sent = load_rule_table(tmp_path, rules)
    query = body(sent, "dq_results_things")
    assert "WHEN arrays_overlap(_verdict.rules, array('sent')) THEN 'dead_letter'" in query
    letters = compile_script(sent).one("refuse").partition("UNION ALL")[2]
    assert "JOIN dq_committed_things USING (kafka_topic, kafka_partition, kafka_offset)" in letters
    kept = load_rule_table(tmp_path, '{name: kept, when: "amount < 0"}')
    assert "dead_letter'" not in body(kept, "dq_results_things")
    assert "dq_committed" not in compile_script(kept).one("refuse")


def test_a_row_of_a_table_is_one_letter_as_json(tmp_path: Path) -> None:
    sent = load_rule_table(tmp_path, '{name: sent, when: "amount > 9", on_fail: dead_letter}', LAKE)
    letters = compile_script(sent).one("refuse").partition("UNION ALL")[2]
    assert "CAST(row AS BINARY) AS kafka_value" in letters
    assert letters.endswith("FROM dq_committed_things\nWHERE dq_outcome = 'dead_letter'")


def test_a_row_of_a_table_is_refused_by_its_value_as_it_would_be_judged(tmp_path: Path) -> None:
    found = compile_script(load_rule_table(tmp_path, NEGATIVE, LAKE))
    read = found.view("things_seen_read")
    assert "WHEN id IS NULL THEN 'dq_missing_pk'" in read
    assert "try_cast(amount AS DOUBLE) IS NULL THEN 'wrong_type'" in " ".join(read.split())
    assert found.view("things_seen").endswith("FROM things_seen_read\nWHERE _reason_code IS NULL")
    for step in ("outcomes", "refuse"):
        assert "FROM things_seen_read" in found.one(step)
    assert "struct(*)" not in found.one("refuse")


def known_keys(script: Script) -> list[str]:
    return [sql for sql in script.named("view") if "VIEW dq_known_keys_things AS" in sql]


def test_uniqueness_in_a_stream_looks_at_earlier_keys_but_not_its_own(tmp_path: Path) -> None:
    judged = load_rule_table(
        tmp_path, "{name: twice, type: unique, fields: [amount], horizon: 2 HOURS}"
    )
    assert body(judged, "dq_rows_things").count("<= 7200000000L") == 6
    found = compile_script(judged)
    by_hand, of_the_engine = known_keys(found)
    assert by_hand.endswith("WHERE FALSE")
    assert "lake.dq.keys_things WHERE batch_time <> session.batch_time" in of_the_engine
    assert len(found.named("keys")) == 1


def test_a_table_of_the_lake_is_judged_as_a_whole(tmp_path: Path) -> None:
    judged = load_rule_table(tmp_path, "{name: twice, type: unique, fields: [amount]}", LAKE)
    found = compile_script(judged)
    assert not found.named("keys")
    assert not known_keys(found)
    assert "keys_things" not in found.text
    assert "'accepted'" in found.one("outcomes")


def test_a_key_with_a_sensitive_value_is_hashed(tmp_path: Path) -> None:
    judged = load_rule_table(tmp_path, "{name: twice, type: unique, fields: [name]}")
    assert "sha2(to_json(" in body(judged, "dq_keyed_things")


def test_a_pair_that_no_rule_matches_has_a_verdict_that_is_counted_like_a_rule() -> None:
    found = compile_shipped("customer").rules
    verdicts = {rule.status: rule.metric for rule in found[len(shipped_table("customer").rules) :]}
    assert verdicts == {name: said.metric for name, said in statuses().items() if said.metric}
    for rule in found:
        assert (
            f"('{rule.name}', '{rule.metric}', '{rule.severity}')"
            in compile_shipped("customer").engine
        )


def test_all_three_severities_have_their_total(tmp_path: Path) -> None:
    query = body(load_rule_table(tmp_path, NEGATIVE), "dq_metrics_things")
    for severity in ("error", "warn", "info"):
        assert f"AS dq_{severity}_total" in query


def revision(judged: JudgedTable) -> str:
    return compile_table(judged, "rules.yml").revision


def test_the_revision_changes_with_a_rule_and_not_with_a_comment(tmp_path: Path) -> None:
    first = revision(load_rule_table(tmp_path, NEGATIVE))
    again = revision(load_rule_table(tmp_path, f"{NEGATIVE} # why"))
    other = revision(load_rule_table(tmp_path, '{name: negative, when: "amount < 1"}'))
    assert first == again != other


def test_another_version_of_headgate_is_another_revision_only_with_other_sql(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = load_rule_table(tmp_path, NEGATIVE)
    before = compile_table(judged, "rules.yml")
    monkeypatch.setattr(compile_module, "__version__", "99.0")
    after = compile_table(judged, "elsewhere/rules.yml")
    assert "Headgate 99.0" in after.text
    assert "Headgate 99.0" in after.engine
    assert after.revision == before.revision
    for old, new in (("-- Every", "-- Any"), ("current_timestamp", "now")):
        changed = compile_module.CLOCK.replace(old, new)
        monkeypatch.setattr(compile_module, "CLOCK", changed)
        assert (revision(judged) == before.revision) == (old == "-- Every")


def test_a_revision_is_of_statements_and_of_the_steps_that_the_engine_goes_by(
    tmp_path: Path,
) -> None:
    judged = load_rule_table(tmp_path, NEGATIVE)
    first, words, step, sql = (
        revision_of(judged, [text])
        for text in (
            "-- Why.\n-- step: accept\nSELECT 1;",
            "-- Because.\n-- step: accept\nSELECT 1;",
            "-- Why.\n-- step: refuse\nSELECT 1;",
            "-- Why.\n-- step: accept\nSELECT 2;",
        )
    )
    assert first == words
    assert len({first, step, sql}) == 3


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
