"""What counts as healthy: a lease that is renewed, an answer that only the right service gives."""

from __future__ import annotations

import os
import struct

import pytest

from headgate.config.settings import Settings
from headgate.core.engine.lease import NAME, this_engine
from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import UnavailableError
from headgate.local import cassandra
from headgate.local.health import Health, HttpAnswer, _lease_fault, away_error
from headgate.local.state import BROKER, EngineFile

DENIED = b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>"
BUCKETS = b"<ListAllMyBucketsResult xmlns='http://s3.amazonaws.com/doc/2006-03-01/'/>"


@pytest.mark.parametrize(
    ("answer", "healthy"),
    [
        (HttpAnswer(403, "4442587FB7D0A2F9", b""), True),
        (HttpAnswer(307, "4442587FB7D0A2F9", b""), True),
        (HttpAnswer(403, None, DENIED), True),
        (HttpAnswer(200, None, BUCKETS), True),
        (HttpAnswer(200, None, b"<html>It works</html>"), False),
        (HttpAnswer(404, None, b"not found"), False),
        (HttpAnswer(403, None, b"forbidden"), False),
        (HttpAnswer(503, "4442587FB7D0A2F9", DENIED), False),
    ],
)
def test_only_an_object_store_is_taken_for_one(answer, healthy):
    assert answer.is_object_store == healthy


@pytest.mark.parametrize(
    ("answer", "healthy"),
    [
        (HttpAnswer(200, None, b'{"defaults": {}, "overrides": {}}'), True),
        (HttpAnswer(401, None, b'{"error": {"code": 401, "type": "NotAuthorized"}}'), True),
        (HttpAnswer(403, None, DENIED), False),
        (HttpAnswer(200, None, b"<html>It works</html>"), False),
        (HttpAnswer(404, None, b""), False),
        (HttpAnswer(500, None, b'{"defaults": {}}'), False),
    ],
)
def test_only_a_catalog_is_taken_for_one(answer, healthy):
    assert answer.is_catalog == healthy


def test_an_engine_works_only_while_its_own_lease_is_renewed(tmp_path):
    settings = Settings.model_validate({"home": tmp_path})
    engine = EngineFile(pid=os.getpid(), connect_port=1, state="ready")
    with OpsStore.open(settings.ops_store_url) as store:
        assert "its lease has run out" in _lease_fault(settings, engine)
        lease = store.acquire(NAME, this_engine(), 15.0)
        assert lease is not None
        assert _lease_fault(settings, engine) == ""
        other = engine.model_copy(update={"pid": engine.pid + 1})
        assert "another engine holds the lease" in _lease_fault(settings, other)
        store.renew(lease, -1.0)
        assert "its lease has run out" in _lease_fault(settings, engine)


def test_local_up_is_advised_for_embedded_services_only():
    away = [Health(BROKER, False, None, "does not answer")]
    outside = Settings.model_validate({"broker": "kafka", "bootstrap_servers": "there:9092"})
    assert "headgate local up" in away_error(Settings.model_validate({}), away).fix
    refused = away_error(outside, away)
    assert isinstance(refused, UnavailableError)
    assert "headgate local up" not in refused.fix
    assert "env/embedded.env" in refused.fix


def text(value: str) -> bytes:
    return struct.pack(">H", len(value)) + value.encode()


def test_a_clusters_name_is_read_from_the_answer_of_its_node():
    names = text("system") + text("local") + text("cluster_name")
    head = struct.pack(">iii", 2, 1, 1) + names + struct.pack(">H", 0x0D)
    assert (
        cassandra._only_value(head + struct.pack(">ii", 1, 6) + b"it\xc3\xa9!!"[:6]) == "it\u00e9!!"
    )
    assert cassandra._only_value(head + struct.pack(">i", 0) + b"\0\0\0\0") is None
    assert cassandra._only_value(struct.pack(">iii", 1, 0, 0)) is None
