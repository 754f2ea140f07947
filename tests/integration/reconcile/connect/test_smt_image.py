"""The worker file of the Docker image, run without Docker."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.request import urlopen

import pytest
from tests.support.services import RunningBroker

from headgate.core.runtime.java_build import build_plugins
from headgate.local.connect import ConnectServer
from headgate.local.service import Running

ROOT = Path(__file__).parents[4]


class ImageWorker(ConnectServer):
    """Our worker with the image's file; only address and plugin folder are this machine's."""

    def properties(self) -> str:
        text = (ROOT / "docker/connect.properties").read_text()
        text = re.sub(r"^listeners=.*$", f"listeners={self.url}", text, flags=re.M)
        return re.sub(r"^plugin.path=.*$", f"plugin.path={self.plugins}", text, flags=re.M)


@pytest.mark.slow
def test_the_images_worker_takes_its_settings_from_variables_and_finds_both_plugins(
    private_broker: RunningBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", private_broker.bootstrap)
    monkeypatch.setenv("CONNECT_GROUP", "connect-cluster-1")
    monkeypatch.setenv("CONNECT_ADVERTISED_HOST", "127.0.0.1")
    monkeypatch.setenv("CONNECT_REPLICATION", "1")
    plugins = build_plugins(ROOT / "java/connect-plugins").folder
    server = ImageWorker(tmp_path / "connect", private_broker.bootstrap, plugins)
    asked = f"{server.url}/connector-plugins?connectorsOnly=false"
    with Running(server), urlopen(asked) as answer:
        found = {plugin["class"] for plugin in json.load(answer)}
    assert {
        "headgate.connect.CassandraPollSource",
        "com.company.kafka.connect.smt.HashRowSMT",
    } <= found
    assert {"connect-configs", "connect-offsets", "connect-status"} <= set(
        private_broker.topics.names()
    )
