"""`headgate connect render`: the file, what is made for it, and no password on any screen."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headgate.cli.connect import REFERRED, specs_of
from headgate.cli.main import cli
from headgate.cli.topics import rule_specs
from headgate.core.kafka.connect_rest import Connector
from headgate.errors import UnavailableError
from headgate.local.connect import ALLOWED, ConnectServer
from headgate.quality.spec.loader import load_rules
from headgate.quality.spec.reconcile_section import Rows
from headgate.reconcile.cassandra.connector import documents_connector

ROOT = Path(__file__).parents[3]
CANARY = "canary-7f3"
PLACE = {
    "CASSANDRA_CONTACT_POINTS": "10.0.0.5",
    "CASSANDRA_USER": "reader",
    "CASSANDRA_PASSWORD": CANARY,
    "BROKER": "kafka",
    "BOOTSTRAP_SERVERS": "kafka:9092",
}


def run(*words: str, **environ: str) -> Result:
    return CliRunner(env={**PLACE, **environ}).invoke(cli, words)


@pytest.mark.parametrize("form", ["text", "json", "yaml"])
def test_a_rendered_connector_refers_to_its_password(form):
    done = run("-o", form, "connect", "render", "business")
    assert done.exit_code == 0, done.output
    assert CANARY not in done.output
    assert REFERRED in done.output


@pytest.mark.parametrize("form", ["text", "json", "yaml"])
def test_a_password_in_a_file_is_masked_when_it_is_shown(form, tmp_path):
    file = tmp_path / "mine.json"
    secrets = {"password": CANARY, "dlq.producer.sasl.jaas.config": f"x {CANARY}"}
    file.write_text(json.dumps({"name": "mine", "config": {"username": "reader", **secrets}}))
    done = run("-o", form, "connect", "render", str(file))
    assert done.exit_code == 0, done.output
    assert CANARY not in done.output
    assert "reader" in done.stdout


def test_letters_without_a_named_topic_go_to_the_usual_one():
    config = {
        "transforms.H.type": "com.company.kafka.connect.smt.HashRowSMT",
        "transforms.H.dlq.bootstrap.servers": "b:1",
    }
    assert [(s.name, s.partitions) for s in specs_of(Connector("mine", config))] == [
        ("dlq-cassandra-cloud", 3)
    ]


def test_the_embedded_worker_knows_that_variable_and_gives_no_other_away(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIO_ROOT_PASSWORD", CANARY)
    given = {"CASSANDRA_PASSWORD": "x", "OTHER": "y"}
    worker = ConnectServer(tmp_path, "b:1", tmp_path, port=18083, secrets=given)
    assert f"allowlist.pattern={'|'.join(ALLOWED)}\n" in worker.properties()
    assert worker._secrets == {"CASSANDRA_PASSWORD": "x"}
    from headgate.local.connect import environment

    assert CANARY not in environment().values()


def test_a_connector_gets_the_topics_that_it_writes_to():
    done = run("-o", "json", "connect", "render", "business")
    rendered = json.loads(done.stdout)
    specs = specs_of(Connector(rendered["name"], rendered["config"]))
    assert [(s.name, s.partitions) for s in specs] == [("topic2", 6), ("dlq-cassandra-cloud", 3)]
    documents = [(s.name, s.partitions) for s in specs_of(documents_connector())]
    assert documents == [("topic2-cloud-hash", 6), ("dlq-cassandra-cloud", 3)]
    assert specs_of(Connector("other", {"connector.class": "x", "dlq.topic": "y"})) == []


def test_without_a_cassandra_it_is_said_how_to_get_one():
    done = run("connect", "render", "business", CASSANDRA_CONTACT_POINTS="")
    assert isinstance(done.exception, UnavailableError)
    assert "local up --with cassandra" in done.exception.fix


def test_a_pair_without_cassandra_gets_no_topic_for_its_dead_letters():
    table = load_rules(ROOT / "rules" / "topic1.yml", {}).value.table("business")
    names = {spec.name for spec in rule_specs(table, None, 1)}
    assert {"topic1", "topic2", "dlq-cassandra-cloud"} <= names
    assert table.reconcile is not None
    elsewhere = replace(table, reconcile=replace(table.reconcile, rows=Rows()))
    assert {spec.name for spec in rule_specs(elsewhere, None, 1)} == names - {"dlq-cassandra-cloud"}
