"""Rule files written as text, and the rules or faults that loading them gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.conditions.spark_sql import to_spark
from headgate.errors import DeclarationError, Fault
from headgate.quality.compile.resolve import JudgedFile, JudgedRule, load_judged

ONE = """\
version: 2
tables:
  - name: orders
    pk: order_id
    sources:
      onprem:
        topic: orders.raw
        table: orders_rows
        event_time: at
        columns: {order_id: STRING, total: DOUBLE, price: "DECIMAL(10, 2)", items: INT,
                  paid: BOOLEAN, day: DATE, at: TIMESTAMP(3), until: TIMESTAMP(3), email: STRING}
    rules:
"""
PAIR = """\
version: 2
tables:
  - name: customer
    pk: customer_id
    sources:
      onprem: {topic: a, table: t_a, columns: {customer_id: STRING, action: STRING, h1: STRING}}
      cloud: {topic: b, table: t_b, columns: {customer_id: STRING, h2: STRING, late: BOOLEAN}}
    hash: {onprem_field: h1, cloud_field: h2}
rules:
"""


def load_rule_file(folder: Path, text: str) -> JudgedFile:
    """Write a rule file and judge it."""
    path = folder / "rules.yml"
    path.write_text(text)
    return load_judged(path, {})


def load_rule(folder: Path, rule: str, *, pair: bool = False) -> JudgedRule:
    """The judged form of one rule, written as a YAML flow mapping."""
    text = f"{PAIR}  - {rule}\n" if pair else f"{ONE}      - {rule}\n"
    (found,) = load_rule_file(folder, text).tables[0].rules
    return found


def load_condition(folder: Path, rule: str, *, pair: bool = False) -> str:
    """The condition of one rule as Spark SQL."""
    found = load_rule(folder, rule, pair=pair).condition
    assert found is not None
    return to_spark(found)


def load_faults(folder: Path, *rules: str, pair: bool = False) -> list[Fault]:
    """The faults that loading these rules raises."""
    before, indent = (PAIR, "  ") if pair else (ONE, "      ")
    with pytest.raises(DeclarationError) as caught:
        load_rule_file(folder, before + "".join(f"{indent}- {rule}\n" for rule in rules))
    return list(caught.value.faults)
