"""Accept a pattern of the safe subset, or refuse it, and render it for Java and for Python.

A pattern is found anywhere in a text unless `^` and `$` hold it; `$` is the very end. `canonical`
gives the text that Spark runs, or raises PatternRefusal; `compiled` is the same pattern in Python.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Literal

from headgate.conditions.regex.automaton import automaton
from headgate.conditions.regex.cost import check, compared_moves
from headgate.conditions.regex.group_loops import check_rounds
from headgate.conditions.regex.nodes import (
    DOT,
    EVERY,
    SPACE,
    WORD,
    Begin,
    Chars,
    CharSet,
    Choice,
    End,
    Node,
    PatternRefusal,
    Repeat,
    Sequence,
    is_nullable,
)
from headgate.conditions.regex.parse import read

Flavour = Literal["java", "python"]
_HYPHEN = CharSet.one("-")
_NAMED = {WORD: "\\w", SPACE: "\\s", WORD.inverse: "\\W", SPACE.inverse: "\\S"}
_SIGNS = frozenset("\\^$.|?*+()[]{}")
_CLASS_SIGNS = frozenset("\\^-[]&")
_SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Zl", "Zp", "Mn", "Me", "Mc"})


def write(node: Node, flavour: Flavour) -> str:
    """The pattern, the same text for the same tree."""
    match node:
        case Begin():
            return "^" if flavour == "java" else "\\A"
        case End():
            return "\\z" if flavour == "java" else "\\Z"
        case Chars():
            return _chars(node.set, flavour)
        case Sequence():
            return "".join(_inside(item, flavour) for item in node.items)
        case Choice():
            return "|".join(write(item, flavour) for item in node.items)
        case Repeat():
            return _repeat(node, flavour)


def _inside(node: Node, flavour: Flavour) -> str:
    text = write(node, flavour)
    return f"(?:{text})" if isinstance(node, Choice) else text


def _repeat(node: Repeat, flavour: Flavour) -> str:
    text = write(node.item, flavour)
    if isinstance(node.item, Chars):
        return text + _count(node)
    # Java would call itself once a round; Python does not, and its possessive repetitions give wrong
    # answers up to 3.11.4. Where a round ends is certain (`check_rounds`), so both ask the same question.
    possessive = "+" if node.most is None and flavour == "java" else ""
    return f"(?:{text}){_count(node)}{possessive}"


def _count(node: Repeat) -> str:
    match node.least, node.most:
        case 0, 1:
            return "?"
        case 0, None:
            return "*"
        case 1, None:
            return "+"
        case least, None:
            return f"{{{least},}}"
        case least, most:
            return f"{{{least}}}" if least == most else f"{{{least},{most}}}"


def _chars(found: CharSet, flavour: Flavour) -> str:
    if found == EVERY:
        return "[\\s\\S]"
    if found in _NAMED:
        return _NAMED[found]
    if found == DOT and flavour == "java":
        return "."
    if found.single is not None:
        return _single(found.single, flavour)
    inverse = found.inverse
    if len(inverse.ranges) < len(found.ranges) or inverse.single is not None:
        return f"[^{_ranges(inverse, flavour)}]"
    return f"[{_ranges(found, flavour)}]"


def _single(code: int, flavour: Flavour) -> str:
    sign = chr(code)
    # A class needs no backslash, which SQL text would double.
    if sign in _SIGNS - {"\\", "^", "[", "]"}:
        return f"[{sign}]"
    return f"\\{sign}" if sign in _SIGNS else _sign(code, flavour)


def _ranges(found: CharSet, flavour: Flavour) -> str:
    names = ""
    for known, name in ((WORD, "\\w"), (SPACE, "\\s")):
        rest = found - known
        if known <= found and len(rest.ranges) <= len(found.ranges) - len(known.ranges):
            found, names = rest, names + name
    # A hyphen that stands first needs no backslash.
    rest = found - _HYPHEN
    if found >= _HYPHEN and len(rest.ranges) <= len(found.ranges):
        found, names = rest, "-" + names
    return names + "".join(_range(low, high, flavour) for low, high in found.ranges)


def _range(low: int, high: int, flavour: Flavour) -> str:
    first, last = (_class_sign(code, flavour) for code in (low, high))
    if low == high:
        return first
    return first + last if high == low + 1 else f"{first}-{last}"


def _class_sign(code: int, flavour: Flavour) -> str:
    return f"\\{chr(code)}" if chr(code) in _CLASS_SIGNS else _sign(code, flavour)


def _sign(code: int, flavour: Flavour) -> str:
    sign = chr(code)
    if sign in _SHORT:
        return _SHORT[sign]
    category = unicodedata.category(sign)
    if category not in _UNSEEN and (sign == " " or category != "Zs"):
        return sign
    if flavour == "java":
        return f"\\x{{{code:X}}}"
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


_KEPT = 4_096
# What a pattern that is refused while it is read is counted as: such a one may have been long.
_REFUSED_COST = 200_000


@lru_cache(_KEPT)
def canonical(text: str) -> str:
    """The accepted pattern as Java runs it; a PatternRefusal for any other pattern."""
    node = _checked(text)
    written = write(node, "java")
    possessive = _possessive(node)
    if possessive is not None and written != text:
        raise PatternRefusal(
            possessive.span.start, "the repetition is possessive", "Leave the second `+` away."
        )
    return written


@lru_cache(_KEPT)
def analysis_cost(text: str) -> int:
    """About how many steps it takes to check the pattern, a few million a second.

    A pattern alone is bounded by its length and its states; a document of many has to add them up.
    """
    try:
        made = automaton(read(text))
    except PatternRefusal:
        return _REFUSED_COST
    return len(made.sets) ** 2 + compared_moves(made)


@lru_cache(_KEPT)
def python_text(text: str) -> str:
    """The pattern as Python's `re` runs it, with its flag ASCII."""
    return write(_checked(text), "python")


@lru_cache(_KEPT)
def compiled(text: str) -> re.Pattern[str]:
    """For the reference evaluator: `compiled(p).search(s) is not None` is the value of `s RLIKE p`."""
    return re.compile(python_text(text), re.ASCII)


@lru_cache(_KEPT)
def _checked(text: str) -> Node:
    node = read(text)
    # `^a*` and `a*$` match every text, `^a*$` does not.
    if is_nullable(node, (Begin,)) or is_nullable(node, (End,)):
        raise PatternRefusal(0, "it matches every text", "Write what must be there.")
    made = automaton(node)
    check(text, made)
    check_rounds(text, node, made)
    return node


def _possessive(node: Node) -> Repeat | None:
    match node:
        case Repeat():
            return node if node.possessive else _possessive(node.item)
        case Sequence() | Choice():
            return next(filter(None, map(_possessive, node.items)), None)
        case _:
            return None
