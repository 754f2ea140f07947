"""Filters under load while every part is killed in turn: nothing is lost, and nothing happens twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench.faults.filters import FAULTS, SMALL, run_filter_faults

from headgate.config.settings import load_settings
from headgate.demo.own_home import SHORT_LIVED

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_each_consumer_has_each_of_its_events_once_whoever_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_JAVA_OPTIONS", SHORT_LIVED["SPARK_JAVA_OPTIONS"])
    settings = load_settings(ROOT, {"HEADGATE_HOME": str(tmp_path / "home")})
    report = run_filter_faults(settings, tmp_path, SMALL, tuple(FAULTS), print)
    assert report.faults == ()
    assert [one.what for one in report.struck] == list(FAULTS)
    for proof in report.proofs:
        assert proof.counts.expected == proof.counts.consumer > 0
        assert (proof.missing, proof.unexpected) == ((), ())
    assert report.on_source - report.source_repeats == report.events
    assert sum(report.outcomes.values()) == report.on_source
    assert json.loads((tmp_path / "filter_faults.json").read_text())["faults"] == []
