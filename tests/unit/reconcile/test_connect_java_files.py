"""Connector files, the POM and the image: what they name is there and says the same."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from headgate.core.runtime.bundles import read_lock
from headgate.core.runtime.java_build import (
    PLUGINS,
    SERVICES,
    Ecj,
    Javac,
    find_compiler,
    list_java_files,
    service_files,
)
from headgate.errors import SettingsError
from headgate.hashing.contract import HashContract, load_contract
from headgate.local.connect import METRICS
from headgate.quality.spec.loader import load_rules
from headgate.reconcile.cassandra.connector import (
    HASH,
    SOURCE,
    CloudTable,
    Cluster,
    cloud_table,
    documents_connector,
    notices,
    own_connector,
    read_connector,
)

ROOT = Path(__file__).parents[3]
CONNECT = ROOT / "java/connect-plugins"
CONTRACT: HashContract = load_contract(ROOT / "contracts/business_table.hash.yml").value
CLUSTER = Cluster("cassandra-cloud", 9042, "dc1", "kafka:9092")
TABLE = CloudTable("cloud_keyspace", "business_table", CONTRACT, "topic2")
POM = "{http://maven.apache.org/POM/4.0.0}"


def test_the_documents_file_is_rendered_byte_for_byte() -> None:
    written = (CONNECT / "cassandra-cloud-source.json").read_bytes()
    assert documents_connector().text.encode() == written


def test_the_documents_file_says_what_the_documents_say() -> None:
    connector = documents_connector()
    assert connector.name == "cassandra-cloud-hash-source"
    assert connector.config == {
        "connector.class": "com.datastax.oss.kafka.source.CassandraSourceConnector",
        "tasks.max": "4",
        "contact.points": "cassandra-cloud",
        "load.balancing.local.dc": "dc1",
        "port": "9042",
        "keyspace": "cloud_keyspace",
        "table": "business_table",
        "topic.prefix": "raw-cloud-",
        "poll.interval.ms": "5000",
        "timestamp.column.name": "last_updated",
        "mode": "timestamp",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "transforms": "ExtractPK,ComputeHash,RouteTopic",
        "transforms.ExtractPK.type": "org.apache.kafka.connect.transforms.ValueToKey",
        "transforms.ExtractPK.fields": "pk",
        "transforms.ComputeHash.type": "com.company.kafka.connect.smt.HashRowSMT",
        "transforms.ComputeHash.hash.fields": "col1,col2,col3",
        "transforms.ComputeHash.hash.algorithm": "SHA-256",
        "transforms.ComputeHash.output.field": "hash_cloud",
        "transforms.RouteTopic.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.RouteTopic.regex": "raw-cloud-.*",
        "transforms.RouteTopic.replacement": "topic2-cloud-hash",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "dlq-cassandra-cloud",
        "errors.deadletterqueue.context.headers.enable": "true",
        "errors.log.enable": "true",
        "errors.log.include.messages": "true",
        "errors.retry.timeout": "600000",
        "errors.retry.delay.max.ms": "30000",
    }


def test_the_owner_of_the_documents_file_is_warned_that_its_dead_letters_are_for_sinks() -> None:
    told = notices(documents_connector())
    assert any("works for sinks only" in words for words in told)
    assert any("vanishes" in words and "dlq.bootstrap.servers" in words for words in told)
    assert any("version 1 is ambiguous" in words for words in told)


def test_our_own_file_is_rendered_byte_for_byte_and_warns_of_deletes_alone() -> None:
    connector = own_connector(TABLE, CLUSTER)
    assert connector.text.encode() == (CONNECT / "headgate-cloud-source.json").read_bytes()
    (words,) = notices(connector)
    assert "ZOMBIE" in words
    assert "headgate reconcile hasher" in words


def test_the_shipped_rule_set_declares_the_table_that_is_polled() -> None:
    (table,) = load_rules(ROOT / "rules/topic1.yml", {}).value.tables
    assert cloud_table(table, CONTRACT) == TABLE


def test_a_key_of_several_columns_is_not_polled() -> None:
    (table,) = load_rules(ROOT / "rules/topic1.yml", {}).value.tables
    assert table.reconcile is not None
    assert table.reconcile.rows.cloud is not None
    both = replace(table.reconcile.rows.cloud, key="pk,part")
    rows = replace(table.reconcile.rows, cloud=both)
    reconcile = replace(table.reconcile, rows=rows)
    with pytest.raises(SettingsError) as refused:
        cloud_table(replace(table, reconcile=reconcile), CONTRACT)
    assert refused.value.why == "its key has several columns: pk,part"


def test_columns_of_other_names_are_renamed_to_those_of_the_topic() -> None:
    other = CloudTable("k", "t", CONTRACT, "topic2", pk="id", version="changed")
    config = own_connector(other, CLUSTER).config
    assert config["transforms.KeepContract.renames"] == "id:pk,changed:cloud_ts"
    assert config["transforms.BareKey.field"] == "id"


def test_a_password_in_the_file_is_remarked_upon_and_not_shown_by_repr() -> None:
    cluster = Cluster("c", 9042, "dc1", "b", "reader", "secret")
    assert any("config provider" in words for words in notices(own_connector(TABLE, cluster)))
    assert "secret" not in repr(cluster)


def test_a_connector_file_is_read_as_it_is_written() -> None:
    connector = own_connector(TABLE, CLUSTER)
    assert read_connector(connector.text) == connector


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": "a"}', '{"name": "a", "config": 3}'])
def test_what_is_no_connector_file_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="connector file is not valid"):
        read_connector(text)


def test_classes_named_in_connectors_and_services_are_there() -> None:
    sources = {
        str(file.relative_to(CONNECT / "src/main/java").with_suffix("")).replace("/", ".")
        for file in list_java_files(CONNECT)
    }
    named = {file.read_text().strip() for file in service_files(CONNECT)}
    assert named == {SOURCE, HASH}
    assert named <= sources


def test_maven_puts_into_each_jar_what_we_put_into_it() -> None:
    tree = ElementTree.parse(CONNECT / "pom.xml")
    jars = [
        {include.text for include in execution.iter(f"{POM}include")}
        for execution in tree.iter(f"{POM}execution")
        if execution.find(f".//{POM}include") is not None
    ]
    wanted = [
        {f"{part}{'**' if part.endswith('/') else '*'}" for part in plugin.parts}
        | {f"{SERVICES}/{plugin.service}"}
        for plugin in PLUGINS
    ]
    assert jars == wanted


def test_maven_compiles_against_the_locked_versions() -> None:
    properties = ElementTree.parse(CONNECT / "pom.xml").find(f"{POM}properties")
    assert properties is not None
    said = {item.tag.removeprefix(POM): item.text for item in properties}
    locked = {a.name: a.version for b in read_lock().values() for a in b.artifacts}
    assert said["kafka.version"] == locked["connect-api"]
    assert said["cassandra.driver.version"] == locked["java-driver-core"]


def test_the_pom_names_no_host() -> None:
    text = (CONNECT / "pom.xml").read_text()
    assert set(re.findall(r"https?://[^\s\"<]+", text)) == {"http://maven.apache.org/POM/4.0.0"}


def test_the_image_copies_files_that_are_there() -> None:
    text = (ROOT / "docker/connect.Dockerfile").read_text()
    copied = re.findall(r"^COPY (?!--from)(\S+) ", text, re.M)
    assert copied
    assert [path for path in copied if not (ROOT / path).exists()] == []


def test_the_image_shows_the_plugins_counters_by_the_agent_that_is_locked() -> None:
    """As the embedded worker does: without the agent no dq_smt_* metric could be read."""
    text = (ROOT / "docker/connect.Dockerfile").read_text()
    locked = {a.name: a.version for b in read_lock().values() for a in b.artifacts}
    assert re.findall(r"ARG JMX_EXPORTER=(\S+)", text) == [locked["jmx_prometheus_javaagent"]]
    assert f"COPY {METRICS.relative_to(ROOT)} /kafka/connect/metrics.yml" in text
    (option,) = re.findall(r"KAFKA_OPTS=-javaagent:(\S+?)=(\d+):(\S+)", text)
    assert option == ("/kafka/connect/agent.jar", "9404", "/kafka/connect/metrics.yml")
    assert all(f" {path}\n" in text for path in (option[0], option[2]))
    assert re.findall(r"^EXPOSE (.+)$", text, re.M) == ["8083 9404"]


def test_every_variable_of_the_images_worker_has_a_default() -> None:
    text = (ROOT / "docker/connect.Dockerfile").read_text()
    wanted = re.findall(r"\$\{env:(\w+)\}", (ROOT / "docker/connect.properties").read_text())
    assert set(wanted) == set(re.findall(r"\b([A-Z_]+)=", text.partition("ENV ")[2])) - {
        "KAFKA_OPTS"
    }


def test_the_java_says_the_version_of_the_pom() -> None:
    build = (CONNECT / "src/main/java/headgate/connect/plugin/Build.java").read_text()
    version = ElementTree.parse(CONNECT / "pom.xml").findtext(f"{POM}version")
    assert f'VERSION = "{version}"' in build


def test_connector_files_are_json_that_connect_takes() -> None:
    for file in CONNECT.glob("*.json"):
        found = json.loads(file.read_text())
        assert set(found) == {"name", "config"}
        assert all(isinstance(value, str) for value in found["config"].values())


def test_without_a_javac_the_eclipse_compiler_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = (tmp_path / "ecj.jar",)
    monkeypatch.setattr("headgate.core.runtime.java_build.bundle", lambda *_: fetched)
    home = tmp_path / "java"
    java = home / "bin/java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    (home / "release").write_text('JAVA_VERSION="17.0.9"\n')
    bare = {"JAVA_HOME": str(home), "PATH": ""}
    assert isinstance(find_compiler(bare), Ecj)
    (home / "bin/javac").write_text("")
    assert find_compiler(bare) == Javac(home / "bin/javac")
