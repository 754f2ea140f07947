"""`headgate connect` against a real worker, broker and Cassandra."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result
from tests.support.cassandra_session import KEYSPACE, open_session

from headgate.cli.main import cli
from headgate.core.runtime.ports import any_port
from headgate.errors import HeadgateError
from headgate.local.process import wait_until
from headgate.reconcile.cassandra.connector import OWN_NAME

TABLE = (
    "CREATE TABLE IF NOT EXISTS cloud_keyspace.business_table (pk text PRIMARY KEY, col1 text,"
    " col2 decimal, col3 timestamp, col4 double, last_updated timestamp)"
)


@pytest.fixture
def command(broker, cassandra, connect, tmp_path):
    environ = {
        **dict.fromkeys(("TOPIC", "DLQ_TOPIC"), ""),
        **cassandra.service.endpoints(),
        **connect.service.endpoints(),
        "BROKER": "kafka",
        "BOOTSTRAP_SERVERS": broker.bootstrap,
        "HEADGATE_HOME": str(tmp_path),
    }

    def run(*words: str, **changes: str) -> Result:
        return CliRunner(env={**environ, **changes}).invoke(cli, ["-o", "json", *words])

    return run


def data(result: Result):
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def nothing_is_deployed(command) -> bool:
    """A worker forgets a connector some moments after it was told to."""
    return wait_until(lambda: data(command("connect", "list"))["items"] == [], 60)


def all_run(command) -> bool:
    """The connector and a task at least, once the worker has shared them out."""
    rows = data(command("connect", "status", OWN_NAME))["items"]
    return len(rows) >= 2 and {row["state"] for row in rows} == {"RUNNING"}


def error(result: Result) -> HeadgateError:
    assert isinstance(result.exception, HeadgateError)
    return result.exception


def test_a_tables_connector_is_deployed_once_watched_and_deleted(command, cassandra, tmp_path):
    with open_session(cassandra.service.port) as cloud:
        cloud.execute(f"CREATE KEYSPACE IF NOT EXISTS cloud_keyspace {KEYSPACE}")
        cloud.execute(TABLE)
    made = data(command("topics", "create", "--table", "business"))["items"]
    assert {"topic1", "topic2", "dlq-cassandra-cloud", "dq_reconciliation_audit"} <= {
        item["topic"] for item in made
    }
    dry = data(command("connect", "deploy", "business", "--dry-run"))
    assert (dry["connector"], dry["action"]) == (OWN_NAME, "create")
    assert nothing_is_deployed(command)

    deploy = ("connect", "deploy", "--timeout", "240")
    assert data(command(*deploy, "business"))["action"] == "create"
    try:
        assert data(command(*deploy, "business"))["action"] == "nothing"
        assert wait_until(lambda: all_run(command), 120)

        file = tmp_path / "mine.json"
        rendered = data(command("connect", "render", "business"))
        rendered["config"]["poll.interval.ms"] = "700"
        file.write_text(json.dumps({"name": rendered["name"], "config": rendered["config"]}))
        changed = data(command(*deploy, str(file)))
        assert [c["key"] for c in changed["changes"]] == ["poll.interval.ms"]

        again = data(command("connect", "restart", OWN_NAME, "--all", "--timeout", "240"))["items"]
        assert again[0]["state"] == "RUNNING"
        assert error(command("connect", "delete", OWN_NAME)).exit_code == 2
    finally:
        assert command("connect", "delete", OWN_NAME, "--yes").exit_code == 0
    assert nothing_is_deployed(command)


def test_a_wrong_configuration_is_refused_field_by_field(command, tmp_path):
    rendered = data(command("connect", "render", "business"))
    config = rendered["config"] | {"tasks.max": "many", "port": "x"}
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps({"name": "wrong", "config": config}))
    refused = error(command("connect", "deploy", str(file)))
    assert refused.exit_code == 3
    assert "tasks.max" in refused.why
    assert "port" in refused.why
    assert nothing_is_deployed(command)


def test_a_plugin_that_is_not_there_is_named(command, tmp_path):
    file = tmp_path / "other.json"
    config = {"connector.class": "com.example.Nothing", "topics": "x"}
    file.write_text(json.dumps({"name": "other", "config": config}))
    refused = error(command("connect", "deploy", str(file)))
    assert refused.exit_code == 3
    assert "com.example.Nothing" in refused.why


def test_our_plugins_are_loaded_from_folders_of_their_own(command):
    found = {item["class"] for item in data(command("connect", "plugins"))["items"]}
    assert "com.company.kafka.connect.smt.HashRowSMT" in found
    assert "headgate.connect.CassandraPollSource" in found


def test_a_worker_that_is_away_is_exit_code_8(command):
    away = f"http://127.0.0.1:{any_port()}"
    assert error(command("connect", "list", KAFKA_CONNECT_URL=away)).exit_code == 8
