from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from headgate.checks.accounts import (
    Commit,
    Evidence,
    TableEvidence,
    TopicEvidence,
    Verdict,
    account,
    sums,
)
from headgate.checks.certificate import broken, certify, text, write
from headgate.store.model import LedgerRow, Range

BRONZE, SILVER = "bronze-orders", "silver-orders"
TIME = datetime(2024, 1, 1, tzinfo=UTC)
OURS = Commit(1, "append", {"headgate.job": "bronze-orders"})


def batch(
    job: str, start: Mapping[str, int], end: Mapping[str, int], gaps: int = 0, **outcomes: int
) -> LedgerRow:
    source = "kafka:orders" if job.startswith("bronze") else "table:bronze.orders"
    read = sum(outcomes.values())
    return LedgerRow(
        id=None,
        job=job,
        run=1,
        range=Range(source, "id1", start, end),
        revisions=("r",),
        batch_time=TIME,
        batch_id=0,
        read=read,
        span=read + gaps,
        gaps=gaps,
        outcomes=outcomes,
        snapshots={},
        committed_at=TIME,
    )


def table(name: str, rows: int, *commits: Commit) -> TableEvidence:
    return TableEvidence(name, rows, "abc", ("a",), "m.json", 1, TIME, commits or (OURS,))


@pytest.fixture
def evidence() -> Evidence:
    """Twenty records in two batches, of which bronze takes 16 and silver keeps 12."""
    return Evidence(
        dataset="orders",
        topic="orders",
        streaming=False,
        bronze_ledger=(
            batch(
                "bronze-orders", {"0": 0}, {"0": 12, "1": 0}, accepted=10, refused=1, tombstone=1
            ),
            batch(BRONZE, {"0": 12}, {"0": 12, "1": 9}, gaps=1, accepted=6, refused=2),
        ),
        silver_ledger=(
            batch(SILVER, {}, {"snapshot": 9}, kept=99),
            batch(SILVER, {}, {"snapshot": 1}, kept=8, duplicate=1, filtered=1),
            batch(SILVER, {"snapshot": 1}, {"snapshot": 2}, kept=4, replaced=2),
        ),
        open_batches=0,
        settled=frozenset(),
        bronze=table("bronze.orders", 16),
        silver=table("silver.orders", 12),
        dead_letters=table("headgate.dead_letters", 3),
        repeated_origins=0,
        on_broker=TopicEvidence("id1", {"0": 0, "1": 0}, {"0": 12, "1": 9}),
    )


def failed(evidence: Evidence) -> list[str]:
    return [line.name for line in account(evidence) if line.verdict is Verdict.FAIL]


def test_an_account_that_adds_up_holds_on_every_line(evidence: Evidence) -> None:
    assert {line.verdict for line in account(evidence)} == {Verdict.PASS}
    words = {line.name: line.words for line in account(evidence)}
    assert words["produced"] == "produced 20 = bronze 16 + dead letters 3 + tombstones 1"
    assert words["silver"] == "bronze 16 = silver 12 + duplicates 3 + filtered 1"


def test_only_what_came_after_the_last_rebuild_counts_for_silver(evidence: Evidence) -> None:
    assert sums(evidence).kept == 12


def test_records_that_were_not_read_are_a_difference(evidence: Evidence) -> None:
    more = TopicEvidence("id1", {"0": 0, "1": 0}, {"0": 12, "1": 14})
    assert failed(replace(evidence, on_broker=more)) == ["produced"]


def test_a_stream_may_have_records_waiting(evidence: Evidence) -> None:
    more = TopicEvidence("id1", {"0": 5, "1": 0}, {"0": 12, "1": 14})
    lines = account(replace(evidence, on_broker=more, streaming=True))
    (produced,) = [line for line in lines if line.name == "produced"]
    assert (produced.verdict, produced.detail) == (Verdict.WARN, "5 more wait on the topic")


