"""The documents' own rules.yaml as a stream: the customer table is judged as its messages come."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from tests.support.oracle import read_topic
from tests.support.pipeline import ROOT, Pipeline, ProducerRecord, create_topic, produce
from tests.support.streams import engine_process, query_engine, run_command

from headgate.certify.certificate import broken
from headgate.local.process import wait_until

# Two engines start in processes of their own, and a key waits 15 seconds for its other side.
pytestmark = pytest.mark.slow
JOB, TOPICS = (
    "reconcile-customer",
    {"onprem": "onprem.customer.events", "cloud": "cloud.customer.hash"},
)
A, B = "a" * 64, "b" * 64


@pytest.fixture
def customer(pipeline: Pipeline) -> Pipeline:
    """The shipped rule set over topics of this test, with a metrics topic of its own."""
    settings = pipeline.settings
    text = (ROOT / "rules.yaml").read_text("utf-8")
    (settings.root / "rules.yaml").write_text(text.replace("topic: ", f"topic: {pipeline.name}."))
    for topic in TOPICS.values():
        create_topic(str(settings.bootstrap_servers), f"{pipeline.name}.{topic}", 2, 1_048_588)
        create_topic(str(settings.bootstrap_servers), f"{pipeline.name}.{topic}.dlq", 1, 1_048_588)
    metrics = f"{pipeline.name}.dq.metrics"
    create_topic(str(settings.bootstrap_servers), metrics, 1, 1_048_588)
    pipeline.settings = settings.model_copy(
        update={"metrics_topic": metrics, "trigger_seconds": 1.0}
    )
    return pipeline


def send(customer: Pipeline, side: str, *rows: Mapping[str, object]) -> None:
    now = datetime.now(UTC).isoformat()
    stamp = int(datetime.now(UTC).timestamp() * 1000)
    records = [
        ProducerRecord(
            json.dumps({"ts": now, **row}).encode(),
            str(row["customer_id"]).encode(),
            timestamp=stamp,
        )
        for row in rows
    ]
    produce(str(customer.settings.bootstrap_servers), f"{customer.name}.{TOPICS[side]}", records)


def onprem(key: str, hash_: str = A, action: str = "UPSERT") -> dict[str, object]:
    return {"customer_id": key, "action": action, "hash_onprem": hash_}


def cloud(key: str, hash_: str | None = A) -> dict[str, object]:
    return {"customer_id": key, "hash_cloud": hash_}


def statuses(customer: Pipeline) -> dict[str, str]:
    """What anybody reads while the job runs: `headgate sql` on the engine's permanent view."""
    views = query_engine(customer, "SHOW VIEWS")
    if "dq_results_customer" not in {row["viewName"] for row in views}:
        return {}  # the job makes its tables and the view when it starts
    rows = query_engine(customer, "SELECT pk, dq_status FROM dq_results_customer")
    return {row["pk"]: row["dq_status"] for row in rows}


def closed_windows(customer: Pipeline) -> int:
    """Records of the metrics topic that count a mismatch of the customer table."""
    records = read_topic(
        str(customer.settings.bootstrap_servers), str(customer.settings.metrics_topic)
    )
    values = [json.loads(record.value or b"{}") for record in records]
    return sum(int(value.get("dq.cassandra.hash_mismatch", 0)) for value in values)


def test_the_documents_pair_is_judged_continuously_and_survives_a_kill(customer: Pipeline) -> None:
    with engine_process(customer) as first:
        run_command(customer, "job", "start", JOB)
        send(customer, "onprem", *(onprem(key) for key in ("matches", "differs", "late")))
        send(customer, "onprem", onprem("deleted", action="DELETE"), onprem("odd", "no hash"))
        send(customer, "cloud", cloud("matches"), cloud("differs", B), cloud("odd"), cloud("stray"))
        expected = {
            "matches": "MATCH", "differs": "MISMATCH", "late": "MISSING_CLOUD",
            "deleted": "DELETE_EVENT", "odd": "INVALID_HASH", "stray": "MISSING_ONPREM",
        }  # fmt: skip
        # PENDING first, then settled by itself: nobody runs anything again.
        assert wait_until(lambda: statuses(customer) == expected, 120), statuses(customer)
        os.killpg(first.pid, signal.SIGKILL)
        first.wait(30)
    send(customer, "cloud", cloud("late"), cloud("differs"))
    send(customer, "onprem", onprem("second"))
    with engine_process(customer):
        send(customer, "cloud", cloud("second"))
        expected |= {"late": "LATE_MATCH", "differs": "LATE_MATCH", "second": "MATCH"}
        assert wait_until(lambda: statuses(customer) == expected, 120), statuses(customer)
        assert wait_until(lambda: closed_windows(customer) == 1, 90)
        run_command(customer, "job", "stop", JOB)
    assert broken(customer.certify()) == ()
    read = sum(row.read for row in customer.store.ledger(JOB))
    assert read == sum(
        len(read_topic(str(customer.settings.bootstrap_servers), f"{customer.name}.{topic}"))
        for topic in TOPICS.values()
    )
