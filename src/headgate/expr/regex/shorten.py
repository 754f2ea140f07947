"""The same question with less to try: a pattern is rewritten so that engines need not go back.

Only whether a text matches is asked, never where, so repetitions may be joined, given to one side,
or left away at the ends of a pattern that is searched for.
"""

from __future__ import annotations

from headgate.expr.regex.ends import trimmed
from headgate.expr.regex.neighbours import settled
from headgate.expr.regex.nodes import (
    EMPTY,
    Chars,
    Choice,
    Node,
    Repeat,
    Sequence,
    Span,
    is_nullable,
)

_ROUNDS = 20


def shorten(node: Node) -> Node:
    """A pattern found in the same texts."""
    for _ in range(_ROUNDS):
        shorter = trimmed(simple(node))
        if shorter == node:
            break
        node = shorter
    return node


def simple(node: Node) -> Node:
    """A pattern for the same language."""
    match node:
        case Sequence():
            return _sequence(node)
        case Choice():
            return _choice([simple(item) for item in node.items], node.span)
        case Repeat():
            return _repeat(node, simple(node.item))
        case _:
            return node


def _sequence(node: Sequence) -> Node:
    items: list[Node] = []
    for item in map(simple, node.items):
        items.extend(item.items if isinstance(item, Sequence) else (item,))
    items = settled(items)
    return items[0] if len(items) == 1 else Sequence(tuple(items), node.span)


def _choice(items: list[Node], span: Span) -> Node:
    flat = [
        part for item in items for part in (item.items if isinstance(item, Choice) else (item,))
    ]
    optional = any(item == EMPTY or _is_optional(item) for item in flat)
    branches = _joined([_required(item) for item in flat if item != EMPTY])
    node = branches[0] if len(branches) == 1 else Choice(tuple(branches), span)
    if not branches:
        return EMPTY
    return _repeat(Repeat(node, 0, 1, span), node) if optional else node


def _is_optional(node: Node) -> bool:
    return isinstance(node, Repeat) and node.least == 0 and not is_nullable(node.item)


def _required(node: Node) -> Node:
    if isinstance(node, Repeat) and _is_optional(node):
        return _repeat(Repeat(node.item, 1, node.most, node.span, node.possessive), node.item)
    return node


def _joined(items: list[Node]) -> list[Node]:
    """Branches without doubles, those of one character as one class where the first stood."""
    result: list[Node] = []
    place = None
    for item in items:
        if isinstance(item, Chars) and place is not None:
            before = result[place]
            if isinstance(before, Chars):
                result[place] = Chars(before.set | item.set, before.span)
        elif item not in result:
            place = len(result) if isinstance(item, Chars) else place
            result.append(item)
    return result


def _repeat(node: Repeat, item: Node) -> Node:
    least, most = node.least, node.most
    if most == 0 or item == EMPTY:
        return EMPTY
    if (least, most) == (1, 1):
        return item
    if (least, most) == (0, 1) and is_nullable(item):
        return item
    if most is None:
        return _unlimited(node, item)
    if isinstance(item, Repeat):
        return _nested(node, item)
    return Repeat(item, least, most, node.span, node.possessive)


def _unlimited(node: Repeat, item: Node) -> Node:
    least = 0 if is_nullable(item) else node.least
    body = _rounds(item)
    if body == item and isinstance(item, Repeat):
        return Repeat(item, least, None, node.span, node.possessive)
    return Repeat(simple(body), least, None, node.span, node.possessive)


def _rounds(item: Node) -> Node:
    """What a single round takes, where the rounds of `item` go on without limit."""
    match item:
        case Repeat() if item.least <= 1 and (item.most is None or item.least == 0):
            return _rounds(item.item)
        case Choice():
            return Choice(tuple(_rounds(part) for part in item.items), item.span)
        case Sequence() if item.items and is_nullable(item):
            return Choice(tuple(_rounds(part) for part in item.items), item.span)
        case _:
            return item


def _nested(node: Repeat, inner: Repeat) -> Node:
    least, most = node.least, node.most or 0
    if (inner.least, inner.most) == (0, 1):
        return Repeat(inner.item, 0, most, node.span)
    if inner.most is None and inner.least <= 1:
        return Repeat(inner.item, inner.least * least, None, node.span)
    if (least, most) == (0, 1) and inner.least == 1:
        return Repeat(inner.item, 0, inner.most, node.span)
    if inner.least == inner.most and least == most:
        count = inner.least * least
        return Repeat(inner.item, count, count, node.span)
    return Repeat(inner, least, most, node.span)
