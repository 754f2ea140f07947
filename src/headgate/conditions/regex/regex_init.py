"""Regular expressions that cost little: a subset that Java and Python read alike.

A pattern is found anywhere in a text unless `^` and `$` hold it; `$` is the very end. `canonical`
gives the text that Spark runs, or a PatternRefusal; `compiled` is the same question in Python.
"""

from __future__ import annotations

import re
from functools import lru_cache

from headgate.conditions.regex.group_loops import check_rounds
from headgate.conditions.regex.pairs import compared_moves
from headgate.conditions.regex.read import read
from headgate.conditions.regex.regex_automaton import automaton
from headgate.conditions.regex.regex_cost import check
from headgate.conditions.regex.regex_nodes import (
    Begin,
    Choice,
    End,
    Node,
    PatternRefusal,
    Repeat,
    Sequence,
    is_nullable,
)
from headgate.conditions.regex.write import write

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
    """For the Python twin: `compiled(p).search(s) is not None` is what `s RLIKE p` says."""
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
