"""When in its stream a batch came is told by the commit of its states."""

from __future__ import annotations

import pytest

from headgate.reconcile.job.cross_window import Moment, moment_of


@pytest.mark.parametrize("moment", [Moment(0, 0), Moment(1, 2, 0), Moment(1_000, 2_000, 3_000)])
def test_a_moment_is_read_as_it_was_told(moment: Moment) -> None:
    assert moment_of(moment.counters) == moment


def test_a_commit_of_records_alone_tells_none() -> None:
    assert moment_of(None) is None
    assert moment_of({"deletes": 1}) is None
