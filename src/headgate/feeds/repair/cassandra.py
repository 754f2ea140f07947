"""Repairs written to Cassandra, each with the timestamp of the source's version.

Cassandra keeps of two writes the one with the greater timestamp. So a row that somebody writes after
our look at it stays, whatever we send. Where the row that stands there has a version of its own and
was written later than that version, our timestamp is one microsecond after that writing: enough to
replace what we have seen, too little to replace anything newer. No timestamp lies after now: one from
the future would hide every write that comes before then.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal

from headgate.errors import OperationError
from headgate.feeds.cassandra import quoted
from headgate.feeds.cassandra_values import key_values
from headgate.feeds.repair.model import Item, Outcome
from headgate.feeds.repair.target import Announce, micros
from headgate.feeds.rows.cassandra import CassandraRows
from headgate.feeds.rows.model import WholeRow

FROM_FUTURE = "the cloud's row was written with a timestamp of the future"
NO_EFFECT = "it had no effect: the cloud holds a newer write or delete"


class CassandraTarget:
    """Writes the columns that both sides have; `source_columns` are on-prem's."""

    def __init__(
        self,
        rows: CassandraRows,
        source_columns: Sequence[str],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
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
        stamps, future = self._stamps(items, cloud, announced)
        announce(stamps)
        stamped = [item for item in items if item.pk in stamps]
        waiting = [item for item in stamped if not _done_before(item, cloud, announced)]
        upserts = [item for item in waiting if item.action == "upsert"]
        deletes = [item for item in waiting if item.action == "delete"]
        self._cassandra.write_many(
            self._insert, [self._values(item, source[item.pk], stamps[item.pk]) for item in upserts]
        )
        self._cassandra.write_many(
            self._delete, [(stamps[item.pk], *self._key(item)) for item in deletes]
        )
        return [*future, *self._seen(stamped, stamps)]

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

    def _values(self, item: Item, row: WholeRow, stamp: int) -> tuple[object, ...]:
        values = (column_value(row.values.get(n), self._types[n]) for n in self._columns)
        return (*self._key(item), *values, stamp)


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


def column_value(value: object, cql_type: str) -> object:
    """A value of the source as the driver takes it for a column of this type."""
    if value is None or isinstance(value, bool):
        return value
    if cql_type in ("text", "varchar", "ascii"):
        return value if isinstance(value, str) else str(value)
    if cql_type == "decimal":
        return value if isinstance(value, Decimal) else Decimal(str(value))
    if cql_type in ("uuid", "timeuuid"):
        return value if isinstance(value, uuid.UUID) else uuid.UUID(str(value))
    if cql_type in ("double", "float"):
        return float(str(value)) if isinstance(value, (str, Decimal)) else value
    if cql_type == "date" and isinstance(value, datetime):
        return value.date()
    if cql_type == "timestamp" and isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return int(value) if isinstance(value, Decimal) else value
