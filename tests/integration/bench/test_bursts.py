"""A stream under bursts, a broker and an engine killed in the middle, held against a batch run."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.faults.stream import run_bursts

from headgate.config.settings import Settings

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_bursts_and_kills_leave_what_a_batch_run_leaves(tmp_path: Path) -> None:
    settings = Settings(root=ROOT, home=tmp_path, dataset="taxi")

    report = run_bursts(settings, bursts=10, seconds=100.0, folder=tmp_path / "results")

    assert [struck.what for struck in report.played.struck] == ["broker", "engine"]
    assert all(struck.under_way for struck in report.played.struck)
    assert report.faults == ()
    assert report.played.whole.records > 10 * 2_000
