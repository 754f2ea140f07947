"""What sinks were told, added up: the last word on a window counts, and only this table's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headgate.demo.quality.comparison import ALL_WINDOWS
from headgate.demo.quality.counts import Named, of_datagrams, of_exposition, of_messages

CUSTOMER = Named("quality-taxi", "customer_onprem", "dq.cassandra", ("mismatch", "gone_total"))
TAGS = "env:prod,dc:onprem,table:customer_onprem,topic:t"


def window(start: str, sequence: int, mismatches: int, job: str = "quality-taxi") -> Any:
    return {
        "record": "window",
        "job": job,
        "window_start": start,
        "sequence": sequence,
        "late": sequence > 1,
        "dq_error_total": mismatches,
        "dq_rows_total": 10 * mismatches,
        "dq.cassandra.mismatch": mismatches,
    }


def test_a_window_said_again_counts_once_and_as_it_was_said_last() -> None:
    said = [
        window("a", 1, 3),
        window("a", 2, 5),
        window("a", 1, 3),
        window("b", 1, 4),
        window("b", 1, 4, job="quality-orders"),
        {**window("b", 1, 1), "record": "aggregate"},
    ]
    metrics, totals, windows = of_messages("topic", CUSTOMER, said)
    assert windows.counts == {"a": 50, "b": 40}
    assert metrics.counts == {"dq.cassandra.mismatch": 9, "dq.cassandra.gone_total": 0}
    assert totals.counts == {"ERROR": 9, "WARN": 0, "INFO": 0}


def test_the_windows_of_a_pair_are_those_of_arrival_so_their_sum_counts() -> None:
    pair = replace(CUSTOMER, is_pair=True)
    *_, windows = of_messages("topic", pair, [window("a", 1, 3), window("b", 1, 4)])
    assert windows.counts == {ALL_WINDOWS: 70}


def test_datagrams_add_up_and_those_of_others_do_not_count() -> None:
    datagrams = [
        f"dq.cassandra.mismatch:3|c|#{TAGS}\ndq_error_total:3|c|#{TAGS}",
        f"dq.cassandra.mismatch:2|c|#{TAGS}\ndq_error_total:1|c|#{TAGS},aggregate:rows",
        "dq.cassandra.mismatch:7|c|#table:orders_onprem",
        f"dq.cassandra.rows:12|g|#{TAGS}",
    ]
    metrics, totals = of_datagrams("DogStatsD", CUSTOMER, datagrams)
    assert metrics.counts["dq.cassandra.mismatch"] == 5
    assert totals.counts["ERROR"] == 3


def test_what_prometheus_scrapes_has_the_same_counts_under_its_own_names() -> None:
    labels = 'env="prod",dc="onprem",table="customer_onprem",topic="t"'
    text = f"""\
# HELP dq_mismatch_total Rows.
dq_mismatch_total{{{labels},rule="a"}} 3
dq_mismatch_total{{{labels},rule="b"}} 2
dq_mismatch_total{{table="orders_onprem",rule="b"}} 9
dq_gone_total{{{labels},rule="c"}} 1.0
dq_gone_total{{{labels},rule="counted_deletes"}} 8
dq_error_total{{{labels}}} 6
dq_rule_matches_total{{{labels},rule="a",severity="ERROR"}} 4
"""
    metrics, totals, rules = of_exposition("Prometheus", CUSTOMER, text)
    assert metrics.counts == {"dq.cassandra.mismatch": 5, "dq.cassandra.gone_total": 1}
    assert totals.counts["ERROR"] == 6
    assert rules.counts == {"a": 4}
