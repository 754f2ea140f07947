"""What a pattern says of the beginning of a text."""

from __future__ import annotations

from typing import Literal as OneOf

from headgate.conditions.analysis.values import HIGHEST, Span, before
from headgate.conditions.regex.chars import LAST

_REGEX_SIGNS = frozenset("\\^$.|?*+()[]{}")
_REPEATS = frozenset("?*+{")


def prefix_span(prefix: str) -> Span:
    """All texts that begin so: texts are ordered by their code points."""
    kept = prefix.rstrip(chr(LAST))
    if not kept:
        return before(prefix), HIGHEST
    code = ord(kept[-1]) + 1
    following = chr(0xE000 if code == 0xD800 else code)
    return before(prefix), before(kept[:-1] + following)


def prefix_of_like(pattern: str) -> tuple[str, OneOf["all", "prefix", "part"]]:
    """The text before the first wildcard, and whether that is all there is to the pattern."""
    prefix, at = "", 0
    while at < len(pattern):
        sign = pattern[at]
        if sign in "%_":
            rest = pattern[at:]
            return prefix, "prefix" if rest.strip("%") == "" else "part"
        at += 2 if sign == "\\" else 1
        prefix += pattern[at - 1]
    return prefix, "all"


def prefix_of_regex(pattern: str) -> str:
    """The plain characters behind `^`, where the pattern is one sequence."""
    if not pattern.startswith("^") or "|" in pattern:
        return ""
    prefix = ""
    for sign in pattern[1:]:
        if sign in _REPEATS:
            return prefix[:-1]
        if sign in _REGEX_SIGNS:
            break
        prefix += sign
    return prefix
