"""Every kind of job that the composition root lists has a descriptor, which names code that is there."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

import pytest

from headgate.app import JOB_KINDS
from headgate.core.engine.job_kind import JOBS, KINDS
from headgate.core.engine.run_options import KafkaRunOptions


def test_a_descriptor_bears_the_name_under_which_it_is_listed() -> None:
    assert [kind.name for kind in KINDS.values()] == list(JOB_KINDS)


@pytest.mark.parametrize("name", JOB_KINDS)
def test_what_a_descriptor_names_by_a_string_is_defined(name: str) -> None:
    """The modules load PySpark, so their text is read."""
    kind = KINDS[name]
    for entry in filter(None, (kind.run, kind.write_report, kind.rebuild, *kind.services)):
        module, _, function = entry.partition(":")
        spec = find_spec(module)
        assert spec is not None
        assert spec.origin is not None
        tree = ast.parse(Path(spec.origin).read_text())
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", JOB_KINDS)
def test_the_options_of_a_kind_name_topics_where_it_follows_them(name: str) -> None:
    kind = KINDS[name]
    assert issubclass(kind.options, KafkaRunOptions) == kind.follows_topics


def test_a_kind_that_is_not_listed_is_not_there() -> None:
    assert "gold" not in KINDS
    assert KINDS.get("gold") is None
    assert JOBS.get("gold") is None
