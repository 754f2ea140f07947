"""Holds a feed against the rule table that it feeds."""

from __future__ import annotations

from collections.abc import Iterator

from headgate.declarations.declared import Declared
from headgate.declarations.refusal import suggestion
from headgate.demo.quality.rule_feed import Defect, RuleFeed
from headgate.demo.quality.rule_feed_loader import SIDES
from headgate.errors import DeclarationError, Fault
from headgate.quality.compile.model import JudgedTable

_Found = Iterator[tuple[str, str, str]]


def require_fit(feed: Declared[RuleFeed], table: JudgedTable) -> None:
    """Raise with all places where the feed speaks of what the table does not have."""
    found = list(_faults(feed.value, table))
    if found:
        raise DeclarationError([_fault(feed, *one) for one in found])


def _fault(feed: Declared[RuleFeed], pointer: str, what: str, fix: str) -> Fault:
    return feed.fault(pointer, what, "", fix)


def _faults(feed: RuleFeed, table: JudgedTable) -> _Found:
    sources = table.table.sides
    for side in feed.sides:
        if side not in sources:
            yield f"sides.{side}", "the table has no such source", f"It has: {', '.join(sources)}."
    for side in sources:
        if sources[side].topic is None:
            yield "sides", f"`{side}` reads no topic", "Feed a table that reads topics."
        elif len(sources) > 1 and side not in feed.sides:
            yield "sides", f"`{side}` is missing", "Say what its messages show."
    for index, defect in enumerate(feed.defects):
        yield from _defect_faults(f"defects[{index}]", defect, table)


def _defect_faults(pointer: str, defect: Defect, table: JudgedTable) -> _Found:
    rules = {rule.name: rule for rule in table.rules}
    for side in SIDES:
        if defect.change(side) and side not in table.table.sides:
            yield f"{pointer}.{side}", "the table has no such source", "Take the other one."
    for name in defect.expect.rules:
        if name not in rules:
            yield (
                f"{pointer}.expect.rules",
                f"there is no rule `{name}`",
                suggestion(name, rules, "rules"),
            )
    first = rules.get(defect.expect.rules[0]) if defect.expect.rules else None
    if first and first.status != defect.expect.status:
        what = f"`{first.name}` gives {first.status}, not {defect.expect.status}"
        yield f"{pointer}.expect.status", what, f"Write {first.status}."
