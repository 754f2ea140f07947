"""Plants keys with every kind of defect, from a seed, and knows what must come of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property

import numpy as np

from headgate.demo.reconcile.model import BusinessRow, Expected, Message, Phase, Plan, Planned
from headgate.demo.reconcile.pairs_roles import ROLES, SOUND, Role, sound
from headgate.demo.reconcile.rows import SPAN, SoundRows
from headgate.demo.reconcile.sayings import HashOf, Key

# One of so many sound keys comes early, and so does everything that becomes a dead letter.
EARLY = 40
# Rows and messages of so many keys go together, so that the sides of none come far apart.
AT_ONCE = 1_000
EARLIER = SPAN + timedelta(minutes=2)
_SOUND = Role(SOUND, 0, Expected("MATCH"), sound)


@dataclass(frozen=True)
class Order:
    """How many keys, from which seed, with event times from when on."""

    keys: int
    seed: int
    start: datetime


class Planting:
    """All keys of one order; what is said and stored of each does not depend on the clock."""

    def __init__(self, order: Order, hash_of: HashOf) -> None:
        self.order, self._hash_of = order, hash_of
        self._rows = SoundRows(order.seed, order.keys, order.start)
        self._roles = roles_of(order)

    def keys(self) -> Iterator[Planned]:
        for number, at in enumerate(self._roles):
            role = ROLES[at] if at >= 0 else _SOUND
            early = role.expected.letter is not None or (at < 0 and number % EARLY == 0)
            plan = role.plan(self._key(number, early=early))
            pk = self._rows.pk(number)
            yield Planned(pk, role.name, role.expected, _early(plan) if early else plan)

    def _key(self, number: int, *, early: bool) -> Key:
        """What comes early is older than all the rest: who polls by time never looks back."""
        row, whole = self._rows.drawn(number), self._rows.whole(number)
        if early:
            row = replace(row, last_updated=row.last_updated - EARLIER)
        return Key(number, row, whole, self._hash_of)

    @cached_property
    def planned(self) -> tuple[Planned, ...]:
        return tuple(self.keys())

    def parts(self, phase: Phase) -> Iterator[tuple[Planned, ...]]:
        """The keys of a wave, some at a time; those last of which more comes in a later wave."""
        keys = [key for key in self.planned if key.is_in(phase)]
        keys.sort(key=lambda key: any(w.phase not in ("early", phase) for w in key.plan.writes))
        for begin in range(0, len(keys), AT_ONCE):
            yield tuple(keys[begin : begin + AT_ONCE])

    def messages(self, phase: Phase, keys: Iterable[Planned] | None = None) -> list[Message]:
        wanted = self.planned if keys is None else keys
        return [m for key in wanted for m in key.plan.messages if m.phase == phase]

    def writes(
        self, phase: Phase, at: datetime, keys: Iterable[Planned] | None = None
    ) -> list[BusinessRow]:
        """What the cloud is to hold from now on; what it learns after the first wave is as new as that."""
        wanted = self.planned if keys is None else keys
        rows = [w.row for key in wanted for w in key.plan.writes if w.phase == phase]
        if phase in ("early", "first"):
            return rows
        first = at - timedelta(milliseconds=len(rows))
        return [
            replace(row, last_updated=first + timedelta(milliseconds=number))
            for number, row in enumerate(rows)
        ]

    def onprem(self) -> list[BusinessRow]:
        """The table on-prem, as it is in the end."""
        return [key.plan.onprem for key in self.planned if key.plan.onprem is not None]

    def counts(self) -> Mapping[str, int]:
        """Keys by role, the sound ones first."""
        counted = Counter(key.role for key in self.planned)
        return {name: counted[name] for name in (SOUND, *(role.name for role in ROLES))}


def _early(plan: Plan) -> Plan:
    return replace(
        plan,
        messages=tuple(replace(message, phase="early") for message in plan.messages),
        writes=tuple(replace(write, phase="early") for write in plan.writes),
    )


def roles_of(order: Order) -> list[int]:
    """The role of each key by its number, -1 for sound ones; each role at least once."""
    roles = np.full(order.keys, -1)
    chosen = np.random.default_rng([order.seed, 2]).permutation(order.keys)
    begin = 0
    for at, role in enumerate(ROLES):
        end = begin + max(1, order.keys * role.per_mille // 1000)
        roles[chosen[begin:end]] = at
        begin = end
    return [int(role) for role in roles]
