"""Records of the audit topic as rows of Cassandra."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import cast

import pytest

from headgate.errors import UnavailableError
from headgate.reconcile.cassandra.audit import (
    COLUMNS,
    Copied,
    copy_audit,
    insert_cql,
    row_of,
    table_cql,
)
from headgate.reconcile.cassandra.session import Cassandra

TOLD = {
    "id": "9f",
    "table": "business",
    "pk": "1",
    "status": "MISMATCH",
    "onprem_hash": "aa",
    "cloud_hash": "bb",
    "audit_ts": "2026-01-10T12:15:03.120000Z",
    "onprem_version": "2026-01-10T12:00:00.000000Z",
    "late": False,
}


def test_a_change_is_a_row_with_its_times() -> None:
    row = row_of(json.dumps(TOLD).encode(), "business")
    assert row is not None
    found = dict(zip(COLUMNS, row, strict=True))
    assert found["audit_ts"] == datetime(2026, 1, 10, 12, 15, 3, 120_000, tzinfo=UTC)
    assert (found["pk"], found["status"], found["previous"]) == ("1", "MISMATCH", None)


def test_what_is_no_change_is_no_row() -> None:
    for value in (None, b"", b"no json", b"[]", b"1", b'{"pk": "1"}', b'{"audit_ts": "soon"}'):
        assert row_of(value, "business") is None


def test_a_change_of_another_pair_on_the_same_topic_is_no_row() -> None:
    assert row_of(json.dumps({**TOLD, "table": "orders"}).encode(), "business") is None
    nameless = {name: value for name, value in TOLD.items() if name != "table"}
    assert row_of(json.dumps(nameless).encode(), "business") is None


def test_the_table_is_keyed_so_that_a_change_is_written_once() -> None:
    assert "PRIMARY KEY (pk, audit_ts, id)" in table_cql("dq.audit")
    assert insert_cql('dq.au"dit').startswith('INSERT INTO "dq"."au""dit" (pk, audit_ts, id,')
    assert insert_cql("dq.audit").count("?") == len(COLUMNS)


class Told:
    """Stands for a message of the broker."""

    def __init__(self, value: bytes) -> None:
        self._value = value

    def error(self) -> None:
        return None

    def value(self) -> bytes:
        return self._value


class Group:
    """Stands for the broker: a new consumer goes on where the group has committed."""

    def __init__(self, count: int) -> None:
        self.values = [json.dumps({**TOLD, "pk": str(n)}).encode() for n in range(count)]
        self.committed = 0

    def consumer(self, *_place: str) -> Group:
        self._at = self.committed
        return self

    def subscribe(self, _topics: object) -> None: ...

    def consume(self, _most: int, _seconds: float) -> list[Told]:
        found = [Told(value) for value in self.values[self._at : self._at + 1]]
        self._at += len(found)
        return found

    def commit(self, *, asynchronous: bool) -> None:
        self.committed = self._at

    def close(self) -> None: ...


class Shaky:
    """Stands for a Cassandra that goes away at some writes."""

    def __init__(self, away: set[int]) -> None:
        self.rows: list[object] = []
        self._away, self._writes = away, 0

    def execute(self, _cql: str) -> None: ...

    def write_many(self, _cql: str, rows: list[tuple[object, ...]]) -> int:
        self._writes += 1
        if self._writes in self._away:
            raise UnavailableError("Cassandra at 127.0.0.1 is away", why="no host")
        self.rows += [row[0] for row in rows]
        return len(rows)


def copied(
    monkeypatch: pytest.MonkeyPatch, away: set[int], *, once: bool = False, most: float = 99.0
) -> tuple[Shaky, Copied, list[str], float]:
    group, cassandra, said, slept = Group(4), Shaky(away), list[str](), [0.0]
    monkeypatch.setattr("headgate.reconcile.cassandra.audit.open_consumer", group.consumer)

    def sleep(seconds: float) -> None:
        slept[0] += seconds

    done = copy_audit(
        cast("Cassandra", cassandra),
        "",
        "audit",
        "dq.audit",
        "g",
        pair=str(TOLD["table"]),
        once=once,
        stopped=lambda: group.committed == 4 or slept[0] > most,
        say=said.append,
        sleep=sleep,
    )
    return cassandra, done, said, slept[0]


def test_s1_151_the_audit_rides_out_an_outage_of_cassandra_and_loses_no_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cassandra, done, said, slept = copied(monkeypatch, {2, 3, 4, 7})
    assert cassandra.rows == ["0", "1", "2", "3"]
    assert (done.written, done.outages, done.stopped) == (4, 2, True)
    assert len(said) == 2, "an outage is said once"
    assert slept == pytest.approx(0.5 + 1 + 2 + 0.5)


def test_an_outage_is_waited_out_in_bounded_pauses_until_it_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cassandra, done, said, slept = copied(monkeypatch, set(range(99)), most=60)
    assert (cassandra.rows, done.written, done.stopped, len(said)) == ([], 0, True, 1)
    assert slept == pytest.approx(60, abs=0.2), "a stop is heard amid a pause"


def test_with_once_an_outage_ends_the_copying(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnavailableError):
        copied(monkeypatch, {1}, once=True)
