"""A reconciliation whose parts go away in turn; nothing is lost and every gap is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.faults.reconcile.scenario import (
    CASSANDRA,
    CONNECT,
    ENGINE,
    FAULTS,
    KAFKA,
    SMALL,
    run_reconcile_faults,
)

from headgate.config.settings import load_settings


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_cassandra_connect_kafka_and_the_engine_go_away_and_nothing_is_lost(tmp_path: Path):
    settings = load_settings(environ={"HEADGATE_HOME": str(tmp_path), "SPARK_MASTER": "local[2]"})
    report = run_reconcile_faults(settings, tmp_path, SMALL)
    assert [struck.what for struck in report.struck] == [*FAULTS]
    told = {struck.what: struck.told for struck in report.struck}
    assert "Cassandra is away" in " ".join(told[CASSANDRA]["hasher"])
    assert "metrics: paused" in told[CASSANDRA]["hasher"]
    assert "Kafka Connect does not answer" in " ".join(told[CONNECT]["connect"])
    assert told[KAFKA]["client"]
    assert told[ENGINE]["local"]
    assert report.compared.holds
    assert report.compared.planted["MISSING_ONPREM"] > 0
    assert report.keys == sum(report.compared.found.values())