@pytest.mark.parametrize("topic", [None, TopicEvidence("other", {"0": 0}, {"0": 1})])
def test_without_the_broker_the_ledger_is_said_to_stand_alone(
    evidence: Evidence, topic: TopicEvidence | None
) -> None:
    lines = account(replace(evidence, on_broker=topic, why_no_broker="no broker is running"))
    (produced,) = [line for line in lines if line.name == "produced"]
    assert produced.verdict is Verdict.WARN
    assert "by the ledger alone" in produced.detail


def test_each_kind_of_damage_is_found(evidence: Evidence) -> None:
    gap = batch(BRONZE, {"0": 13, "1": 9}, {"0": 13, "1": 9})
    skipped = replace(gap, range=Range("kafka:orders", "id1", {"0": 15}, {"0": 16}))
    foreign = table("bronze.orders", 16, OURS, Commit(2, "append", {"added-records": "0"}))
    cases: dict[str, Evidence] = {
        "bronze rows": replace(evidence, bronze=table("bronze.orders", 17)),
        "dead letters": replace(evidence, dead_letters=None),
        "silver rows": replace(evidence, silver=table("silver.orders", 11)),
        "silver": replace(evidence, silver_ledger=evidence.silver_ledger[:2]),
        "steps": replace(
            evidence,
            silver_ledger=(
                *evidence.silver_ledger,
                batch(SILVER, {"snapshot": 7}, {"snapshot": 8}),
            ),
        ),
        "offsets": replace(evidence, bronze_ledger=(*evidence.bronze_ledger, skipped)),
        "origins": replace(evidence, repeated_origins=1),
        "open batches": replace(evidence, open_batches=1),
        "history of bronze.orders": replace(evidence, bronze=foreign),
    }
    for name, damaged in cases.items():
        assert name in failed(damaged), name


def test_an_empty_account_does_not_hold(evidence: Evidence) -> None:
    nothing = replace(
        evidence,
        bronze_ledger=(),
        silver_ledger=(),
        bronze=None,
        silver=None,
        dead_letters=None,
        on_broker=TopicEvidence("id1", {"0": 0}, {"0": 0}),
    )
    assert failed(nothing) == ["records"]


@pytest.mark.parametrize(
    "commit",
    [
        Commit(7, "append", {"source-snapshot-id": "3"}, {"headgate.job": "bronze-orders"}),
        Commit(7, "append", {"source-snapshot-id": "42"}),
        Commit(42, "overwrite", {}),
        Commit(7, "replace", {"added-records": "5", "deleted-records": "5"}),
    ],
)
def test_published_settled_and_compacted_snapshots_are_ours(
    evidence: Evidence, commit: Commit
) -> None:
    known = replace(evidence, bronze=table("bronze.orders", 16, commit), settled=frozenset({42}))
    assert failed(known) == []


def test_a_replace_that_loses_rows_is_not_a_rewrite() -> None:
    assert not Commit(7, "replace", {"added-records": "4", "deleted-records": "5"}).only_rewrites()


def test_the_certificate_names_its_ledger_by_hash(evidence: Evidence, tmp_path: Path) -> None:
    import hashlib

    certificate = certify([evidence], TIME, "0.1")
    file = write(certificate, tmp_path / "c" / "proof.json")
    document = orjson.loads(file.read_bytes())
    ledger = (file.parent / document["ledger"]["file"]).read_bytes()
    assert document["holds"] is True
    assert document["ledger"]["sha256"] == hashlib.sha256(ledger).hexdigest()
    assert len(ledger.splitlines()) == 5
    assert document["datasets"][0]["sums"]["accepted"] == 16


def test_the_text_shows_the_equations_and_what_broke(evidence: Evidence) -> None:
    words = text(certify([evidence], TIME, "0.1"))
    assert "✓ produced 20 = bronze 16 + dead letters 3 + tombstones 1" in words
    assert words.endswith("Every record is accounted for.")
    damaged = certify([replace(evidence, repeated_origins=2)], TIME, "0.1")
    assert "✗" in text(damaged)
    assert broken(damaged) == (
        "orders: every partition and offset stands once in bronze or in the dead letters"
        " (2 stand more than once)",
    )
