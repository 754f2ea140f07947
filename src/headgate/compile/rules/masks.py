"""Which rules hold on a row, a bit each; the least bit gives the status.

Names are looked up only for rows on which a rule holds, so that a clean row costs its conditions
and nothing else. Spark evaluates a bit's condition once: a projection that is referred to more
than once is not folded into the one above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.compile.fragments import comment, fits
from headgate.compile.rules.model import JudgedRule
from headgate.expr.literals import spark_literal
from headgate.expr.spark import to_spark

# Wider masks do not run faster; narrower ones are more columns to carry.
BITS = 31


@dataclass(frozen=True)
class Bit:
    """Where a rule stands in the masks, counted from 0."""

    rule: JudgedRule
    mask: int
    bit: int

    @property
    def column(self) -> str:
        return mask_name(self.mask)

    @property
    def value(self) -> int:
        return 1 << self.bit


def mask_name(mask: int) -> str:
    return f"_held_{mask}"


def bits_of(rules: Sequence[JudgedRule]) -> tuple[Bit, ...]:
    return tuple(Bit(rule, at // BITS, at % BITS) for at, rule in enumerate(rules))


def masks_of(rules: Sequence[JudgedRule]) -> tuple[tuple[Bit, ...], ...]:
    """The bits of each mask, in order."""
    bits = bits_of(rules)
    return tuple(bits[start : start + BITS] for start in range(0, len(bits), BITS))


def again(at: int) -> str:
    """The column that says whether a `unique` rule has met the row's key before."""
    return f"_again_{at}"


def mask_columns(rules: Sequence[JudgedRule]) -> list[str]:
    """One BIGINT for every 31 rules; a condition that is NULL does not hold."""
    found: list[str] = []
    for mask, bits in enumerate(masks_of(rules)):
        terms = [_term(bit, mask * BITS + at) for at, bit in enumerate(bits)]
        found.append("\n| ".join(terms) + f"\nAS {mask_name(mask)}")
    return found


def _term(bit: Bit, at: int) -> str:
    condition = to_spark(bit.rule.condition) if bit.rule.condition is not None else again(at)
    whole = f"IF({condition}, {bit.value}L, 0L)  {comment(bit.rule.name)}"
    if fits(whole):
        return whole
    return f"IF(  {comment(bit.rule.name)}\n    {condition},\n    {bit.value}L, 0L)"


def first_branches(rules: Sequence[JudgedRule]) -> list[tuple[str, str]]:
    """The place of the first rule that holds, counted from 1, as branches of a CASE."""
    return [
        (
            f"{mask_name(mask)} <> 0",
            f"bit_count(({mask_name(mask)} & -{mask_name(mask)}) - 1) + {mask * BITS + 1}",
        )
        for mask in range(len(masks_of(rules)))
    ]


def held_names(rules: Sequence[JudgedRule]) -> list[str]:
    """The names of the rules that hold, one list for each mask."""
    return [
        f"filter(\n  array({_listed([bit.rule.name for bit in bits])}),\n"
        f"  (name, bit) -> getbit({mask_name(mask)}, bit) = 1\n)"
        for mask, bits in enumerate(masks_of(rules))
    ]


def _listed(names: Sequence[str]) -> str:
    """Names in lines of a readable length."""
    rows: list[str] = [""]
    for name in names:
        text = f"{spark_literal(name)}, "
        if len(rows[-1]) + len(text) > 84:
            rows.append("")
        rows[-1] += text
    inner = "\n    ".join(row.rstrip() for row in rows).removesuffix(",")
    return inner if len(rows) == 1 else f"\n    {inner}\n  "


def any_of(rules: Sequence[JudgedRule], wanted: Sequence[JudgedRule]) -> str:
    """Whether one of the wanted rules holds."""
    chosen = {rule.name for rule in wanted}
    tests: list[str] = []
    for mask, bits in enumerate(masks_of(rules)):
        value = sum(bit.value for bit in bits if bit.rule.name in chosen)
        if value:
            tests.append(f"{mask_name(mask)} & {value}L <> 0")
    return " OR ".join(tests)


def none_of(rules: Sequence[JudgedRule]) -> str:
    """Whether no rule holds; empty when there is none."""
    masks = [mask_name(mask) for mask in range(len(masks_of(rules)))]
    return f"{' | '.join(masks)} = 0" if masks else ""
