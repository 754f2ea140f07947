"""The dates of a backfill, as a person, a run's options and a range tell them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from headgate.core.ledger.store_model import Range
from headgate.errors import UsageError

FROM, TO = "from", "to"
EXAMPLE = "--from 2024-01-03 --to 2024-01-05"


@dataclass(frozen=True)
class Dates:
    """The first and the last date, both of them included."""

    first: date
    last: date

    @classmethod
    def asked(cls, options: Mapping[str, str | None]) -> Dates:
        """Dates as a person writes them; UsageError when they make no range."""
        first, last = (_date(options.get(name), name) for name in (FROM, TO))
        if first > last:
            raise UsageError(
                f"the dates run backwards: {first} is after {last}",
                fix=f"--from {last} --to {first}",
            )
        return cls(first, last)

    @classmethod
    def told(cls, range_: Range) -> Dates:
        """The dates of a batch; its range has them as numbers."""
        return cls(*(_from_number(range_.end[name]) for name in (FROM, TO)))

    def numbers(self) -> dict[str, int]:
        return {FROM: _number(self.first), TO: _number(self.last)}

    def options(self) -> dict[str, str]:
        return {FROM: str(self.first), TO: str(self.last)}

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"


def _date(text: str | None, name: str) -> date:
    if text is None:
        raise UsageError(f"a backfill needs two dates: --{name} is missing", fix=EXAMPLE)
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"--{name} {text} is no date", why=str(error), fix=EXAMPLE) from None


def _number(day: date) -> int:
    return day.year * 10_000 + day.month * 100 + day.day


def _from_number(number: int) -> date:
    return date(number // 10_000, number // 100 % 100, number % 100)
