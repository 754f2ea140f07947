"""What the command line prints, whoever wrote it."""

from __future__ import annotations

import logging
import time

import pytest

from headgate.terminal.console import as_table, in_one_line, printable, stderr_log_handler

ODD = "fine\x1b[2A\rforged\u202e\nnext"


def test_what_others_wrote_cannot_move_the_cursor():
    assert printable(ODD) == "fine\\x1b[2A\\rforged\\u202e\nnext"
    assert in_one_line(ODD) == "fine\\x1b[2A\\rforged\\u202e\\nnext"
    assert printable("Zoë 東京 ✓") == "Zoë 東京 ✓"


def test_a_cell_is_one_line_whatever_stands_in_it():
    rows = [{"who": "ann", "why": ODD}, {"who": None, "why": 7}]
    for markdown, lines in ((False, 3), (True, 4)):
        table = as_table(rows, markdown=markdown)
        assert len(table.split("\n")) == lines
        assert all(char.isprintable() for char in table.replace("\n", ""))


def test_log_lines_have_their_time_in_utc_whatever_the_zone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        record = logging.makeLogRecord(
            {"created": 1_700_000_000.25, "msecs": 250.0, "msg": "hello"}
        )
        stderr_log_handler("%(message)s").handle(record)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert capsys.readouterr().err == "2023-11-14T22:13:20.250Z hello\n"
