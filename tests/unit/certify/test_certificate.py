from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from headgate.certify.account import Evidence, account, sums
from headgate.certify.certificate import broken, certify, text, write
from headgate.certify.store import CertificateStore
from headgate.core.accounting.evidence import (
    AcceptedGap,
    BatchCount,
    CertifiedTable,
    Commit,
    Line,
    Recount,
    TableEvidence,
    TopicEvidence,
    Verdict,
)
from headgate.core.ledger.model import ACCEPTED_GAP, LedgerRow
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.ranges import TopicRange, parse_range

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
        range=parse_range(source, "id1", start, end),
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
    evidence = Evidence(
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
        on_broker=TopicEvidence("id1", {"0": 0, "1": 0}, {"0": 12, "1": 9}, transactions=True),
    )
    return counted(evidence, 12, 8)


def counted(evidence: Evidence, *records: int) -> Evidence:
    """The evidence with so many records of each batch found on the topic."""
    batches = zip(evidence.bronze_ledger, records, strict=True)
    return replace(evidence, recount=Recount(tuple(BatchCount(row, n) for row, n in batches)))


def named(evidence: Evidence, name: str) -> Line:
    (found,) = [line for line in account(evidence) if line.name == name]
    return found


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
    produced = named(replace(evidence, on_broker=more, streaming=True), "produced")
    assert (produced.verdict, produced.detail) == (Verdict.WARN, "5 more wait on the topic")


def test_a_table_that_nobody_wrote_to_is_empty(evidence: Evidence) -> None:
    letters = TableEvidence("headgate.dead_letters", 0, "0", ("a",), "m.json", None, None, ())
    found = text(certify([replace(evidence, dead_letters=letters)], TIME, "1"))
    assert "None" not in found
    assert "headgate.dead_letters is empty: nobody has written to it" in found
    assert "0 rows   empty" in found


def test_another_topic_than_the_declared_one_is_named(evidence: Evidence) -> None:
    same = replace(evidence, declared_topic="orders")
    assert "topic" not in [line.name for line in account(same)]
    found = named(replace(evidence, declared_topic="x"), "topic")
    assert found.verdict is Verdict.WARN
    assert found.detail == "declared is x, of which nothing was read since"


def test_what_expired_unread_is_named_with_who_accepted_it(evidence: Evidence) -> None:
    gap = replace(batch(BRONZE, {"0": 12}, {"0": 17}, gaps=5), batch_id=ACCEPTED_GAP)
    topic = TopicEvidence("id1", {"0": 17, "1": 0}, {"0": 17, "1": 9}, transactions=True)
    rows = (*evidence.bronze_ledger, gap)
    found = replace(evidence, bronze_ledger=rows, on_broker=topic, gaps=(AcceptedGap(gap, "ann"),))
    assert failed(found) == []
    assert (sums(found).gaps, sums(found).expired) == (1, 5)
    expired = named(found, "expired")
    assert expired.verdict is Verdict.WARN
    assert expired.words == "5 records expired on the topic before they were read"
    assert expired.detail == "partition 0: 12 to 16, accepted by ann at 2024-01-01 00:00:00 UTC"
    assert text(certify([found], TIME, "0.1")).endswith("mind the lines with !.")


@pytest.mark.parametrize("topic", [None, TopicEvidence("other", {"0": 3}, {"0": 3})])
def test_without_the_broker_the_ledger_is_said_to_stand_alone(
    evidence: Evidence, topic: TopicEvidence | None
) -> None:
    alone = replace(evidence, on_broker=topic, why_no_broker="no broker is running")
    produced = named(alone, "produced")
    assert produced.verdict is Verdict.WARN
    assert "by the ledger alone" in produced.detail
    assert text(certify([alone], TIME, "0.1")).endswith("mind the lines with !.")


@pytest.mark.parametrize("streaming", [False, True])
def test_records_of_a_topic_made_again_are_not_yet_processed(
    evidence: Evidence, streaming: bool
) -> None:
    again = TopicEvidence("id2", {"0": 0, "1": 500}, {"0": 400, "1": 1_100})
    waiting = replace(evidence, on_broker=again, streaming=streaming)
    assert failed(waiting) == ["produced"]
    assert "1,000 records on the topic are not yet processed" in named(waiting, "produced").detail
    assert "Every record" not in text(certify([waiting], TIME, "0.1"))


def test_a_topic_must_have_been_read_from_its_first_record_on(evidence: Evidence) -> None:
    late = (batch(BRONZE, {"0": 100}, {"0": 120}, accepted=16, refused=3, tombstone=1),)
    begun = counted(replace(evidence, bronze_ledger=late), 20)
    whole = replace(begun, on_broker=TopicEvidence("id1", {"0": 0}, {"0": 120}))
    assert failed(whole) == ["produced"]
    assert "100 records before the first batch" in named(whole, "produced").detail
    expired = replace(begun, on_broker=TopicEvidence("id1", {"0": 100}, {"0": 120}))
    assert failed(expired) == []
    assert "no longer on the topic" in named(expired, "offsets").words


