from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from headgate.config.settings import load_settings
from headgate.core.kafka import topics
from headgate.core.kafka.topics import (
    Topics,
    TopicSpec,
    advise_when_away,
    read_cluster_id,
    shared_admin,
)
from headgate.errors import UnavailableError

NOBODY = "127.0.0.1:1"
OWN = "127.0.0.1:2"


@dataclass
class Metadata:
    cluster_id: str
    brokers: dict[int, str] = field(default_factory=lambda: {1: "here"})
    topics: dict[str, str] = field(default_factory=dict[str, str])


@dataclass
class Client:
    """An admin client of a broker whose cluster the test decides."""

    cluster: str
    created: list[object] = field(default_factory=list[object])

    def list_topics(self, *, timeout: float) -> Metadata:
        return Metadata(self.cluster)

    def create_topics(self, new: list[object]) -> dict[str, object]:
        self.created += new
        raise UnavailableError("the test ends here")


@pytest.fixture
def stack(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose embedded broker is said to listen at OWN."""
    data = project / ".headgate" / "kafka" / "data"
    data.mkdir(parents=True)
    (data / "meta.properties").write_text("#\nnode.id=1\nversion=1\ncluster.id=own-cluster\n")
    (project / ".headgate" / "endpoints.env").write_text(f"BOOTSTRAP_SERVERS={OWN}\n")
    monkeypatch.setattr(topics, "_accepts", lambda server: True)
    load_settings(project, {})
    return project


def topics_of(bootstrap: str, cluster: str) -> tuple[Topics, Client]:
    asked, client = Topics(bootstrap), Client(cluster)
    asked._client = cast("topics._Admin", client)
    return asked, client


def test_clients_of_one_broker_are_one_client() -> None:
    assert shared_admin(NOBODY, 1.0) is shared_admin(NOBODY, 1.0)
    assert shared_admin(NOBODY, 1.0) is not shared_admin(NOBODY, 2.0)


def test_a_broker_of_another_cluster_at_the_own_address_is_refused_before_a_write(stack):
    asked, client = topics_of(OWN, "another-cluster")
    for use in (asked.need, asked.names, lambda: asked.create([TopicSpec("t", 1, 1)])):
        with pytest.raises(UnavailableError, match="is not this stack's own") as refused:
            use()
    assert "another-cluster" in refused.value.why
    assert "own-cluster" in refused.value.why
    assert client.created == []


def test_the_own_broker_and_any_broker_elsewhere_are_used(stack):
    for bootstrap, cluster in ((OWN, "own-cluster"), (NOBODY, "another-cluster")):
        asked, client = topics_of(bootstrap, cluster)
        with pytest.raises(UnavailableError, match="the test ends here"):
            asked.create([TopicSpec("t", 1, 1)])
        assert len(client.created) == 1


def test_a_broker_that_was_never_started_has_no_cluster(tmp_path):
    assert read_cluster_id(tmp_path) is None


def test_only_an_embedded_broker_is_started_by_local_up(stack):
    assert "headgate local up" in advise_when_away(OWN)
    assert "headgate local up" not in advise_when_away(NOBODY)
    assert "env/embedded.env" in advise_when_away(NOBODY)
