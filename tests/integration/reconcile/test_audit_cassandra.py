"""The audit topic in Cassandra: every change once, however often it is told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.support.pipeline import ProducerRecord, create_topic, produce

from headgate.reconcile.cassandra.audit import Copied, copy_audit
from headgate.reconcile.cassandra.session import Place, session_at

if TYPE_CHECKING:
    from tests.support.services import RunningBroker

    from headgate.local.cassandra import CassandraServer
    from headgate.local.service import Running

TABLE, TOPIC = "told.audit", "told-audit"


def change(pk: str, status: str, table: str = "told") -> ProducerRecord:
    told = {"id": f"{pk}-{status}", "table": table, "pk": pk, "status": status}
    return ProducerRecord(
        json.dumps({**told, "audit_ts": "2026-01-10T12:00:00Z"}).encode(), pk.encode()
    )


@pytest.mark.slow
def test_changes_that_are_told_twice_are_written_once(
    broker: RunningBroker, cassandra: Running[CassandraServer]
) -> None:
    server = cassandra.service
    create_topic(broker.bootstrap, TOPIC, 2, 1_048_588)
    changes = [change(str(n), "MISMATCH") for n in range(20)]
    others = [ProducerRecord(b"no change"), change("0", "ZOMBIE", "another")]
    produce(broker.bootstrap, TOPIC, [*changes, *changes[:5], *others])
    with session_at(Place(("127.0.0.1",), server.port, "datacenter1", None, None)) as session:

        def copied(group: str) -> Copied:
            return copy_audit(
                session, broker.bootstrap, TOPIC, TABLE, group, pair="told", once=True
            )

        session.execute(
            "CREATE KEYSPACE IF NOT EXISTS told WITH replication ="
            " {'class': 'SimpleStrategy', 'replication_factor': 1}"
        )
        first, again = (copied(group) for group in ("told", "told-anew"))
        assert (first.written, first.skipped) == (again.written, again.skipped) == (25, 2)
        rows = session.execute(f"SELECT pk, status FROM {TABLE}")
        assert len(rows) == 20
        assert copied("told").written == 0
