"""Copies the audit topic into Cassandra: one row for each change of a verdict, however often its record comes.

A change is known by its key, its time and its id, which are the table's primary key; so a record that comes again
writes the same row again. Offsets are committed behind what was written. Several pairs may publish on one topic:
only the records of the pair that is copied are taken.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException

from headgate.core.kafka.reader import PARTITION_END, consume, open_consumer
from headgate.errors import UnavailableError
from headgate.reconcile.cassandra.session import Cassandra, quoted

# Writing to Cassandra may take long; nobody else waits for the copier's partitions.
PATIENT_GROUP = {"session.timeout.ms": 45_000, "heartbeat.interval.ms": 3_000}
AT_ONCE, WAIT_SECONDS = 500, 1.0
FIRST_PAUSE, LONGEST_PAUSE, LOOK_SECONDS = 0.5, 10.0, 0.1
COLUMNS = {
    "pk": "text",
    "audit_ts": "timestamp",
    "id": "text",
    "status": "text",
    "previous": "text",
    "reason": "text",
    "rollup": "text",
    "onprem_hash": "text",
    "cloud_hash": "text",
    "onprem_version": "timestamp",
    "cloud_version": "timestamp",
}
_TIMES = tuple(name for name, kind in COLUMNS.items() if kind == "timestamp")
Row = tuple[object, ...]


@dataclass
class Copied:
    """What one copying did; `skipped` are records that are no changes, or of another pair."""

    topic: str
    table: str
    written: int = 0
    skipped: int = 0
    outages: int = 0
    stopped: bool = False


def table_cql(table: str) -> str:
    """The table as it is made; one row for each change, those of a key in the order of time."""
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    keyspace, _, name = table.partition(".")
    return (
        f"CREATE TABLE IF NOT EXISTS {quoted(keyspace)}.{quoted(name)}"
        f" ({columns}, PRIMARY KEY (pk, audit_ts, id))"
    )


def insert_cql(table: str) -> str:
    keyspace, _, name = table.partition(".")
    marks = ", ".join("?" for _ in COLUMNS)
    return f"INSERT INTO {quoted(keyspace)}.{quoted(name)} ({', '.join(COLUMNS)}) VALUES ({marks})"


def row_of(value: bytes | None, pair: str) -> Row | None:
    """The row of one record; None where it is no change of this pair."""
    try:
        found: Any = json.loads(value or b"")
        if found.get("table") != pair:
            return None
        times = {name: _time(found.get(name)) for name in _TIMES}
        whole = {**{name: found.get(name) for name in COLUMNS}, **times}
    except (ValueError, AttributeError, TypeError):
        return None
    if None in (whole["pk"], whole["id"], whole["audit_ts"]):
        return None
    return tuple(whole[name] for name in COLUMNS)


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def copy_audit(
    cassandra: Cassandra,
    bootstrap: str,
    topic: str,
    table: str,
    group: str,
    *,
    pair: str,
    once: bool,
    stopped: Callable[[], bool] = lambda: False,
    say: Callable[[str], None] = lambda _: None,
    sleep: Callable[[float], None] = time.sleep,
) -> Copied:
    """Write what the topic has and gets of a pair; with `once` to its end as it is now.

    While Cassandra is away nothing is committed: what it did not take is read again once it is back.
    """
    cassandra.execute(table_cql(table))
    done, pause = Copied(topic, table), FIRST_PAUSE
    while not stopped():
        before = done.written
        try:
            _copy(cassandra, done, (bootstrap, group), pair, once=once, stopped=stopped)
            break
        except UnavailableError as error:
            if once or not error.what.startswith("Cassandra"):
                raise
            pause = FIRST_PAUSE if done.written > before else pause
            _wait_out(done, error, pause, say, stopped, sleep)
            pause = min(2 * pause, LONGEST_PAUSE)
    done.stopped = stopped()
    return done


def _wait_out(
    done: Copied,
    error: UnavailableError,
    pause: float,
    say: Callable[[str], None],
    stopped: Callable[[], bool],
    sleep: Callable[[float], None],
) -> None:
    if pause == FIRST_PAUSE:
        done.outages += 1
        say(f"Cassandra is away ({error.why}): nothing is lost, it is tried again")
    for _ in range(int(pause / LOOK_SECONDS)):
        if not stopped():
            sleep(LOOK_SECONDS)


def _copy(
    cassandra: Cassandra,
    done: Copied,
    place: tuple[str, str],
    pair: str,
    *,
    once: bool,
    stopped: Callable[[], bool],
) -> None:
    """From where the group stands, until stopped or, with `once`, to the end."""
    bootstrap, group = place
    consumer = open_consumer(bootstrap, group, PATIENT_GROUP)
    try:
        consumer.subscribe([done.topic])
        ends: set[int] = set()
        while not stopped():
            values = _taken(consumer, done.topic, ends)
            rows = [row for row in (row_of(value, pair) for value in values) if row is not None]
            done.written += _written(cassandra, done.table, rows)
            done.skipped += len(values) - len(rows)
            if values:
                consumer.commit(asynchronous=False)
            elif once and ends and len(ends) == len(consumer.assignment()):
                return
    finally:
        consumer.close()


def _written(cassandra: Cassandra, table: str, rows: Sequence[Row]) -> int:
    return cassandra.write_many(insert_cql(table), rows) if rows else 0


def _taken(consumer: Consumer, topic: str, ends: set[int]) -> list[bytes | None]:
    """Values that have come; `ends` gets the partitions that are read to their end."""
    found: list[bytes | None] = []
    for message in consume(consumer, AT_ONCE, WAIT_SECONDS):
        error = message.error()
        if error is None:
            found.append(message.value())
        elif error.code() == PARTITION_END:
            ends.add(message.partition())
        elif error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise UnavailableError(
                f"there is no topic {topic}",
                why="nothing was told there yet",
                fix="run the reconcile job first; it makes the topic",
            )
        else:
            raise KafkaException(error)
    return found
