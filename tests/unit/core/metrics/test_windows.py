from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import orjson
import pytest
from tests.support.metric_windows import FEW_ROWS, JOB, NOON, RECORD, SHAPE, event_time

from headgate.core.metrics.windows import (
    WindowSums,
    closes_before,
    digest,
    messages,
    record_of,
    restored,
    stored,
)

SIX = ["window_start", "env", "dc", "table_name", "topic_name", "dq_error_total"]
SUMS = WindowSums(10, {"negative": 3}, {"ERROR": 3}, (FEW_ROWS,), "r1")


def test_nothing_is_due_before_the_first_record() -> None:
    assert closes_before(SHAPE, None, None, NOON) is None


def test_a_window_is_due_once_event_time_is_a_watermark_past_its_end() -> None:
    last = NOON
    short, enough = (
        closes_before(SHAPE, event_time(14.999), last, NOON),
        closes_before(SHAPE, event_time(15), last, NOON),
    )
    assert short is not None
    assert enough is not None
    assert (event_time(0) < short, event_time(0) < enough) == (False, True)


def test_every_window_is_due_when_no_record_has_come_for_thirty_seconds() -> None:
    before = closes_before(SHAPE, event_time(0), NOON, event_time(30))
    assert before is not None
    assert before > NOON + timedelta(days=365_000)


def test_a_record_names_every_metric_of_its_table() -> None:
    record = record_of(SHAPE, NOON, SUMS, 1)
    assert (record.metrics, record.totals) == (
        {"negative": 3, "no_key": 0},
        {"ERROR": 3, "WARN": 0, "INFO": 0},
    )
    assert (record.clean, record.late, record.window_end) == (7, False, event_time(10))
    assert record.id == "quality-orders/2026-01-01T12:00:00.000Z/1"
    assert not record.again


@pytest.mark.parametrize("anew", [False, True])
def test_a_window_closed_again_is_late_unless_all_was_judged_anew(anew: bool) -> None:
    record = record_of(replace(SHAPE, anew=anew), NOON, SUMS, 2)
    assert (record.again, record.late) == (True, not anew)
    (message, *_) = messages(record)
    assert (message["sequence"], message["again"], message["late"]) == (2, True, not anew)


def test_a_record_comes_back_from_the_store_as_it_was() -> None:
    record = record_of(SHAPE, NOON, SUMS, 2)
    assert restored(orjson.loads(orjson.dumps(stored(record)))) == record


def test_the_digest_says_whether_the_sums_changed_and_nothing_else() -> None:
    zeros = replace(SUMS, metrics={"no_key": 0, "negative": 3}, severities={"ERROR": 3, "INFO": 0})
    assert digest(SUMS) == digest(zeros) == digest(replace(SUMS, revision="r2"))
    other = (replace(SUMS, rows=11), replace(SUMS, metrics={"negative": 4}))
    mended = replace(SUMS, verdicts=(replace(FEW_ROWS, failed=False),))
    assert len({digest(s) for s in (SUMS, *other, mended)}) == 4


def test_every_message_begins_with_the_six_fields_of_the_metrics_sink() -> None:
    found = messages(replace(RECORD, verdicts=(FEW_ROWS,)))
    assert [list(message)[:6] for message in found] == [SIX, SIX]
    assert len({message["id"] for message in found}) == 2


def test_a_window_as_json() -> None:
    (message,) = messages(RECORD)
    assert message == {
        "window_start": "2026-01-01T12:00:00.000Z",
        "env": "prod",
        "dc": "onprem",
        "table_name": "orders_onprem",
        "topic_name": "orders.events",
        "dq_error_total": 3,
        "dq_warn_total": 0,
        "dq_info_total": 0,
        "dq_rows_total": 10,
        "dq_clean_total": 7,
        "dq.shop.negative": 3,
        "dq.shop.no_key": 0,
        "dq_negative": 3,
        "dq_no_key": 0,
        "record": "window",
        "window_end": "2026-01-01T12:00:10.000Z",
        "job": JOB,
        "sequence": 1,
        "again": False,
        "late": False,
        "revision": "r1",
        "id": "quality-orders/2026-01-01T12:00:00.000Z/1",
    }


def test_a_verdict_as_json() -> None:
    _, message = messages(replace(RECORD, verdicts=(FEW_ROWS,)))
    told = {k: message[k] for k in ("aggregate", "measure", "group", "value", "min", "max")}
    assert told == {
        "aggregate": "enough",
        "measure": "row_count",
        "group": {"region": "north"},
        "value": 3.0,
        "min": 10.0,
        "max": None,
    }
    assert (message["failed"], message["dq_error_total"], message["dq_warn_total"]) == (True, 0, 1)
    assert message["id"] == f'{RECORD.id}/enough/{{"region":"north"}}'
