"""The failure scenarios of the documents, one test each, on one play of a pair: two runs, one session."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.oracle import Record, read_topic
from tests.support.pipeline import JVM, MORNING, Pipeline, ProducerRecord, create_topic
from tests.support.reconcile_job import Message, Pair, cloud, digest, onprem, tombstone

from headgate.certify.certificate import broken
from headgate.config.settings import Settings
from headgate.core.engine.job_kind import find_trigger
from headgate.core.engine.telemetry import LagWatch
from headgate.core.ledger.model import RunState
from headgate.core.ledger.ops_store import OpsStore, utc_now
from headgate.core.metrics.connect import passed_on, together
from headgate.core.metrics.readings import Family, Readings
from headgate.quality.spec.reconcile_checks import Limits
from headgate.reconcile.key_history import read_story
from headgate.reconcile.results import current_verdicts, standing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.support.services import RunningBroker

NAME = "scenarios"
NOWHERE = ProducerRecord(
    b'{"event_id": "e", "hash_onprem": "x", "event_ts": "2024-01-01T10:00:00Z"}'
)
CONNECT = 'headgate_connect_hashrow_errors_total{connector="cloud"} 3.0\n'


@dataclass(frozen=True)
class ReconcileRun:
    """The pair after both runs, what was said of keys after the first, and what is counted."""

    pair: Pair
    first: dict[str, str]
    audit: list[Record]
    counts: list[Record]

    def status(self, key: str) -> str:
        return self.statuses[key]

    @cached_property
    def statuses(self) -> dict[str, str]:
        settings = self.pair.pipeline.settings
        return {v.pk: v.status for v in current_verdicts(settings, NAME)}

    def families(self, lag: LagWatch | None = None) -> dict[str, Family]:
        readings = Readings(
            self.pair.pipeline.store,
            lags=lambda: lag.lags if lag else (),
            find_trigger=find_trigger,
        )
        found = together(readings.families(), passed_on(CONNECT))
        return {family.metric.name: family for family in found}

    def total(self, name: str) -> float:
        return sum(value for _, value in self.families()[name].samples)

    @cached_property
    def dead_letter_codes(self) -> list[str]:
        pipeline = self.pair.pipeline
        found = pipeline.select("reason_code", "headgate.dead_letters", f"job = '{self.pair.job}'")
        return sorted(code for (code,) in found)

    def history(self, key: str) -> list[tuple[str, str | None]]:
        """Each verdict on a key, and what settled it."""
        columns = "processing_time, dq_status, settled_by"
        rows = self.pair.pipeline.select(columns, f"dq.results_{NAME}", f"pk = '{key}'")
        return [(status, settled_by) for _, status, settled_by in sorted(rows)]

    def audit_messages(self, key: str) -> list[dict[str, Any]]:
        """What the audit topic has of a key."""
        return [json.loads(r.value or b"") for r in self.audit if r.key == key.encode()]


def first_messages(now: float) -> list[Message]:
    bad = cloud("bad-cloud").sent
    bad = replace(bad, value=(bad.value or b"").replace(digest(1).encode(), b"XYZ"))
    return [
        onprem("gone", version=1, action="DELETE", number=0), cloud("gone", version=1, number=None),
        onprem("gone-too"), tombstone("onprem", "gone-too", read=5), tombstone("cloud", "gone-too", read=6),
        onprem("zombie", version=1, action="DELETE"), cloud("zombie", version=1),
        Message("onprem", NOWHERE), Message("cloud", ProducerRecord(None, None)),
        onprem("odd", action="TRUNCATE"),
        onprem("again"), onprem("again"), onprem("again"), cloud("again"),
        onprem("bad", number=16**64), cloud("bad"),
        onprem("bad-cloud"), Message("cloud", bad),
        onprem("differs"), cloud("differs", number=2),
        onprem("same"), cloud("same"),
        onprem("absent"), cloud("absent", number=None),
        onprem("late"), cloud("late", read=700),
        onprem("skewed", hash_version=1), cloud("skewed"),
        onprem("waiting", version=now), onprem("provisional", version=now), cloud("provisional", version=now, number=2),
        onprem("silent"), cloud("unknown"),
    ]  # fmt: skip


def a_moment_ago(now: float) -> float:
    """One whose next second is of the same hour: at its turn a window of the job ends."""
    return now - 1 if now % 3_600 > 5 else now - 10


@pytest.fixture(scope="module")
def reconcile_run(
    spark: SparkSession,
    broker: RunningBroker,
    lake_home: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ReconcileRun]:
    root = tmp_path_factory.mktemp(NAME)
    for topic in (NAME, f"{NAME}-dlq"):
        create_topic(broker.bootstrap, topic, 2, 1_048_588)
    settings = Settings(
        root=root,
        home=lake_home,
        dataset=NAME,
        topic=NAME,
        dlq_topic=f"{NAME}-dlq",
        bootstrap_servers=broker.bootstrap,
        ops_store_url=f"sqlite:///{root}/ops.db",
        **JVM,
    )
    with OpsStore.open(settings.ops_store_url) as store:
        told = f"1 HOUR, audit: {{topic: {NAME}-audit}}, status_topic: {NAME}-status"
        pair = Pair(Pipeline(NAME, settings, store, spark), horizon=told)
        now = a_moment_ago(time.time()) - MORNING / 1000
        pair.send(*first_messages(now))
        pair.process()
        first = {v.pk: v.status for v in current_verdicts(settings, NAME)}
        pair.send(cloud("waiting", version=now), cloud("provisional", version=now + 1, number=1))
        pair.send(onprem("provisional", version=now + 1), cloud("silent", read=1_000))
        pair.process()
        topics = [read_topic(broker.bootstrap, f"{NAME}-{kind}") for kind in ("audit", "status")]
        yield ReconcileRun(pair, first, *topics)


def test_s1_87_to_89_create_update_and_upsert_are_compared(reconcile_run: ReconcileRun) -> None:
    assert reconcile_run.pair.verdicts() == reconcile_run.pair.expected()
    assert broken(reconcile_run.pair.pipeline.certify()) == ()


def test_s1_90_94_a_delete_is_neither_hashed_nor_compared(reconcile_run: ReconcileRun) -> None:
    assert reconcile_run.status("gone") == reconcile_run.status("gone-too") == "DELETE_EVENT"


def test_s1_91_an_unknown_action_is_a_dead_letter(reconcile_run: ReconcileRun) -> None:
    assert "dq_unknown_action" in reconcile_run.dead_letter_codes
    assert "odd" not in reconcile_run.statuses
    assert reconcile_run.total("dq_unknown_action_total") == 1


def test_s1_95_96_a_delete_is_a_valid_delete_event(reconcile_run: ReconcileRun) -> None:
    found = standing(reconcile_run.pair.pipeline.settings, NAME, utc_now())
    deletes = [one for one in found.statuses if one.dq_status == "DELETE_EVENT"]
    assert [(one.rollup, one.cnt) for one in deletes] == [("valid", 2)]
    assert reconcile_run.status("zombie") == "ZOMBIE"


def test_s1_97_every_accepted_delete_is_counted(reconcile_run: ReconcileRun) -> None:
    assert reconcile_run.total("dq_delete_count_total") == 4


def test_s1_98_99_a_message_without_a_key_is_a_dead_letter(reconcile_run: ReconcileRun) -> None:
    assert reconcile_run.dead_letter_codes.count("dq_missing_pk") == 2


def test_s1_100_messages_without_a_key_are_counted(reconcile_run: ReconcileRun) -> None:
    assert reconcile_run.total("dq_missing_pk_total") == 2


def test_s1_101_replayed_duplicates_say_nothing_twice(reconcile_run: ReconcileRun) -> None:
    assert reconcile_run.status("again") == "MATCH"
    rows = reconcile_run.pair.sql("SELECT id FROM lake.dq.results_{t} WHERE pk = 'again'")
    assert len(rows) == 1


def test_s1_102_duplicates_are_counted_by_their_offsets(reconcile_run: ReconcileRun) -> None:
    assert reconcile_run.total("dq_duplicates_total") == 2


def test_s1_103_a_hash_that_is_none_is_never_compared(reconcile_run: ReconcileRun) -> None:
    assert reconcile_run.status("bad") == reconcile_run.status("bad-cloud") == "INVALID_HASH"


def test_s1_104_134_bad_hashes_are_counted_under_both_names(reconcile_run: ReconcileRun) -> None:
    assert (
        reconcile_run.total("dq_hash_format_error_total")
        == reconcile_run.total("dq_invalid_hash_total")
        == 2
    )


def test_s1_106_107_a_row_that_is_not_found_is_missing_at_once(reconcile_run: ReconcileRun) -> None:
    assert reconcile_run.status("absent") == "MISSING_CLOUD"
    # With the two that the end of the first run's input found alone.
    assert reconcile_run.total("dq_missing_cloud_total") == 3


def test_s1_113_114_a_mismatch_is_told_and_counted(reconcile_run: ReconcileRun) -> None:
    assert reconcile_run.status("differs") == "MISMATCH"
    # With the one that was provisional when the first run's input ended.
    assert reconcile_run.total("dq_hash_mismatch_total") == 2
    (told,) = reconcile_run.audit_messages("differs")
    assert (told["status"], told["onprem_hash"], told["cloud_hash"]) == (
        "MISMATCH",
        digest(1),
        digest(2),
    )


def test_s1_115_116_a_match_is_counted_and_not_told(reconcile_run: ReconcileRun) -> None:
    assert reconcile_run.status("same") == "MATCH"
    assert reconcile_run.total("dq_hash_match_total") == 6
    assert reconcile_run.audit_messages("same") == []


def test_s1_117_what_comes_first_waits_for_the_other(reconcile_run: ReconcileRun) -> None:
    """A run settles at the end of its input what still waits; the run after it corrects that."""
    assert reconcile_run.first["waiting"] == reconcile_run.first["silent"] == "MISSING_CLOUD"
    assert reconcile_run.first["provisional"] == "MISMATCH"
    assert reconcile_run.history("waiting") == [
        ("PENDING", None),
        ("MISSING_CLOUD", "end_of_input"),
        ("MATCH", "records"),
    ]
    assert reconcile_run.history("silent") == [
        ("MISSING_CLOUD", "deadline"),
        ("LATE_MATCH", "records"),
    ]


def test_s1_118_it_is_reconciled_when_the_other_side_arrives(reconcile_run: ReconcileRun) -> None:
    assert reconcile_run.status("waiting") == reconcile_run.status("provisional") == "MATCH"
    assert reconcile_run.status("silent") == "LATE_MATCH"
    assert [
        (told["status"], told.get("previous")) for told in reconcile_run.audit_messages("silent")
    ] == [
        ("MISSING_CLOUD", None),
        ("LATE_MATCH", "MISSING_CLOUD"),
    ]


def test_s1_119_late_arrivals_are_counted(reconcile_run: ReconcileRun) -> None:
    assert reconcile_run.status("late") == "LATE_MATCH"
    assert reconcile_run.total("dq_late_arrival_total") == 2


def test_s1_129_130_lag_is_measured_on_both_topics(reconcile_run: ReconcileRun) -> None:
    pair, store = reconcile_run.pair, reconcile_run.pair.pipeline.store
    run = pair.pipeline.ask_for("reconcile")
    store.move(run.job, run.number, RunState.RUNNING) if run.state is RunState.SUBMITTED else None
    try:
        pair.send(onprem("behind"), onprem("behind-too"), cloud("behind"))
        watch = LagWatch(store, pair.bootstrap, 60.0)
        watch.look()
        found = {
            labels[1]: n for labels, n in reconcile_run.families(watch)["dq_kafka_lag"].samples
        }
        assert found == {pair.topics["onprem"]: 2, pair.topics["cloud"]: 1}
    finally:
        store.move(run.job, run.number, RunState.CANCELED)


def test_s1_131_132_backpressure_is_the_duration_over_the_trigger(
    reconcile_run: ReconcileRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = reconcile_run.pair.pipeline
    store, settings = pipeline.store, pipeline.settings
    often = settings.model_copy(update={"trigger_seconds": 0.5})
    monkeypatch.setattr(pipeline, "settings", often)
    run = pipeline.ask_for("reconcile", "streaming")
    try:
        (sample,) = reconcile_run.families()["dq_backpressure"].samples
        (row,) = store.newest_batches(reconcile_run.pair.job, 1)
        took = (row.committed_at - row.batch_time).total_seconds()
        assert sample[0] == (reconcile_run.pair.job,)
        assert sample[1] == pytest.approx(took / 0.5)
    finally:
        store.move(run.job, run.number, RunState.CANCELED)


def test_s1_133_the_counters_of_the_documents_are_there(reconcile_run: ReconcileRun) -> None:
    names = "hash_match hash_mismatch missing_cloud delete_count duplicates late_arrival"
    assert {f"dq_{name}_total" for name in names.split()} <= set(reconcile_run.families())


def test_s1_135_what_a_worker_tells_of_the_transformation_stands_on_the_same_page(
    reconcile_run: ReconcileRun,
) -> None:
    """How it comes to be counted there is tried against a worker, in test_smt_connect."""
    assert reconcile_run.total("dq_smt_errors_total") == 3


def test_s1_136_dead_letters_are_counted(reconcile_run: ReconcileRun) -> None:
    assert reconcile_run.total("dq_dlq_records_total") == 3


def test_s1_37_38_counts_by_status_go_to_their_topic(reconcile_run: ReconcileRun) -> None:
    last = {
        json.loads(r.value or b"")["dq_status"]: json.loads(r.value or b"")
        for r in reconcile_run.counts
    }
    assert {status: last[status]["cnt"] for status in ("MATCH", "ZOMBIE", "LATE_MATCH")} == {
        "MATCH": 4,
        "ZOMBIE": 1,
        "LATE_MATCH": 2,
    }
    assert all({"dq_status", "cnt", "rollup"} <= set(one) for one in last.values())


def test_an_audit_record_has_its_id_in_a_header_and_comes_once(reconcile_run: ReconcileRun) -> None:
    ids = [record.header("headgate.id") for record in reconcile_run.audit]
    assert len(ids) == len(set(ids))
    assert ids == [json.loads(record.value or b"")["id"] for record in reconcile_run.audit]


def test_keys_by_status_are_gauges(reconcile_run: ReconcileRun) -> None:
    samples = dict(reconcile_run.families()["dq_keys"].samples)
    assert samples[reconcile_run.pair.job, "MATCH"] == 4
    assert samples[reconcile_run.pair.job, "PENDING"] == 0
    (share,) = (v for _, v in reconcile_run.families()["dq_reconciled_within_grace"].samples)
    assert 0 < share < 1


def test_the_story_of_a_key_tells_arrivals_and_verdicts(reconcile_run: ReconcileRun) -> None:
    settings = reconcile_run.pair.pipeline.settings
    story = read_story(settings, NAME, "silent", Limits(), utc_now())
    assert story is not None
    assert [event.what for event in story.events if event.kind == "reading"] == ["onprem", "cloud"]
    verdicts = [event.what for event in story.events if event.kind == "verdict"]
    assert [what for what in verdicts if what != "PENDING"] == ["MISSING_CLOUD", "LATE_MATCH"]
    assert story.status == "LATE_MATCH"
    assert read_story(settings, NAME, "nobody", Limits(), utc_now()) is None
