"""Where the Confluent target goes is what the documents' variables say, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.config.settings import load_settings
from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import SettingsError
from headgate.filters.targets.confluent_api import place_of
from headgate.filters.targets.deployment import open_targets

VARIABLES = {
    "CONFLUENT_CLOUD_API_KEY": "KEY",
    "CONFLUENT_CLOUD_API_SECRET": "canary-secret",
    "CONFLUENT_ORGANIZATION_ID": "org-1",
    "CONFLUENT_ENVIRONMENT_ID": "env-12345",
    "CONFLUENT_KAFKA_CLUSTER_ID": "lkc-12345",
    "CONFLUENT_FLINK_COMPUTE_POOL_ID": "lfcp-12345",
    "CONFLUENT_FLINK_API_ENDPOINT": "https://flink.region.example",
}


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def test_s3_43_the_variables_say_where_statements_live(
    project: Path, given: pytest.MonkeyPatch
) -> None:
    place = place_of(load_settings(project))
    assert (place.key, place.secret) == ("KEY", "canary-secret")
    assert (place.pool, place.cluster) == ("lfcp-12345", "lkc-12345")
    assert place.statements == (
        "https://flink.region.example/sql/v1/organizations/org-1/environments/env-12345/statements"
    )
    assert "canary" not in repr(place)


@pytest.mark.parametrize("name", sorted(VARIABLES))
def test_each_variable_that_is_missing_is_named(
    project: Path, given: pytest.MonkeyPatch, name: str
) -> None:
    given.delenv(name)
    with pytest.raises(SettingsError, match=name):
        place_of(load_settings(project))


def test_the_key_never_travels_over_plain_http(project: Path, given: pytest.MonkeyPatch) -> None:
    given.setenv("CONFLUENT_FLINK_API_ENDPOINT", "http://flink.region.example")
    with pytest.raises(SettingsError, match="not https"):
        place_of(load_settings(project))


def test_confluent_is_a_target_once_its_endpoint_is_given(
    project: Path, given: pytest.MonkeyPatch
) -> None:
    with OpsStore.open(f"sqlite:///{project / 'ops.db'}") as store:
        both = open_targets(load_settings(project), store)
        assert sorted(both) == ["confluent", "engine"]
        getattr(both["confluent"], "close", lambda: None)()
        given.delenv("CONFLUENT_FLINK_API_ENDPOINT")
        assert sorted(open_targets(load_settings(project), store)) == ["engine"]
