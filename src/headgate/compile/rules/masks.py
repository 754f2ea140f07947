"""Which rules hold on a row, a bit each, and the verdict on a row on which one does.

Status, reason and names are looked up only where a rule holds: a clean row costs its conditions and
nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from headgate.compile.fragments import call, comment, fits, hanging
from headgate.compile.rules.model import JudgedRule
from headgate.expr.literals import spark_literal
from headgate.expr.spark import to_spark

# As many conditions as a generated method can have and still be far from the 8,000 bytes of bytecode
# beyond which the JIT leaves it alone and Spark gives up whole-stage code.
BITS = 16
_NO_VERDICT = (
    "CAST(NULL AS STRUCT<status: STRING, reason: STRING, severity: STRING, rules: ARRAY<STRING>>)"
)
_TWICE = comment("The masks once more: of what stands twice, Spark makes a method of its own.")


def again(at: int) -> str:
    """The column that says whether a `unique` rule has met the row's key before."""
    return f"_again_{at}"


def mask_columns(rules: Sequence[JudgedRule]) -> list[str]:
    """One BIGINT for every 16 rules, and `_any` where that is more than one.

    A condition that is NULL does not hold.
    """
    terms = [_term(rule, at) for at, rule in enumerate(rules)]
    masks = ["\n| ".join(terms[start : start + BITS]) for start in range(0, len(terms), BITS)]
    columns = [f"{mask}\nAS {name}" for mask, name in zip(masks, _names(rules), strict=True)]
    if len(masks) > 1:
        union = "\n) | (\n  ".join(hanging(mask) for mask in masks)
        columns.append(f"{_TWICE}\n(\n  {union}\n) AS _any")
    return columns


def _term(rule: JudgedRule, at: int) -> str:
    condition = to_spark(rule.condition) if rule.condition is not None else again(at)
    bit = f"{1 << at % BITS}L"
    whole = f"IF({condition}, {bit}, 0L)  {comment(rule.name)}"
    if fits(whole):
        return whole
    return f"IF(  {comment(rule.name)}\n    {condition},\n    {bit}, 0L)"


def _names(rules: Sequence[JudgedRule]) -> list[str]:
    return [f"_held_{mask}" for mask in range(-(-len(rules) // BITS))]


def verdict_column(rules: Sequence[JudgedRule], otherwise: str = "", unless: str = "") -> str:
    """`_verdict`, of the first rule that holds; where none does it is `otherwise`, or NULL.

    Where `unless` is true no rule is asked.
    """
    if not rules:
        return f"{otherwise or _NO_VERDICT} AS _verdict"
    structs = [
        "named_struct('name', {}, 'status', {}, 'severity', {}, 'reason', {})".format(
            *map(spark_literal, (rule.name, rule.status, rule.severity, rule.reason))
        )
        for rule in rules
    ]
    masks = _names(rules)
    verdict = call(
        "rule_verdict", [call("array", structs), str(BITS), f"array({', '.join(masks)})"]
    )
    # `_any` alone would do, but a mask that is referred to twice keeps Spark from folding the
    # projection of the masks into this one, where each would stand once.
    none = "_held_0 = 0" if len(masks) == 1 else "_held_0 | _any = 0"
    clean = f"{unless} OR {none}" if unless else none
    return f"{call('IF', [clean, otherwise or 'NULL', verdict])} AS _verdict"


def any_of(rules: Sequence[JudgedRule], wanted: Sequence[JudgedRule]) -> str:
    """Whether one of the wanted rules holds; empty when none is wanted."""
    bits = dict.fromkeys(_names(rules), 0)
    for at, rule in enumerate(rules):
        if rule in wanted:
            bits[f"_held_{at // BITS}"] |= 1 << at % BITS
    return " OR ".join(f"{mask} & {value}L <> 0" for mask, value in bits.items() if value)
