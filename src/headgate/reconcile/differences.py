"""Why two rows of one key differ: column by column, both values and the kind of difference.

The kinds are tried in the order of `KINDS`; the first that explains the pair is told. A pair that
none explains is `real`: somebody changed the value on one side only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from headgate.config.reference import MASK
from headgate.reconcile.differences_kinds import EXPLAINED, Kind, kind_of, same_value
from headgate.reconcile.differences_shown import shown_value

KINDS: tuple[Kind, ...] = (*(kind for kind, _ in EXPLAINED), "real")
Row = Mapping[str, object]
Same = Callable[[str, object, object], bool]


@dataclass(frozen=True)
class Difference:
    """One column in which the two sides differ; a masked value keeps its kind."""

    column: str
    kind: Kind
    onprem: str | None
    cloud: str | None


@dataclass(frozen=True)
class RowDifference:
    """What reading one key on both sides gave."""

    pk: str
    found: str
    differences: tuple[Difference, ...] = ()

    @property
    def kinds(self) -> frozenset[Kind]:
        return frozenset(found.kind for found in self.differences)


# What `found` can say.
EQUAL, DIFFERENT = "equal", "different"
NOT_ONPREM, NOT_CLOUD, NOWHERE = "not on-prem", "not in the cloud", "on neither side"


def by_value(column: str, onprem: object, cloud: object) -> bool:
    """Two values are the same if they are equal as values, NULL and NaN included."""
    return same_value(onprem, cloud)


def row_difference(
    pk: str,
    onprem: Row | None,
    cloud: Row | None,
    columns: Iterable[str],
    hidden: frozenset[str] = frozenset(),
    same: Same = by_value,
) -> RowDifference:
    """The columns in which two rows differ; `same` says what counts as equal, as a contract does."""
    if onprem is None or cloud is None:
        return RowDifference(pk, _missing(onprem, cloud))
    pairs = ((name, onprem.get(name), cloud.get(name)) for name in columns)
    differing = [(name, a, b) for name, a, b in pairs if not same(name, a, b)]
    told = tuple(_difference(name, a, b, name in hidden) for name, a, b in differing)
    return RowDifference(pk, DIFFERENT if told else EQUAL, told)


def count_kinds(rows: Iterable[RowDifference]) -> dict[Kind, int]:
    """How often each kind was found, in the order in which kinds are tried; those found only."""
    found = Counter(difference.kind for row in rows for difference in row.differences)
    return {kind: found[kind] for kind in KINDS if found[kind]}


def _missing(onprem: Row | None, cloud: Row | None) -> str:
    if onprem is None and cloud is None:
        return NOWHERE
    return NOT_ONPREM if onprem is None else NOT_CLOUD


def _difference(column: str, onprem: object, cloud: object, hidden: bool) -> Difference:
    kind = kind_of(onprem, cloud)
    if hidden:
        return Difference(column, kind, _masked(onprem), _masked(cloud))
    return Difference(column, kind, shown_value(onprem, kind), shown_value(cloud, kind))


def _masked(value: object) -> str | None:
    return None if value is None else MASK
