"""How a Cassandra table has moved away from its hash contract."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from headgate.declarations.refusal import suggestion
from headgate.errors import SettingsError
from headgate.reconcile.cassandra.session import TableShape


@dataclass(frozen=True)
class Drift:
    """Columns that no hash has, and columns of the contract that the table has no more."""

    new: tuple[str, ...]
    removed: tuple[str, ...]

    def since(self, before: Drift) -> Drift:
        """Only what was not known before."""
        return Drift(
            tuple(name for name in self.new if name not in before.new),
            tuple(name for name in self.removed if name not in before.removed),
        )

    def lines(self, table: str) -> list[str]:
        """For a person: what it means for the hashes."""
        said = [
            f"{table} has a column `{name}` that the contract does not: it is not hashed"
            for name in self.new
        ]
        return said + [
            f"{table} has no column `{name}` any more: it hashes as null, so its keys will differ"
            for name in self.removed
        ]


NOTHING = Drift((), ())


def require_columns(shape: TableShape, fields: Collection[str]) -> None:
    """Refuse a contract with a column that the table never had: a slip, and all keys would differ."""
    for name in fields:
        if name not in shape.columns and name not in shape.dropped:
            raise SettingsError(
                f"{shape.name} has no column `{name}`, and never had one",
                why="the hash contract names it: it would hash as null in every row",
                fix=suggestion(name, shape.columns, "columns"),
            )


def drift_of(shape: TableShape, fields: Collection[str], version: str | None) -> Drift:
    """What the table has beside key, version and contract, and what of the contract it lacks."""
    known = {*fields, *shape.primary_key, *([version] if version else [])}
    return Drift(
        tuple(sorted(name for name in shape.columns if name not in known)),
        tuple(name for name in fields if name not in shape.columns),
    )
