"""Repairs written to Cassandra, each with the timestamp of the source's version.

Cassandra keeps of two writes the one with the greater timestamp. So a row that somebody writes after
our look at it stays, whatever we send. Where the row that stands there has a version of its own and
was written later than that version, our timestamp is one microsecond after that writing: enough to
replace what we have seen, too little to replace anything newer. No timestamp lies after now: one from
the future would hide every write that comes before then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from headgate.errors import OperationError
from headgate.reconcile.cassandra.session import quoted
from headgate.reconcile.cassandra.values import key_values
from headgate.reconcile.model import WholeRow
from headgate.reconcile.repair.model import Item, Outcome
from headgate.reconcile.repair.target import Announce, micros
from headgate.reconcile.repair.values import InexactError, column_value
from headgate.reconcile.rows_cassandra import CassandraRows

FROM_FUTURE = "the cloud's row was written with a timestamp of the future"
MASK, LONGEST_SHOWN = "***", 40
NO_EFFECT = "it had no effect: the cloud holds a newer write or delete"


class CassandraTarget:
    """Writes the columns that both sides have; `source_columns` are on-prem's."""

    def __init__(
        self,
        rows: CassandraRows,
        source_columns: Sequence[str],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        hidden: frozenset[str] = frozenset(),
    ) -> None:
        self._hidden = hidden
        self._rows, self._cassandra, shape, self._now = rows, rows.cassandra, rows.shape, now
        self._types = {name: column.cql_type for name, column in shape.columns.items()}
        self._columns = [n for n in shape.columns if n in source_columns and n not in rows.key]
        if not self._columns:
            raise OperationError(
                f"{shape.name} shares no column with the source",
                why=f"it has {', '.join(shape.columns)}",
                fix="check `reconcile: rows:` of the rule set",
            )
        names = [*rows.key, *self._columns]
        where = " AND ".join(f"{quoted(name)} = ?" for name in rows.key)
        self._insert = (
            f"INSERT INTO {shape.quoted} ({', '.join(map(quoted, names))})"
            f" VALUES ({', '.join('?' for _ in names)}) USING TIMESTAMP ?"
        )
        self._delete = f"DELETE FROM {shape.quoted} USING TIMESTAMP ? WHERE {where}"

    def send(
        self,
        items: Sequence[Item],
        source: Mapping[str, WholeRow],
        cloud: Mapping[str, WholeRow],
        announced: Mapping[str, int],
        announce: Announce,
    ) -> list[Outcome]:
        values, inexact = self._all_values(items, source)
        fitting = [item for item in items if item.action == "delete" or item.pk in values]
        stamps, future = self._stamps(fitting, cloud, announced)
        announce(stamps)
        stamped = [item for item in fitting if item.pk in stamps]
        waiting = [item for item in stamped if not _done_before(item, cloud, announced)]
        upserts = [item for item in waiting if item.action == "upsert"]
        deletes = [item for item in waiting if item.action == "delete"]
        self._cassandra.write_many(
            self._insert,
            [(*self._key(item), *values[item.pk], stamps[item.pk]) for item in upserts],
        )
        self._cassandra.write_many(
            self._delete, [(stamps[item.pk], *self._key(item)) for item in deletes]
        )
        return [*inexact, *future, *self._seen(stamped, stamps)]

    def _stamps(
        self,
        items: Sequence[Item],
        cloud: Mapping[str, WholeRow],
        announced: Mapping[str, int],
    ) -> tuple[dict[str, int], list[Outcome]]:
        """The write timestamps, and the keys that cannot have one now."""
        now = self._now()
        found = {i.pk: announced.get(i.pk) or timestamp(i, cloud.get(i.pk), now) for i in items}
        future = [Outcome(pk, "skipped", FROM_FUTURE) for pk, at in found.items() if at is None]
        return {pk: at for pk, at in found.items() if at is not None}, future

    def _seen(self, items: Sequence[Item], stamps: Mapping[str, int]) -> list[Outcome]:
        """Looked at again: a write behind a newer one is silently nothing to Cassandra."""
        after = self._rows.read([item.pk for item in items])
        return [_outcome(item, after.get(item.pk), stamps[item.pk]) for item in items]

    def _key(self, item: Item) -> tuple[object, ...]:
        return key_values(item.pk, [self._types[name] for name in self._rows.key])

    def _all_values(
        self, items: Sequence[Item], source: Mapping[str, WholeRow]
    ) -> tuple[dict[str, tuple[object, ...]], list[Outcome]]:
        """The columns of each row to be written, and the keys that have a value which does not fit."""
        found: dict[str, tuple[object, ...]] = {}
        inexact: list[Outcome] = []
        for item in items:
            if item.action != "upsert":
                continue
            values = self._values(source[item.pk])
            if isinstance(values, str):
                inexact.append(Outcome(item.pk, "skipped", values))
            else:
                found[item.pk] = values
        return found, inexact

    def _values(self, row: WholeRow) -> tuple[object, ...] | str:
        """The values of its columns, or which of them it lacks or its column cannot hold."""
        found: list[object] = []
        for name in self._columns:
            if name not in row.values:
                return f"on-prem's row has no column {name} any more"
            value = row.values[name]
            try:
                found.append(column_value(value, self._types[name]))
            except InexactError:
                shown = _shown(value, name in self._hidden)
                return f"{name} is {self._types[name]} in the cloud and cannot hold {shown} exactly"
        return tuple(found)


def timestamp(item: Item, cloud: WholeRow | None, now: datetime) -> int | None:
    """The write timestamp: the source's version, or just after what stands there; never after now."""
    own = micros(min(item.version, now))
    if cloud is None or cloud.written is None:
        return own
    found = max(own, micros(cloud.written) + 1)
    return found if found <= micros(now) else None


def _done_before(item: Item, cloud: Mapping[str, WholeRow], announced: Mapping[str, int]) -> bool:
    """Whether an attempt that was cut off had already reached this key."""
    stamp = announced.get(item.pk)
    return stamp is not None and _outcome(item, cloud.get(item.pk), stamp).result == "applied"


def _outcome(item: Item, row: WholeRow | None, stamp: int) -> Outcome:
    if item.action == "delete":
        taken = row is None
    else:
        # A row of nulls alone has no write time to show.
        taken = row is not None and (row.written is None or micros(row.written) >= stamp)
    return Outcome(item.pk, "applied") if taken else Outcome(item.pk, "skipped", NO_EFFECT)


def _shown(value: object, hidden: bool) -> str:
    return MASK if hidden else repr(value)[:LONGEST_SHOWN]
