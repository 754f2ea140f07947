"""Targets of repairs: a topic that asks the source to send again, or Cassandra itself.

Of two writes Cassandra keeps the one with the greater timestamp, and a repair is written with the timestamp of the
source's version. So a row that somebody writes after we looked stays, whatever we send. Where the row that is there
has a version of its own and was written later than that version, our timestamp is one microsecond after that
write: enough to replace what we have seen, too little to replace anything newer. No timestamp lies in the future:
it would hide every write that comes before then.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Protocol

import orjson

from headgate.core.kafka.producer import TopicWriter
from headgate.errors import OperationError
from headgate.reconcile.cassandra.session import quoted
from headgate.reconcile.cassandra.values import key_values
from headgate.reconcile.hasher.requests import zulu
from headgate.reconcile.repair.plan import Item, Outcome
from headgate.reconcile.rows import CassandraRows, WholeRow

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
REASON = "repair"
# Hears of the write timestamps before anything is written.
Announce = Callable[[Mapping[str, int]], None]


class Target(Protocol):
    """The cloud's table, or a topic."""

    def send(
        self,
        items: Sequence[Item],
        source: Mapping[str, WholeRow],
        cloud: Mapping[str, WholeRow],
        announced: Mapping[str, int],
        announce: Announce,
    ) -> list[Outcome]:
        """Carry these out; `announced` are timestamps of an attempt that was cut off."""
        ...


class TopicTarget:
    """Asks the source to send these keys again; each message names its repair."""

    def __init__(self, writer: TopicWriter, topic: str, repair: Callable[[], str]) -> None:
        self._writer, self._topic, self._repair = writer, topic, repair

    def send(
        self,
        items: Sequence[Item],
        source: Mapping[str, WholeRow],
        cloud: Mapping[str, WholeRow],
        announced: Mapping[str, int],
        announce: Announce,
    ) -> list[Outcome]:
        values = [self._message(item) for item in items]
        announce({item.pk: micros(item.version) for item in items})
        self._writer.send(self._topic, values, [item.pk.encode() for item in items])
        self._writer.flush()
        return [Outcome(item.pk, "applied") for item in items]

    def _message(self, item: Item) -> bytes:
        told = {
            "pk": item.pk,
            "action": item.action.upper(),
            "version": zulu(item.version),
            "status": item.status,
            "repair": self._repair(),
        }
        return orjson.dumps(told)


class Rereads:
    """Asks the hasher to read keys again, so that their verdicts follow the repair."""

    def __init__(self, writer: TopicWriter, topic: str) -> None:
        self._writer, self._topic = writer, topic

    def ask(self, items: Sequence[Item]) -> None:
        values = [
            orjson.dumps({"pk": item.pk, "event_ts": zulu(item.version), "reason": REASON})
            for item in items
        ]
        self._writer.send(self._topic, values, [item.pk.encode() for item in items])
        self._writer.flush()


def micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64, "counter": 64, "varint": 4096}
_TEXTS = ("text", "varchar", "ascii")


class InexactError(ValueError):
    """The column has no such value."""


def column_value(value: object, cql_type: str) -> object:
    """The value as the driver takes it; InexactError where the column would hold another one.

    A timestamp alone is cut to milliseconds: Cassandra has no finer ones, and no hash sees them.
    """
    if value is None:
        return None
    make = _MAKERS.get(cql_type)
    if make is None:
        return value
    try:
        return make(value, cql_type)
    except InexactError:
        raise
    except (ValueError, TypeError, ArithmeticError) as error:
        raise InexactError(str(error)) from error


def _text(value: object, cql_type: str) -> object:
    if isinstance(value, (bool, bytes, list, tuple, dict)):
        raise InexactError("it has more than one text")
    text = value if isinstance(value, str) else str(value)
    if cql_type == "ascii":
        text.encode("ascii")
    return text


def _whole(value: object, cql_type: str) -> object:
    number = _decimal(value, cql_type)
    if number != number.to_integral_value():
        raise InexactError("it is not whole")
    limit = 1 << BITS[cql_type] - 1
    if not -limit <= int(number) < limit:
        raise InexactError(f"it is beyond {cql_type}")
    return int(number)


def _decimal(value: object, _type: str) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal)):
        raise InexactError("it is no number")
    found = value if isinstance(value, Decimal) else Decimal(str(value))
    if not found.is_finite():
        raise InexactError("it is no number")
    return found


def _double(value: object, cql_type: str) -> object:
    if isinstance(value, float) and cql_type == "double":
        return value
    number = float(str(value)) if isinstance(value, (str, Decimal)) else _float(value)
    if cql_type == "float":
        single: float = struct.unpack("f", struct.pack("f", number))[0]
        if single != number and not _is_written(f"{single:.7g}", value) and number == number:
            raise InexactError("a float has not so many digits")
    elif not isinstance(value, float) and not _is_written(repr(number), value):
        raise InexactError("a double has not so many digits")
    return number


def _float(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InexactError("it is no number")
    return float(value)


def _is_written(text: str, value: object) -> bool:
    """Whether the shortest text of the number is the decimal that is to be written."""
    return not isinstance(value, float) and Decimal(text) == Decimal(str(value))


def _boolean(value: object, _type: str) -> object:
    if not isinstance(value, bool):
        raise InexactError("it is neither true nor false")
    return value


def _uuid(value: object, _type: str) -> object:
    return value if isinstance(value, uuid.UUID) else uuid.UUID(str(value))


def _date(value: object, _type: str) -> object:
    if isinstance(value, datetime):
        if value.time() != time(0):
            raise InexactError("it has a time of day")
        return value.date()
    return value if isinstance(value, date) else date.fromisoformat(str(value))


def _timestamp(value: object, _type: str) -> object:
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value if isinstance(value, datetime) else datetime.fromisoformat(str(value))


_MAKERS: dict[str, Callable[[object, str], object]] = {
    **dict.fromkeys(_TEXTS, _text),
    **dict.fromkeys(BITS, _whole),
    **dict.fromkeys(("double", "float"), _double),
    **dict.fromkeys(("uuid", "timeuuid"), _uuid),
    "decimal": _decimal,
    "boolean": _boolean,
    "date": _date,
    "timestamp": _timestamp,
}


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
        found = {
            i.pk: announced.get(i.pk) or write_timestamp(i, cloud.get(i.pk), now) for i in items
        }
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


def write_timestamp(item: Item, cloud: WholeRow | None, now: datetime) -> int | None:
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
