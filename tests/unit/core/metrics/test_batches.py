"""What a batch counts of its records reaches every sink, each batch once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.clock import ManualClock
from tests.support.metric_sinks import BATCH_METRICS, COUNTS, RecordingSink, settle_counted_batch
from tests.support.metric_windows import JOB, RECORD, SHAPE, settle_batch

from headgate.core.ledger.model import RuleCount
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.metrics.delivery import AT_ONCE, Change, Deliverer, said
from headgate.core.metrics.readings import Readings
from headgate.core.metrics.sinks import encoded
from headgate.core.metrics.windows import Emitter

TAGS = "env:prod,dc:onprem,table:orders_onprem,topic:orders.events"


def test_what_a_batch_counts_of_its_records_is_told_by_every_sink(
    store: OpsStore, clock: ManualClock
) -> None:
    sink = RecordingSink()
    deliverer = Deliverer(store, [sink])
    Emitter(store, SHAPE, lambda _: {}, clock)
    settle_counted_batch(store)
    assert [deliverer.deliver(), deliverer.deliver()] == [1, 0]
    assert sorted(sink.lines) == sorted(
        f"{name}:{n}|c|#{TAGS}" for name, n in BATCH_METRICS.items()
    )
    (message,) = sink.messages
    assert {name: message[name] for name in BATCH_METRICS} == BATCH_METRICS
    assert message["dq.shop.delete_count"] == 9
    assert (message["record"], message["job"], message["sequence"]) == ("batch", JOB, 1)
    assert [*message][:6] == [
        *("window_start", "env", "dc", "table_name", "topic_name", "dq_error_total")
    ]


def test_sinks_and_prometheus_say_the_same(store: OpsStore, clock: ManualClock) -> None:
    sink = RecordingSink()
    deliverer = Deliverer(store, [sink])
    Emitter(store, SHAPE, lambda _: {}, clock)
    settle_counted_batch(store)
    settle_counted_batch(store, 23)
    deliverer.deliver()
    found = {f.metric.name: f for f in Readings(store).families()}
    for name in BATCH_METRICS:
        scraped = sum(n for _, n in found[f"{name}_total"].samples)
        assert sum(message[name] for message in sink.messages) == scraped, name


def test_each_batch_has_an_id_of_its_own_and_one_without_counts_is_not_told(
    store: OpsStore,
) -> None:
    sink = RecordingSink()
    deliverer = Deliverer(store, [sink])
    settle_counted_batch(store)
    settle_batch(store, 23, {}, COUNTS[:1])
    settle_batch(store, 24, {}, COUNTS[4:5])
    assert deliverer.deliver() == 2
    assert len(set(sink.ids)) == 2
    assert all(one.startswith(f"{JOB}/2026-01-01T13:00:00.000Z/") for one in sink.ids)
    assert store.register_sink("recording").ledger == 3


@pytest.mark.parametrize(("at_most_once", "sent"), [(False, 2), (True, 1)])
def test_a_kill_behind_a_send(store: OpsStore, at_most_once: bool, sent: int) -> None:
    sink = RecordingSink(at_most_once=at_most_once)
    deliverer = Deliverer(store, [sink])
    settle_counted_batch(store)
    sink.dies_after = True
    with pytest.raises(KeyboardInterrupt):
        deliverer.deliver()
    sink.dies_after = False
    Deliverer(store, [sink]).deliver()
    assert (len(sink.ids), len(set(sink.ids))) == (sent, 1), "what comes twice has the same id"


def test_an_outage_keeps_batches_and_their_trouble_ends_with_it(store: OpsStore) -> None:
    sink = RecordingSink()
    deliverer = Deliverer(store, [sink])
    sink.fails = True
    settle_counted_batch(store)
    assert (deliverer.deliver(), store.sinks()[0].failures) == (0, 1)
    sink.fails = False
    assert deliverer.deliver_now() == (1, {})
    assert (store.sinks()[0].failures, store.sinks()[0].trouble) == (0, None)


def test_a_new_sink_begins_with_the_batches_from_then_on(store: OpsStore) -> None:
    settle_counted_batch(store)
    sink = RecordingSink()
    deliverer = Deliverer(store, [sink])
    assert deliverer.deliver() == 0
    settle_counted_batch(store, 23)
    assert deliverer.deliver() == 1


def test_more_batches_than_fit_at_once_go_in_pieces(store: OpsStore) -> None:
    sink = RecordingSink()
    deliverer = Deliverer(store, [sink])
    for offset in range(AT_ONCE + 5):
        settle_batch(store, offset, {}, COUNTS[4:5])
    assert deliverer.deliver() == len(set(sink.ids)) == AT_ONCE + 5


def test_what_is_sent_again_is_never_sent_again_to_an_agent(store: OpsStore) -> None:
    kept, agent = RecordingSink("kept"), RecordingSink("agent", at_most_once=True)
    deliverer = Deliverer(store, [kept, agent])
    settle_counted_batch(store)
    deliverer.deliver()
    for sink in (kept, agent):
        store.rewind_sink(sink.name, batches=not sink.at_most_once)
    deliverer.deliver()
    assert (len(kept.ids), len(set(kept.ids)), len(agent.ids)) == (2, 1, 1)


def test_a_job_without_dimensions_tells_its_dead_letters_under_its_own_name(
    store: OpsStore,
) -> None:
    sink = RecordingSink()
    deliverer = Deliverer(store, [sink])
    settle_batch(store, 0, {}, accepted=1, dead_letter=2)
    deliverer.deliver()
    assert sink.lines == [f"dq_dlq_records:2|c|#env:,dc:,table:{JOB},topic:"]


def test_a_window_has_the_other_name_that_the_documents_use() -> None:
    record = replace(RECORD, metrics={"invalid_hash": 3, "no_key": 0})
    (message,) = said(record)
    assert (message["dq_invalid_hash"], message["dq_hash_format_error"]) == (3, 3)
    assert message["dq.shop.hash_format_error"] == 3
    assert message["dq_clean_total"] == 7, "a row counts once"
    assert f"dq.shop.hash_format_error:3|c|#{TAGS}" in [*encoded(Change(record, {}))]


def test_a_rule_of_that_name_adds_to_it(store: OpsStore) -> None:
    metrics = {"invalid_hash": 3, "hash_format_error": 2}
    (message,) = said(replace(RECORD, metrics=metrics))
    assert (message["dq_invalid_hash"], message["dq_hash_format_error"]) == (3, 5)
    counts = tuple(RuleCount(name, name, "ERROR", n, n) for name, n in metrics.items())
    settle_batch(store, 0, {}, counts, rows=5)
    (family,) = (
        f for f in Readings(store).families() if f.metric.name == "dq_hash_format_error_total"
    )
    assert sum(n for _, n in family.samples) == 5
