"""What batches count on a real broker, a UDP listener and an HTTP receiver."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.conftest import RunningBroker
from tests.integration.test_metrics_sinks import agent, consumed, heard, receiver, settings
from tests.support.metric_windows import SHAPE
from tests.unit.metrics.test_batches import TOLD, counted

from headgate.engine.metrics_sinks import sinks_of
from headgate.metrics.emit import Emitter
from headgate.metrics.sinks import Deliverer
from headgate.store.ops import OpsStore

# Fixtures, which pytest finds by their names in this module.
__all__ = ["agent", "receiver"]
pytestmark = pytest.mark.integration


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OpsStore]:
    with OpsStore.open(f"sqlite:///{tmp_path / 'ops.db'}") as store:
        yield store


def test_all_sinks_say_what_batches_counted(
    broker: RunningBroker,
    store: OpsStore,
    agent: socket.socket,
    receiver: tuple[str, list[dict[str, Any]], list[int]],
) -> None:
    topic = broker.new_topic(prefix="batches")
    push_url, taken, _ = receiver
    address = f"127.0.0.1:{agent.getsockname()[1]}"
    more = {"dogstatsd_address": address, "metrics_push_url": push_url}
    deliverer = Deliverer(store, sinks_of(settings(broker.bootstrap, topic, **more)))
    Emitter(store, SHAPE, lambda _: {})
    counted(store)
    counted(store, 23)
    assert deliverer.deliver_now() == (6, {})
    deliverer.close()
    twice = {name: 2 * n for name, n in TOLD.items()}
    assert heard(agent) == twice
    records = consumed(broker.bootstrap, topic)
    assert [value for _, value, _ in records] == taken
    assert {name: sum(value[name] for value in taken) for name in TOLD} == twice
    assert [headers["headgate.id"] for _, _, headers in records] == [one["id"] for one in taken]
    assert {key for key, _, _ in records} == {"orders_onprem"}
