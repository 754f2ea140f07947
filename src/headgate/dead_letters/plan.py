"""Which dead letters are sent again: a pure function of them and of what was sent before."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from headgate.dead_letters.model import (
    FROM_TABLE,
    SAME_RECORD,
    SENT_BEFORE,
    Facts,
    Item,
    Outcome,
    RedrivePlan,
)


def redrive_plan(
    letters: Iterable[Facts], sent: Collection[str], to: str | None = None
) -> RedrivePlan:
    """Oldest first; each record once, however many jobs refused it.

    `sent` has the origins and the ids of what was sent before; `to` is another topic than its own.
    """
    items: list[Item] = []
    skipped: list[Outcome] = []
    taken: set[str] = set()
    for each in sorted(letters, key=lambda one: (one.refused_at, one.origin, one.id)):
        if why := _left_alone(each, sent, taken, to):
            skipped.append(Outcome(each.id, "skipped", why=why))
            continue
        taken |= {each.id, each.origin}
        topic = to or each.topic or ""
        items.append(Item(each.id, topic, each.origin, each.job, each.reason_code))
    return RedrivePlan(tuple(items), tuple(skipped))


def _left_alone(each: Facts, sent: Collection[str], taken: set[str], to: str | None) -> str:
    if not each.topic and to is None:
        return FROM_TABLE
    if each.id in sent or (each.origin and each.origin in sent):
        return SENT_BEFORE
    return SAME_RECORD if each.id in taken or (each.origin and each.origin in taken) else ""
