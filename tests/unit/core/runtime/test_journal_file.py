"""Journals on disk: what is there is whole, and one process writes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from headgate.core.runtime import journal as journal_file
from headgate.errors import ConflictError, OperationError

NOON = datetime(2026, 3, 1, 12, 0, 0, 5, tzinfo=UTC)


def test_a_journal_is_read_back_as_it_was_written(tmp_path):
    file = tmp_path / journal_file.file_name("orders", NOON)
    journal_file.begin(file, {"items": [1, 2]})
    journal_file.append(file, [{"announced": [1]}, {"closed": True}])
    assert journal_file.read(file) == ({"items": [1, 2]}, [{"announced": [1]}, {"closed": True}])
    assert [one.name for one in tmp_path.iterdir()] == ["orders-20260301T120000000005.jsonl"]


def test_names_sort_by_time_whatever_the_zone():
    east = NOON.astimezone(timezone(timedelta(hours=9)))
    assert journal_file.file_name("a", east) == journal_file.file_name("a", NOON)
    assert journal_file.file_name("a", NOON) < journal_file.file_name("a", NOON.replace(hour=13))


def test_a_line_that_a_kill_cut_off_is_left_out_and_taken_out(tmp_path):
    file = tmp_path / "one.jsonl"
    journal_file.begin(file, {"items": []})
    journal_file.append(file, [{"n": 1}])
    with file.open("ab") as out:
        out.write(b'{"n": 2')
    assert journal_file.read(file) == ({"items": []}, [{"n": 1}])
    journal_file.cut_off(file)
    journal_file.append(file, [{"n": 3}])
    assert journal_file.read(file)[1] == [{"n": 1}, {"n": 3}]


def test_nothing_to_tell_writes_nothing_and_a_missing_folder_is_said(tmp_path):
    journal_file.append(tmp_path / "nowhere" / "one.jsonl", [])
    with pytest.raises(OperationError, match="cannot be written"):
        journal_file.append(tmp_path / "nowhere" / "one.jsonl", [{"n": 1}])


def test_a_second_holder_is_refused_until_the_first_has_gone(tmp_path):
    lock = tmp_path / "below" / "one.lock"
    with (
        journal_file.held_alone(lock, "busy"),
        pytest.raises(ConflictError, match="busy"),
        journal_file.held_alone(lock, "busy"),
    ):
        pass
    with journal_file.held_alone(lock, "busy"):
        assert lock.is_file()