def test_a_batch_that_read_another_number_than_the_topic_has_is_a_difference(
    evidence: Evidence,
) -> None:
    assert failed(counted(evidence, 12, 9)) == ["produced", "counted"]
    evened_out = counted(evidence, 13, 7)
    assert failed(evened_out) == ["counted"]
    assert "run 1 batch 0: 13 counted, 12 read" in named(evened_out, "counted").detail


def test_compaction_may_have_removed_records_and_adds_none(evidence: Evidence) -> None:
    compacted = TopicEvidence("id1", {"0": 0, "1": 0}, {"0": 12, "1": 9}, compacted=True)
    fewer = counted(replace(evidence, on_broker=compacted), 12, 5)
    assert failed(fewer) == []
    assert named(fewer, "counted").verdict is Verdict.WARN
    more = counted(replace(evidence, on_broker=compacted), 12, 9)
    assert failed(more) == ["produced", "counted"]


def test_what_was_not_counted_again_is_said(evidence: Evidence) -> None:
    skipped = replace(evidence, recount=Recount(why_not="too many"))
    found = named(skipped, "counted")
    assert (found.verdict, found.detail) == (Verdict.WARN, "too many")
    assert "gaps were not counted again" in found.words


def test_gaps_are_shown_and_those_that_nothing_explains_are_warned_of(evidence: Evidence) -> None:
    assert named(evidence, "gaps").words.startswith("1 offset is without a record: its broker")
    plain = TopicEvidence("id1", {"0": 0, "1": 0}, {"0": 12, "1": 9})
    found = named(replace(evidence, on_broker=plain), "gaps")
    assert found.verdict is Verdict.WARN
    assert "not compacted" in found.detail


def test_each_kind_of_damage_is_found(evidence: Evidence) -> None:
    gap = batch(BRONZE, {"0": 13, "1": 9}, {"0": 13, "1": 9})
    skipped = replace(gap, range=TopicRange("orders", "id1", {"0": 15}, {"0": 16}))
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


FORGED = {"headgate.job": "bronze-orders", "added-data-files": "1", "added-records": "5"}


@pytest.mark.parametrize(
    "commit",
    [
        Commit(7, "overwrite", {**FORGED, "deleted-data-files": "1", "deleted-records": "5"}),
        Commit(7, "append", FORGED),
        Commit(7, "append", {"source-snapshot-id": "3", "added-data-files": "1"}, FORGED),
        Commit(7, "overwrite", {**FORGED, "headgate.job": "quality-x", "deleted-records": "5"}),
        Commit(7, "overwrite", {"headgate.job": "bronze-orders", "added-delete-files": "1"}),
    ],
)
def test_forged_commit_metadata_does_not_make_a_commit_ours(
    evidence: Evidence, commit: Commit
) -> None:
    forged = replace(evidence, bronze=table("bronze.orders", 16, OURS, commit))
    assert failed(forged) == ["history of bronze.orders"]


def test_another_jobs_append_to_the_shared_table_is_fine(evidence: Evidence) -> None:
    commit = Commit(7, "append", {**FORGED, "headgate.job": "router-x"})
    letters = table("headgate.dead_letters", 3, OURS, commit)
    assert failed(replace(evidence, dead_letters=letters)) == []


def test_a_commit_must_bring_the_rows_of_the_batch_that_names_it(evidence: Evidence) -> None:
    first, second = evidence.bronze_ledger
    rows = (replace(first, snapshots={"lake.bronze.orders": 5}), second)
    for added, wrong in ((10, []), (9, ["history of bronze.orders"])):
        summary = {"added-data-files": "1", "added-records": str(added)}
        bronze = table("bronze.orders", 16, Commit(5, "append", summary))
        found = replace(evidence, bronze_ledger=rows, bronze=bronze, settled=frozenset({5}))
        assert failed(found) == wrong


def test_each_batch_must_have_its_own_rows(evidence: Evidence) -> None:
    """Sums that agree are not enough: five rows may have moved from one batch to another."""
    first, second = evidence.bronze_ledger
    later = TIME + timedelta(hours=1)
    rows = (first, replace(second, batch_time=later))
    whole = replace(table("bronze.orders", 16), batches={TIME: 10, later: 6})
    assert failed(replace(evidence, bronze_ledger=rows, bronze=whole)) == []
    moved = replace(
        evidence, bronze_ledger=rows, bronze=replace(whole, batches={TIME: 9, later: 7})
    )
    assert failed(moved) == ["batches of bronze.orders"]
    assert named(moved, "batches of bronze.orders").detail.startswith(
        "2024-01-01 00:00:00: 9 rows, ledger 10"
    )


