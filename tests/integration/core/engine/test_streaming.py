"""A stream reads what comes, as it comes; stopped, killed or switched to batch, it loses nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random

import pytest
from tests.support.dataset_events import events
from tests.support.oracle import expected_bronze
from tests.support.pipeline import (
    SECOND,
    TYPES,
    InjectedFaultError,
    Interruption,
    Pipeline,
    ProducerRecord,
    fail_at,
)
from tests.support.run_requests import ACCEPT_GAP
from tests.support.streams import delete_records_before, group_offsets, stream_job

from headgate.certify.certificate import broken
from headgate.core.engine import lag
from headgate.core.engine.batch import Point
from headgate.core.engine.job_kind import KINDS
from headgate.core.engine.lag import measure, refuse_too_many_letters, report
from headgate.core.engine.recovery import rebuild_on
from headgate.core.kafka.offsets import ExpiredError
from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import DifferenceError, UsageError
from headgate.local.process import wait_until

NewPipeline = Callable[..., Pipeline]


@pytest.fixture
def pipeline(new_pipeline: NewPipeline) -> Pipeline:
    made = new_pipeline()
    made.settings = made.settings.model_copy(update={"trigger_seconds": 0.5})
    return made


def test_bursts_are_read_as_they_come_by_one_run(pipeline: Pipeline) -> None:
    pipeline.produce(events(1, 50))
    with stream_job(pipeline, "bronze") as stream:
        stream.wait_until_read(50)
        for burst in range(1, 4):
            pipeline.produce(events(burst, 30, 50 + 30 * burst))
            stream.wait_until_read(50 + 30 * burst)
        # The group follows once the batch is settled.
        settled = pipeline.store.coverage(stream.run.job)
        assert wait_until(lambda: group_offsets(pipeline) == settled, 60)
    assert pipeline.bronze() == expected_bronze(pipeline.records(), TYPES)
    assert len(pipeline.store.runs()) == 1
    assert pipeline.store.runs()[0].progress.records == 140


def test_switching_between_batch_and_streaming_equals_one_batch_run(pipeline: Pipeline) -> None:
    """Cuts at random places, from a seed; a small bound makes several batches of one burst."""
    rng, sent = Random(4), 0
    bounded = {"max_offsets_per_batch": 40, "trigger_seconds": 0.5}
    pipeline.settings = pipeline.settings.model_copy(update=bounded)
    for turn in range(2):
        burst = rng.randrange(30, 80)
        bad = [b"not a record", ProducerRecord(None, b"gone")]
        pipeline.produce([*events(turn, burst, sent), *bad])
        sent += burst + len(bad)
        if turn == 0:
            pipeline.process("bronze")
        else:
            with stream_job(pipeline, "bronze") as stream:
                stream.wait_until_read(rng.randrange(sent - burst, sent))
    pipeline.process("bronze")
    whole = [r for r in pipeline.records() if r.value not in (None, b"not a record")]
    assert pipeline.bronze() == expected_bronze(whole, TYPES)
    assert pipeline.outcomes() == {"accepted": sent - 4, "refused": 2, "tombstone": 2}
    assert all(row.span <= 40 for row in pipeline.ledger())
    assert group_offsets(pipeline) == pipeline.store.coverage(f"bronze-{pipeline.name}")


def test_records_that_expire_while_the_stream_is_stopped_are_refused_then_accepted(
    pipeline: Pipeline,
) -> None:
    pipeline.produce(
        [ProducerRecord(value, partition=n % 2) for n, value in enumerate(events(1, 40))]
    )
    pipeline.process("bronze")
    more = events(2, 40, 40)
    pipeline.produce([ProducerRecord(value, partition=n % 2) for n, value in enumerate(more)])
    delete_records_before(pipeline, {0: 25, 1: 23})
    with pytest.raises(ExpiredError, match=r"8 records of .* expired before") as refused:
        pipeline.process("bronze")
    assert "partition 0: offsets 20 to 24, partition 1: offsets 20 to 22" in refused.value.why
    assert "accept-gap" in refused.value.fix
    pipeline.process("bronze", request=ACCEPT_GAP)
    (gap,) = pipeline.ledger()[1:]
    assert (gap.read, gap.gaps, gap.is_accepted_gap) == (0, 8, True)
    pipeline.process("bronze")
    assert pipeline.bronze().total() == 80 - 8
    assert group_offsets(pipeline) == {"0": 40, "1": 40}
    check_certificate_of_expired(pipeline)
    with OpsStore.open(f"sqlite:///{pipeline.settings.root}/again.db") as again:
        rebuild_on(pipeline.session, pipeline.settings, again)
        rows = again.ledger(f"bronze-{pipeline.name}")
    assert [(row.read, row.gaps, row.is_accepted_gap) for row in rows] == [
        (40, 0, False),
        (0, 8, True),
        (32, 0, False),
    ]


def check_certificate_of_expired(pipeline: Pipeline) -> None:
    """The certificate names what expired, and the script agrees."""
    pipeline.process("silver")
    certificate = pipeline.certify()
    lines = {line.name: line for line in certificate.accounts[0].lines}
    assert certificate.holds, broken(certificate)
    assert "8 records expired" in lines["expired"].words
    assert "partition 0: 20 to 24, partition 1: 20 to 22, accepted by ann at 20" in (
        lines["expired"].detail
    )
    checked = pipeline.recheck()
    assert checked.returncode == 0, checked.stdout
    assert "PASS  8 records expired unread" in checked.stdout


def test_records_that_expire_under_a_running_stream_end_it_in_words(pipeline: Pipeline) -> None:
    pipeline.produce(ProducerRecord(value, partition=0) for value in events(1, 30))
    pipeline.process("bronze")
    pipeline.produce(ProducerRecord(value, partition=0) for value in events(2, 30, 30))
    vanish = Interruption(Point.AFTER_INTENT, lambda: delete_records_before(pipeline, {0: 40}))
    with stream_job(pipeline, "bronze", vanish) as stream:
        error = stream.wait_for_failure()
    assert vanish.hits == 1
    assert isinstance(error, ExpiredError), error
    assert error.what.startswith(f"10 records of {pipeline.topic} expired before")
    pipeline.process("bronze", request=ACCEPT_GAP)
    pipeline.process("bronze")
    assert [row.gaps for row in pipeline.ledger()] == [0, 10, 0]
    assert sorted(row[0] for row in pipeline.bronze()) == [*range(30), *range(40, 60)]
    with pytest.raises(UsageError, match=r"no record of .* expired"):
        pipeline.process("bronze", request=ACCEPT_GAP)


@pytest.mark.slow
@pytest.mark.parametrize("point", [Point.AFTER_INTENT, Point.AFTER_STAGING, Point.BEFORE_OUTCOME])
def test_a_killed_acceptance_of_a_gap_is_finished_by_the_next_run(
    pipeline: Pipeline, point: Point
) -> None:
    pipeline.produce(ProducerRecord(value, partition=0) for value in events(1, 30))
    pipeline.process("bronze")
    pipeline.produce(ProducerRecord(value, partition=0) for value in events(2, 30, 30))
    delete_records_before(pipeline, {0: 40})
    killed = fail_at(point)
    with pytest.raises(InjectedFaultError):
        pipeline.process("bronze", killed, request=ACCEPT_GAP)
    assert killed.hits == 1
    pipeline.process("bronze")
    assert [row.gaps for row in pipeline.ledger()] == [0, 10, 0]
    assert sorted(row[0] for row in pipeline.bronze()) == [*range(30), *range(40, 60)]


def test_lag_is_told_in_records_and_in_seconds_without_spark(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag, "READ_SECONDS", 120.0)
    pipeline.produce(
        [
            *(ProducerRecord(value, partition=0) for value in events(1, 30)),
            ProducerRecord(b"no", None),
        ]
    )
    before = measure(pipeline.settings, pipeline.store, KINDS["bronze"], pipeline.name)
    assert before.records == 31
    pipeline.process("bronze")
    now = int(time.time() * 1000)
    old, young = now - 90 * SECOND, now - 30 * SECOND
    more = [ProducerRecord(value, partition=1, timestamp=old) for value in events(2, 5, 30)]
    pipeline.produce(
        [*more, *(ProducerRecord(v, partition=0, timestamp=young) for v in events(3, 7, 40))]
    )
    found = report(pipeline.settings, pipeline.store, KINDS["bronze"], pipeline.name)
    passed = time.time() - now / 1000
    first, second = found.lag.partitions
    assert (first.lag, second.lag, found.lag.records) == (7, 5, 12)
    assert 30 <= (first.seconds or 0) <= 30.1 + passed  # it is told in tenths
    assert 90 <= (second.seconds or 0) <= 90.1 + passed
    assert found.lag.seconds == second.seconds
    assert found.group_words == "in step with the ledger"
    assert found.dead_letters == 1
    with pytest.raises(DifferenceError, match="1 dead letters, and DLQ_MAX is 0"):
        refuse_too_many_letters(found)
    pipeline.process("bronze")
    assert measure(pipeline.settings, pipeline.store, KINDS["bronze"], pipeline.name).records == 0
