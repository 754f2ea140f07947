from __future__ import annotations

from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.random_expressions import COLUMNS, KINDS, random_condition, random_expr

from headgate.conditions.ast import columns_of, walk
from headgate.conditions.parser import parse_condition, parse_value
from headgate.conditions.spark_sql import to_spark

QUICK = settings(
    max_examples=20,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@QUICK
@given(seed=st.integers(0, 2**32))
def test_a_rendered_condition_reads_back_as_the_same_tree(seed: int) -> None:
    tree = random_condition(Random(seed), depth=3)
    assert parse_condition(to_spark(tree), COLUMNS, batch_time=True) == tree


@QUICK
@given(seed=st.integers(0, 2**32), kind=st.sampled_from(KINDS))
def test_a_rendered_value_reads_back_as_the_same_tree(seed: int, kind) -> None:
    tree = random_expr(Random(seed), kind, depth=2)
    assert parse_value(to_spark(tree), COLUMNS, batch_time=True) == tree


@QUICK
@given(seed=st.integers(0, 2**32))
def test_the_columns_of_a_tree_are_declared_ones(seed: int) -> None:
    tree = random_condition(Random(seed), depth=3)
    assert set(columns_of(tree)) <= set(COLUMNS)
    assert all(node.type.name != "NULL" for node in walk(tree))
