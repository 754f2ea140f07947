from __future__ import annotations

from dataclasses import replace

from tests.support.metric_windows import FEW_ROWS, RECORD

from headgate.core.metrics.delivery import Change
from headgate.core.metrics.sinks import DATAGRAM_BYTES, encoded, named, packed, tag

TAGS = "env:prod,dc:onprem,table:orders_onprem,topic:orders.events"


def test_a_window_is_its_totals_and_the_metrics_that_counted_something() -> None:
    assert list(encoded(Change(RECORD, {}))) == [
        f"dq.shop.negative:3|c|#{TAGS}",
        f"dq_error_total:3|c|#{TAGS}",
        f"dq_warn_total:0|c|#{TAGS}",
        f"dq_info_total:0|c|#{TAGS}",
        f"dq_rows_total:10|c|#{TAGS}",
        f"dq_clean_total:7|c|#{TAGS}",
    ]


def test_a_late_window_is_what_came_to_it() -> None:
    late = replace(RECORD, rows=12, metrics={"negative": 4, "no_key": 0}, sequence=2, late=True)
    assert list(encoded(Change(late, RECORD.counts()))) == [
        f"dq.shop.negative:1|c|#{TAGS}",
        f"dq_rows_total:2|c|#{TAGS}",
        f"dq_clean_total:1|c|#{TAGS}",
    ]


def test_a_metric_that_a_new_revision_no_longer_has_is_taken_back() -> None:
    gone = {**RECORD.counts(), "dq.shop.gone": 5}
    assert list(encoded(Change(RECORD, gone))) == [f"dq.shop.gone:-5|c|#{TAGS}"]


def test_a_verdict_is_a_value_and_a_flag() -> None:
    record = replace(RECORD, verdicts=(FEW_ROWS, replace(FEW_ROWS, value=None, group=None)))
    assert list(encoded(Change(record, RECORD.counts()))) == [
        f"dq.shop.enough:3|g|#{TAGS},region:north",
        f"dq.shop.enough.failed:1|g|#{TAGS},region:north",
        f"dq.shop.enough.failed:1|g|#{TAGS}",
    ]


def test_signs_that_would_cut_a_line_do_not_get_into_it() -> None:
    assert tag("topic", "a|b,c#d\ne f") == "topic:a_b_c_d_e_f"
    assert tag("re:gion", "é") == "re_gion:é"
    assert named("dq.x:1|c\n#é") == "dq.x_1_c___"
    assert len(tag("t", "x" * 999)) == 202


def test_datagrams_are_filled_and_never_too_large() -> None:
    lines = [f"metric_{n}:{n}|c" for n in range(500)]
    datagrams = list(packed(iter(lines)))
    assert b"\n".join(datagrams).decode().splitlines() == lines
    assert all(len(d) <= DATAGRAM_BYTES for d in datagrams)
    assert all(len(d) > DATAGRAM_BYTES - 30 for d in datagrams[:-1])
    assert list(packed(iter(["x" * 2000, "y"]))) == [b"x" * 2000, b"y"]
