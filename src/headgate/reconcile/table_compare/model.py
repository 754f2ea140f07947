"""What is asked of a comparison of two tables, and what is decided before any row is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal

Tolerance = Decimal | timedelta
MATCH, MISMATCH = "MATCH", "MISMATCH"
MISSING_CLOUD, MISSING_ONPREM = "MISSING_CLOUD", "MISSING_ONPREM"
STATUSES = (MATCH, MISMATCH, MISSING_CLOUD, MISSING_ONPREM)
SIDES = ("onprem", "cloud")


@dataclass(frozen=True)
class Column:
    """A column as Spark describes it: its name and its type in lower case, as `decimal(12,2)`."""

    name: str
    type: str


@dataclass(frozen=True)
class Table:
    """One side: what a person calls it, what stands behind FROM, its columns in their order."""

    name: str
    source: str
    columns: tuple[Column, ...]

    @property
    def types(self) -> dict[str, str]:
        return {column.name: column.type for column in self.columns}


@dataclass(frozen=True)
class Asked:
    """How the tables are to be compared; without a key they are two multisets of rows.

    Names are those of the left table; `renamed` gives the right table's where it has another.
    """

    key: tuple[str, ...] = ()
    ignored: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    tolerances: Mapping[str, Tolerance] = field(default_factory=dict[str, Tolerance])
    hidden: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Compared:
    """A column that both sides have, each side's expression in the type that is compared."""

    name: str
    type: str
    onprem: str
    cloud: str
    tolerance: Tolerance | None = None

    def of(self, side: str) -> str:
        return self.onprem if side == "onprem" else self.cloud


@dataclass(frozen=True)
class Unlike:
    """A column whose two types cannot be compared."""

    name: str
    onprem: str
    cloud: str


@dataclass(frozen=True)
class Plan:
    """What will be compared, and what cannot be; a difference of columns is a difference too."""

    onprem: Table
    cloud: Table
    key: tuple[Compared, ...]
    columns: tuple[Compared, ...]
    only_onprem: tuple[str, ...]
    only_cloud: tuple[str, ...]
    unlike: tuple[Unlike, ...]
    hidden: frozenset[str]
    notes: tuple[str, ...]

    @property
    def same_columns(self) -> bool:
        return not (self.only_onprem or self.only_cloud or self.unlike)

    def common_type(self, name: str) -> str:
        return next(each.type for each in (*self.key, *self.columns) if each.name == name)

    def table(self, side: str) -> Table:
        return self.onprem if side == "onprem" else self.cloud
