"""Records of the audit topic as rows of Cassandra."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from headgate.feeds.audit import COLUMNS, insert_cql, row_of, table_cql

TOLD = {
    "id": "9f",
    "table": "business",
    "pk": "1",
    "status": "MISMATCH",
    "onprem_hash": "aa",
    "cloud_hash": "bb",
    "audit_ts": "2026-01-10T12:15:03.120000Z",
    "onprem_version": "2026-01-10T12:00:00.000000Z",
    "late": False,
}


def test_a_change_is_a_row_with_its_times() -> None:
    row = row_of(json.dumps(TOLD).encode(), "business")
    assert row is not None
    found = dict(zip(COLUMNS, row, strict=True))
    assert found["audit_ts"] == datetime(2026, 1, 10, 12, 15, 3, 120_000, tzinfo=UTC)
    assert (found["pk"], found["status"], found["previous"]) == ("1", "MISMATCH", None)


def test_what_is_no_change_is_no_row() -> None:
    for value in (None, b"", b"no json", b"[]", b"1", b'{"pk": "1"}', b'{"audit_ts": "soon"}'):
        assert row_of(value, "business") is None


def test_a_change_of_another_pair_on_the_same_topic_is_no_row() -> None:
    assert row_of(json.dumps({**TOLD, "table": "orders"}).encode(), "business") is None
    nameless = {name: value for name, value in TOLD.items() if name != "table"}
    assert row_of(json.dumps(nameless).encode(), "business") is None


def test_the_table_is_keyed_so_that_a_change_is_written_once() -> None:
    assert "PRIMARY KEY (pk, audit_ts, id)" in table_cql("dq.audit")
    assert insert_cql('dq.au"dit').startswith('INSERT INTO "dq"."au""dit" (pk, audit_ts, id,')
    assert insert_cql("dq.audit").count("?") == len(COLUMNS)
