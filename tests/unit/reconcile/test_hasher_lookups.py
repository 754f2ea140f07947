"""Tries, pauses and order of lookups, with a table that is a fake: it answers when it is told to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from headgate.reconcile.cassandra.rows import Row
from headgate.reconcile.cassandra.session import Failure
from headgate.reconcile.hasher.lookups import Found, Limits, Lookups, Lost
from headgate.reconcile.hasher.requests import Asked, Record

AT = datetime(2026, 1, 1, tzinfo=UTC)
ROW = Row({"col1": "a"}, AT, None)
SLOW = Failure("timeout", "OperationTimedOut")
AWAY = Failure("away", "NoHostAvailable")


@dataclass
class FakeTable:
    """Notes who is asked for; the test answers."""

    open: list[tuple[str, Callable[[Row | None], None], Callable[[Failure], None]]] = field(
        default_factory=list
    )
    asked: list[str] = field(default_factory=list)
    probes: list[Callable[[bool], None]] = field(default_factory=list)
    renewed: int = 0

    def start(
        self,
        key: str,
        when_row: Callable[[Row | None], None],
        when_failed: Callable[[Failure], None],
    ) -> None:
        self.asked.append(key)
        self.open.append((key, when_row, when_failed))

    def probe(self, when_known: Callable[[bool], None]) -> None:
        self.probes.append(when_known)

    def renew(self) -> None:
        self.renewed += 1

    def answer(self, row: Row | None = ROW) -> None:
        self.open.pop(0)[1](row)

    def fail(self, failure: Failure = SLOW) -> None:
        self.open.pop(0)[2](failure)


class FakeClock:
    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def asked(key: str, offset: int = 0) -> Asked:
    return Asked(key, AT, Record("t", 0, offset, AT, key.encode(), b"{}"))


def started(**limits: int) -> tuple[Lookups, FakeTable, FakeClock]:
    table, clock = FakeTable(), FakeClock()
    return Lookups(table, Limits(**limits), clock, chance=lambda: 0.5), table, clock


def answers(lookups: Lookups) -> list[Found | Lost]:
    return list(lookups.answers(0))


def test_no_more_lookups_are_under_way_than_allowed() -> None:
    lookups, table, _ = started(in_flight=3)
    for n in range(10):
        lookups.ask(asked(f"k{n}"))
    answers(lookups)
    assert (len(table.open), lookups.in_flight, lookups.outstanding) == (3, 3, 10)
    table.answer()
    assert len(answers(lookups)) == 1
    assert (len(table.open), lookups.outstanding) == (3, 9)


def test_a_key_is_read_once_at_a_time_and_one_later_read_answers_all_who_wait() -> None:
    lookups, table, _ = started()
    for offset in range(5):
        lookups.ask(asked("k", offset))
        answers(lookups)
    assert table.asked == ["k"]
    table.answer()
    (first,) = answers(lookups)
    assert [one.record.offset for one in first.asked] == [0]
    assert table.asked == ["k", "k"]
    table.answer()
    (second,) = answers(lookups)
    assert [one.record.offset for one in second.asked] == [1, 2, 3, 4]
    assert lookups.outstanding == 0


def test_a_slow_lookup_is_tried_again_after_growing_pauses_then_lost() -> None:
    lookups, table, clock = started(retries=3)
    lookups.ask(asked("k"))
    pauses = [0.2, 0.4, 0.8]
    for pause in pauses:
        answers(lookups)
        table.fail()
        assert answers(lookups) == []
        clock.time += pause - 0.01
        answers(lookups)
        assert table.open == []
        clock.time += 0.02
    answers(lookups)
    table.fail()
    (lost,) = answers(lookups)
    assert isinstance(lost, Lost)
    assert (lost.tries, lost.failure) == (4, SLOW)
    assert table.asked == ["k"] * 4
    assert not lookups.paused


def test_a_lookup_that_is_answered_at_the_second_try_is_found() -> None:
    lookups, table, clock = started()
    lookups.ask(asked("k"))
    answers(lookups)
    table.fail()
    answers(lookups)
    clock.time += 1
    answers(lookups)
    table.answer(None)
    assert answers(lookups) == [Found((asked("k"),), None)]


def test_a_host_that_is_gone_pauses_at_once_and_costs_no_try() -> None:
    lookups, table, clock = started(retries=0)
    lookups.ask(asked("k"))
    answers(lookups)
    table.fail(AWAY)
    assert answers(lookups) == []
    assert lookups.paused
    clock.time += 1
    answers(lookups)
    table.probes.pop()(False)
    answers(lookups)
    assert lookups.paused
    clock.time += 1
    answers(lookups)
    table.probes.pop()(True)
    answers(lookups)
    assert not lookups.paused
    table.answer()
    assert answers(lookups) == [Found((asked("k"),), ROW)]


def test_many_failures_in_a_row_pause_and_lose_nothing() -> None:
    lookups, table, clock = started(in_flight=100, retries=0, failures_in_a_row=20)
    for n in range(100):
        lookups.ask(asked(f"k{n}"))
    answers(lookups)
    for _ in range(100):
        table.fail()
    lost = answers(lookups)
    assert len(lost) == 20  # those that had no try left before it was plain that all fail
    assert lookups.paused
    assert lookups.outstanding == 80
    clock.time += 1
    answers(lookups)
    table.probes.pop()(True)
    answers(lookups)
    for _ in range(80):
        table.answer()
    assert len(answers(lookups)) == 80


def test_nothing_is_asked_while_cassandra_is_away() -> None:
    lookups, table, _ = started()
    lookups.ask(asked("a"))
    answers(lookups)
    table.fail(AWAY)
    answers(lookups)
    lookups.ask(asked("b"))
    answers(lookups)
    assert table.open == []
    assert lookups.outstanding == 2


def test_keys_that_always_fail_are_lost_in_the_end_though_the_probe_is_answered() -> None:
    lookups, table, clock = started(in_flight=30, retries=1, failures_in_a_row=20)
    for n in range(30):
        lookups.ask(asked(f"bad{n}"))
    lost = 0
    for _ in range(20):
        lost += len(answers(lookups))
        while table.open:
            table.fail()
        while table.probes:
            table.probes.pop()(True)
        clock.time += 5
    assert lost == 30
    assert lookups.outstanding == 0


def test_another_shape_of_the_table_is_looked_at_before_the_next_try() -> None:
    lookups, table, clock = started()
    lookups.ask(asked("k"))
    answers(lookups)
    table.fail(Failure("shape", "InvalidRequest"))
    answers(lookups)
    assert table.renewed == 1
    clock.time += 1
    answers(lookups)
    table.answer()
    assert len(answers(lookups)) == 1


def test_success_between_failures_keeps_it_going() -> None:
    lookups, table, _ = started(in_flight=1, retries=0, failures_in_a_row=3)
    for n in range(12):
        lookups.ask(asked(f"k{n}"))
    for n in range(12):
        answers(lookups)
        table.answer() if n % 3 == 2 else table.fail()
    answers(lookups)
    assert not lookups.paused


def test_a_row_that_breaks_the_connection_is_lost_alone_and_its_neighbours_are_found() -> None:
    lookups, table, clock = started(in_flight=10, retries=3)
    for key in ("a", "bad", "b", "c"):
        lookups.ask(asked(key))
    found: list[Found | Lost] = []
    for _ in range(60):
        found += answers(lookups)
        broken = any(key == "bad" for key, _, _ in table.open)
        while table.open:
            table.fail(AWAY) if broken else table.answer()
        while table.probes:
            table.probes.pop()(True)
        clock.time += 2
    assert {f.asked[0].key for f in found if isinstance(f, Found)} == {"a", "b", "c"}
    assert [f.asked[0].key for f in found if isinstance(f, Lost)] == ["bad"]
    assert lookups.outstanding == 0


def test_a_row_that_cannot_be_read_is_lost_at_once_and_does_not_mean_that_cassandra_is_away() -> (
    None
):
    lookups, table, _ = started(in_flight=1, retries=3, failures_in_a_row=2)
    for key in ("a", "b", "c"):
        lookups.ask(asked(key))
        assert answers(lookups) == []
        table.fail(Failure("row", "OverflowError"))
        (lost,) = answers(lookups)
        assert isinstance(lost, Lost)
        assert (lost.tries, lost.failure.kind) == (1, "row")
    assert (lookups.paused, table.asked) == (False, ["a", "b", "c"])
