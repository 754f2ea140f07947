"""Sound rows, drawn from a seed: same seed and start, same rows."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import TypeAlias

import numpy as np

from headgate.demo.reconcile.model import BusinessRow

Stream: TypeAlias = np.random.Generator
SPAN = timedelta(minutes=8)
# Every name has a letter that can be written in two ways, and capitals beside small letters.
NAMES = (
    *("Renée Dubois", "Łucja Żak", "Jürgen Weiß", "Søren Åberg", "Beyoncé Núñez"),
    *("François Lefèvre", "Zoë Müller", "Ángel Peña", "Čeněk Dvořák", "İbrahim Çelik"),
)
EMPTY = 0.02


class SoundRows:
    """Draws all rows at once; the version of each is its event time."""

    def __init__(self, seed: int, keys: int, start: datetime) -> None:
        stream = np.random.default_rng([seed, 1])
        self._seed, self._keys, self._start = seed, keys, start
        self._names = stream.integers(0, len(NAMES), keys)
        # The last digit is never 0, so that a lost digit always shows.
        self._cents = stream.integers(1_000, 9_000_000, keys) * 10 + stream.integers(1, 10, keys)
        self._moments = stream.integers(0, 86_400_000 * 365, keys)
        self._ratios = stream.integers(10**9, 10**10, keys) * 10 + stream.integers(1, 10, keys)
        self._nulls = stream.random((keys, 4)) < EMPTY

    def pk(self, number: int) -> str:
        return f"K{self._seed}-{number:07d}"

    def whole(self, number: int) -> BusinessRow:
        """The row with all its values."""
        return BusinessRow(
            pk=self.pk(number),
            col1=f"{NAMES[self._names[number]]} {number:07d}",
            col2=Decimal(int(self._cents[number])).scaleb(-2),
            col3=self._start - timedelta(milliseconds=int(self._moments[number])),
            col4=int(self._ratios[number]) / 10**6,
            last_updated=self._start + SPAN * number / self._keys,
        )

    def drawn(self, number: int) -> BusinessRow:
        """The row with some of its values missing, as on both sides."""
        row, nulls = self.whole(number), self._nulls[number]
        return BusinessRow(
            pk=row.pk,
            col1=None if nulls[0] else row.col1,
            col2=None if nulls[1] else row.col2,
            col3=None if nulls[2] else row.col3,
            col4=None if nulls[3] else row.col4,
            last_updated=row.last_updated,
        )
