from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from headgate.core.accounting.evidence import TopicEvidence, Verdict
from headgate.core.ledger.model import LedgerRow
from headgate.core.ledger.ranges import TopicRange
from headgate.filters.accounting import Arrived, FilterRanges, RouterEvidence, account

AT = datetime(2025, 1, 1, tzinfo=UTC)


def row(start: int, end: int, **outcomes: int) -> LedgerRow:
    range_ = TopicRange("events", "t1", {"0": start}, {"0": end})
    read = sum(outcomes.values())
    return LedgerRow(1, "router-events", 1, range_, ("s",), AT, 0, read, read, 0, outcomes, {}, AT)


ONE = FilterRanges("one", "live", "r1", "", (), 7, 6, 1, 0, 0, ())
GOOD = RouterEvidence(
    source="events",
    ledger=(row(0, 10, routed=7, unrouted=1, refused=2), row(10, 12, tombstone=2)),
    replays=(),
    open_batches=0,
    streaming=True,
    filters=(ONE,),
    arrived={"one": Arrived(6)},
    letters=3,
    letters_of_replays=0,
    on_broker=TopicEvidence("t1", {"0": 0}, {"0": 12}),
)


def failed(evidence: RouterEvidence) -> list[str]:
    return [line.name for line in account(evidence).lines if line.verdict is Verdict.FAIL]


def warned(evidence: RouterEvidence) -> list[str]:
    return [line.name for line in account(evidence).lines if line.verdict is Verdict.WARN]


def test_an_account_that_adds_up_holds() -> None:
    found = account(GOOD)
    assert found.holds
    assert found.title == "filters on events"
    assert warned(GOOD) == []
    words = {line.name: line.words for line in found.lines}
    assert words["routed"] == "matched 7 = too large 1 + on the filters' topics 6"
    assert words["dead letters"] == "dead letters 3 = no events 2 + too large 1"


def test_what_was_sent_and_did_not_arrive_is_found() -> None:
    assert failed(replace(GOOD, arrived={"one": Arrived(5)})) == ["routed"]
    assert failed(replace(GOOD, arrived={"one": Arrived(7)})) == ["routed"]


def test_of_a_topic_that_has_let_records_go_fewer_are_enough() -> None:
    assert failed(replace(GOOD, arrived={"one": Arrived(5, whole=False)})) == []
    assert failed(replace(GOOD, arrived={"one": Arrived(7, whole=False)})) == ["routed"]


def test_a_missing_letter_a_break_and_a_gap_are_found() -> None:
    assert failed(replace(GOOD, letters=2)) == ["dead letters"]
    assert failed(replace(GOOD, filters=(replace(ONE, breaks=("a gap",)),))) == ["ranges"]
    torn = (row(0, 10, routed=10), row(11, 12, routed=1))
    assert "offsets" in failed(replace(GOOD, ledger=torn))


def test_what_waits_is_said_and_does_not_fail() -> None:
    assert warned(replace(GOOD, filters=(replace(ONE, waiting=4),))) == ["ranges"]
    behind = TopicEvidence("t1", {"0": 0}, {"0": 15})
    assert warned(replace(GOOD, on_broker=behind)) == ["produced"]
    assert warned(replace(GOOD, open_batches=1)) == ["open batches"]
    assert failed(replace(GOOD, open_batches=1, streaming=False)) == ["open batches"]
