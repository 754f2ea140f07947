"""What docs/rules.md shows is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headgate.conditions.spark_sql import to_spark
from headgate.quality.compile.columns import RuleColumns
from headgate.quality.compile.resolve import load_judged
from headgate.quality.evaluator import run_tests
from headgate.quality.spec.rule_checks import FORMS
from headgate.quality.spec.rule_tests import load_tests

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.M | re.S)
SHORT_FORMS = re.findall(r"^\| `(type: [^|]*)` \| `([^|]*)` \|$", PAGE, re.M)
TABLE = """\
version: 2
tables:
  - name: example
    pk: k
    sources:
      onprem:
        topic: t
        table: rows_of_t
        columns: {k: STRING, a: INT, b: INT, s: STRING, day: DATE, ts: TIMESTAMP(3)}
    rules:
      - {name: one, %s}
"""


@pytest.mark.parametrize(("written", "short_for"), SHORT_FORMS)
def test_a_short_form_is_what_the_page_says(tmp_path: Path, written: str, short_for: str) -> None:
    path = tmp_path / "example.yml"
    path.write_text(TABLE % written)
    judged = load_judged(path, {}).tables[0]
    condition = judged.rules[0].condition
    assert condition is not None
    assert to_spark(condition) == to_spark(RuleColumns(judged.table).condition(short_for))


def test_the_page_names_every_short_form() -> None:
    shown = {re.findall(r"type: (\w+)", written)[0] for written, _ in SHORT_FORMS}
    assert shown | {"unique", "schema"} == set(FORMS)


def test_the_rule_set_and_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    rules, tests = tmp_path / "payments.yml", tmp_path / "payments.tests.yml"
    rules.write_text(BLOCKS[0])
    tests.write_text(BLOCKS[1])
    judged = load_judged(rules, {})
    assert judged.notes == ()
    results = run_tests(judged.tables, load_tests(tests, ("payments",)))
    assert [result.passed for result in results] == [True, True], results
