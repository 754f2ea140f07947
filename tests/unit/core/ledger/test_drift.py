"""Drift counts: per batch and field once, however often the batch is tried."""

from __future__ import annotations

from datetime import timedelta

from tests.support.clock import START
from tests.support.ledger_rows import intent, topic_range

from headgate.core.ledger.counts import LONGEST_NAME
from headgate.core.ledger.model import DriftKind, FieldDrift, Intent
from headgate.core.ledger.ops_store import OpsStore

UNKNOWN, MISSING = DriftKind.UNKNOWN, DriftKind.MISSING
JOB = "bronze-orders"


def batch(start: int) -> Intent:
    return intent(topic_range({"0": start}, {"0": start + 10}))


def counts(store: OpsStore) -> dict[tuple[str, str], int]:
    return {(d.kind.value, d.field): d.records for d in store.drift(JOB)}


def test_a_batch_that_is_tried_again_counts_once(store: OpsStore) -> None:
    first = store.begin(batch(0))
    store.note_drift(first, [FieldDrift(UNKNOWN, "tip", 3), FieldDrift(MISSING, "name", 1)])
    amended = store.amend(first, ("r2",))
    store.note_drift(amended, [FieldDrift(UNKNOWN, "tip", 3)])
    assert counts(store) == {("unknown", "tip"): 3, ("missing", "name"): 1}


def test_batches_add_up_and_say_when_the_field_was_seen(store: OpsStore) -> None:
    later = START + timedelta(hours=1)
    for at, start, records in ((START, 0, 3), (later, 10, 4)):
        of = Intent(None, JOB, 1, batch(start).range, ("r",), at, 0)
        store.note_drift(of, [FieldDrift(UNKNOWN, "tip", records)])
    (tip,) = store.drift(JOB)
    assert (tip.records, tip.batches, tip.first_seen, tip.last_seen) == (7, 2, START, later)
    assert store.drift("bronze-others") == ()


def test_the_same_name_may_be_unknown_once_and_missing_later(store: OpsStore) -> None:
    store.note_drift(batch(0), [FieldDrift(UNKNOWN, "tip", 1)])
    store.note_drift(batch(10), [FieldDrift(MISSING, "tip", 2)])
    assert counts(store) == {("missing", "tip"): 2, ("unknown", "tip"): 1}


def test_a_name_of_any_length_is_kept_shortened(store: OpsStore) -> None:
    store.note_drift(batch(0), [FieldDrift(UNKNOWN, "x" * 10_000, 1)])
    (found,) = store.drift(JOB)
    assert len(found.field) == LONGEST_NAME
    assert found.field.endswith("…")
