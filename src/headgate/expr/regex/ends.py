"""The ends of a pattern that is searched for: what may be there or not need not be looked for."""

from __future__ import annotations

from typing import Literal

from headgate.expr.regex.nodes import EMPTY, Choice, Node, Repeat, Sequence

_Side = Literal[0, -1]


def trimmed(node: Node) -> Node:
    """Without optional parts at both ends, unless an anchor holds them."""
    return _trimmed(_trimmed(node, 0), -1)


def _trimmed(node: Node, side: _Side) -> Node:
    match node:
        case Repeat():
            return _fewest(node, side)
        case Choice():
            items = tuple(_trimmed(item, side) for item in node.items)
            return EMPTY if EMPTY in items else Choice(items, node.span)
        case Sequence() if node.items:
            rest = node.items[1:] if side == 0 else node.items[:-1]
            outer = _trimmed(node.items[side], side)
            if outer == EMPTY:
                return _trimmed(Sequence(rest, node.span), side)
            return Sequence((outer, *rest) if side == 0 else (*rest, outer), node.span)
        case _:
            return node


def _fewest(node: Repeat, side: _Side) -> Node:
    if node.least == 0:
        return EMPTY
    outer = _trimmed(node.item, side)
    if outer == EMPTY:
        return EMPTY
    if outer == node.item:
        return Repeat(node.item, node.least, node.least, node.span)
    rest = Repeat(node.item, node.least - 1, node.least - 1, node.span)
    return Sequence((outer, rest) if side == 0 else (rest, outer), node.span)
