"""Tables for a terminal."""

from __future__ import annotations

from headgate.terminal.report import aligned, counted


def test_words_stand_under_one_another_and_the_last_column_is_as_long_as_it_is():
    rows = [("RULE", "ROWS", "WHEN"), ("late", "1,204", "older than a day"), ("no_key", "3", "")]
    assert list(aligned(rows)) == [
        "RULE    ROWS   WHEN",
        "late    1,204  older than a day",
        "no_key  3",
    ]


def test_numbers_end_under_one_another_and_a_heading_needs_no_number():
    rows = [["orders", "planted", "ledger"], ["  a very long heading"], ["  ok", "1,000", "7"]]
    assert list(counted(rows)) == [
        "orders                 planted  ledger",
        "  a very long heading",
        "  ok                     1,000       7",
    ]
