"""Values with a schema registry's frame before the JSON: a zero byte and four bytes of the schema's id."""

from __future__ import annotations

from headgate.compile.fragments import branch
from headgate.spec.ruleset import RuleSource

NOT_FRAMED = "not_framed"
NOT_FRAMED_WORDS = "the value has no frame of a schema registry"
_BYTES = 5


def content(source: RuleSource) -> str:
    """What of a record's value is JSON. Of a value that is too short nothing is."""
    return f"substring(value, {_BYTES + 1})" if source.framed else "value"


def refusals(source: RuleSource) -> list[str]:
    """Asked first: without a frame, what follows it says nothing."""
    if not source.framed:
        return []
    unframed = f"octet_length(kafka_value) < {_BYTES}\nOR substring(kafka_value, 1, 1) <> X'00'"
    return [branch(unframed, f"'{NOT_FRAMED}'")]


def reasons(source: RuleSource) -> dict[str, str]:
    return {NOT_FRAMED: NOT_FRAMED_WORDS} if source.framed else {}