NOTE = CertifiedTable(TIME, 5, 16, "abc", ("a",), TIME)


def test_certified_tables_are_kept_until_the_next_certificate(store: OpsStore) -> None:
    certificates = store.part(CertificateStore)
    bare = replace(NOTE, snapshot_id=None, columns=())
    certificates.write_certified("orders", {"bronze": NOTE, "silver": bare})
    certificates.write_certified("trips", {"bronze": bare})
    assert certificates.read_certified("orders") == {"bronze": NOTE, "silver": bare}
    certificates.write_certified("orders", {"silver": NOTE})
    assert certificates.read_certified("orders") == {"silver": NOTE}
    certificates.write_certified("orders", {})
    assert certificates.read_certified("orders") == {}
    assert certificates.read_certified("trips") == {"bronze": bare}


LATER = TIME + timedelta(hours=1)
EXPIRED = Commit(8, "append", {"headgate.job": "bronze-orders"}, parent_id=6)


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        # No certificate before this one: the history must reach back to the first batch.
        ({}, None),
        ({"commits": (EXPIRED,)}, Verdict.WARN),
        # Certified rows are compared, however far the history reaches back.
        ({"certified": NOTE, "certified_now": (16, "abc"), "until": TIME}, Verdict.PASS),
        ({"certified": NOTE, "certified_now": (16, "abd"), "until": LATER}, Verdict.FAIL),
        ({"certified": NOTE, "certified_now": (15, "abc"), "until": LATER}, Verdict.FAIL),
        # What came since must be in the history.
        ({"certified": NOTE, "certified_now": (16, "abc"), "until": LATER}, Verdict.PASS),
        (
            {
                "certified": NOTE,
                "certified_now": (16, "abc"),
                "until": LATER,
                "commits": (replace(EXPIRED, parent_id=5),),
            },
            Verdict.PASS,
        ),
        (
            {
                "certified": NOTE,
                "certified_now": (16, "abc"),
                "until": LATER,
                "commits": (EXPIRED,),
            },
            Verdict.WARN,
        ),
        ({"certified": NOTE, "until": LATER, "commits": (EXPIRED,)}, Verdict.WARN),
    ],
)
def test_what_was_certified_is_followed_to_now(
    evidence: Evidence, changes: dict[str, Any], verdict: Verdict | None
) -> None:
    bronze = replace(table("bronze.orders", 16), **changes)
    lines = account(replace(evidence, bronze=bronze))
    found = [line.verdict for line in lines if line.name == "certified rows of bronze.orders"]
    assert found == ([verdict] if verdict else [])


def test_a_rebuild_of_silver_needs_no_older_history(evidence: Evidence) -> None:
    rows = (
        evidence.silver_ledger[0],
        replace(evidence.silver_ledger[1], snapshots={"lake.silver.orders": 8}),
        evidence.silver_ledger[2],
    )
    summary = {"added-records": "8", "added-data-files": "1"}
    silver = table("silver.orders", 12, replace(EXPIRED, summary=summary))
    known = replace(evidence, silver=silver, settled=frozenset({8}))
    name = "certified rows of silver.orders"
    assert named(known, name).verdict is Verdict.WARN
    rebuilt = account(replace(known, silver_ledger=rows))
    assert name not in [line.name for line in rebuilt]


def test_a_dataset_that_was_removed_is_named(evidence: Evidence) -> None:
    removed = replace(evidence, is_declared=False)
    assert failed(removed) == []
    assert named(removed, "declared").words == "orders is no longer declared"
    (line,) = account(replace(removed, bronze=None, silver=None, dead_letters=None))
    assert line.verdict is Verdict.WARN
    assert "its tables are gone" in line.words


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
        "orders: every offset of a topic stands once in bronze or in the dead letters"
        " (2 stand more than once, or belong to no batch)",
    )


def test_what_a_backfill_added_counts_until_the_next_rebuild(evidence: Evidence) -> None:
    """Two rows came by a backfill; the next step of silver met them, and a duplicate of one."""
    step = batch(SILVER, {"snapshot": 1}, {"snapshot": 2}, kept=2, replaced=2, backfilled=2)
    filled = batch("backfill-orders", {}, {"snapshot": 2, "from": 20240101, "to": 20240102}, kept=5)
    before = replace(filled, net=9, committed_at=TIME - timedelta(hours=1))
    after = replace(filled, net=2, committed_at=TIME + timedelta(hours=1))
    filled_in = replace(
        evidence,
        silver_ledger=(*evidence.silver_ledger[:2], step),
        backfill_ledger=(before, after),
    )
    assert failed(filled_in) == []
    assert named(filled_in, "silver").words == "bronze 16 = silver 12 + duplicates 3 + filtered 1"
    assert named(filled_in, "steps").words.endswith("1 backfill beside")
    assert failed(replace(filled_in, backfill_ledger=(before,))) == ["silver rows"]
