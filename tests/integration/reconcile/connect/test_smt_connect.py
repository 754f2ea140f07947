"""Our source and transformation inside a real worker, between a real Cassandra and a real broker."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import Message
from confluent_kafka.admin import AdminClient
from tests.support.connect_harness import (
    ConnectHarness,
    hash_of,
    headers_of,
    key_of,
    keys_of,
    open_connect_harness,
    row,
    value_of,
)
from tests.support.services import RunningBroker

from headgate.cli.main import cli
from headgate.core.kafka.connect_rest import Connector
from headgate.local.cassandra import CassandraServer
from headgate.local.connect import ConnectServer
from headgate.local.process import wait_until
from headgate.local.service import Running

NUMBERS = itertools.count()


@pytest.fixture
def harness(
    broker: RunningBroker, cassandra: Running[CassandraServer], connect: Running[ConnectServer]
) -> Iterator[ConnectHarness]:
    with open_connect_harness(broker.bootstrap, cassandra, connect, f"smt{next(NUMBERS)}") as made:
        yield made


def test_both_plugins_are_found_by_their_service_files_and_say_their_version(
    harness: ConnectHarness,
) -> None:
    _, text = harness.call("GET", "/connector-plugins?connectorsOnly=false")
    found = {plugin["class"]: plugin.get("version") for plugin in json.loads(text)}
    assert found["headgate.connect.CassandraPollSource"] == "0.1.0"
    assert found["com.company.kafka.connect.smt.HashRowSMT"] == "0.1.0"


def test_rows_become_messages_of_exactly_key_hash_version_and_time(harness: ConnectHarness) -> None:
    rows = [row(n) for n in range(500)] + [row(900, col1=None, col2=None, col3=None, col4=None)]
    harness.write(rows)
    connector = harness.connector()
    assert harness.deploy(connector)[0] == 201
    found = harness.messages(harness.topic, lambda got: len(got) >= len(rows))
    wanted = {
        str(r["pk"]): {
            "pk": r["pk"],
            "hash_cloud": hash_of(r),
            "hash_version": 2,
            "cloud_ts": r["last_updated"].isoformat(timespec="milliseconds").replace("+00:00", "Z"),  # pyright: ignore[reportAttributeAccessIssue]  a datetime
        }
        for r in rows
    }
    assert {key_of(message): value_of(message) for message in found} == wanted
    assert len(found) == len(rows), "each row once"


def test_a_changed_row_is_sent_again_and_an_unchanged_one_is_not(harness: ConnectHarness) -> None:
    harness.write([row(1), row(2)])
    harness.deploy(harness.connector())
    harness.messages(harness.topic, lambda got: len(got) >= 2)
    changed = row(1, col1="changed")
    harness.write([changed])
    found = harness.messages(harness.topic, lambda got: len(got) >= 3)
    assert [value_of(m)["hash_cloud"] for m in found if key_of(m) == "k000001"][-1] == hash_of(
        changed
    )
    harness.write([row(3)])
    found = harness.messages(harness.topic, lambda got: "k000003" in keys_of(got))
    assert len(found) == 4, "overlapping scans do not repeat a row"


@dataclass(frozen=True)
class Refused:
    """What became of seven rows that lack a field which the contract names, and of one after them."""

    made: ConnectHarness
    connector: Connector
    letters: list[Message]
    passed: list[Message]


@pytest.fixture(scope="module")
def refused(
    broker: RunningBroker, cassandra: Running[CassandraServer], connect: Running[ConnectServer]
) -> Iterator[Refused]:
    with open_connect_harness(broker.bootstrap, cassandra, connect, "smt_refused") as made:
        made.write([row(n) for n in range(1, 8)])
        connector = made.connector_without("col4")
        made.deploy(connector)
        made.messages(made.dead_letter_topic, lambda got: len(got) >= 7)
        made.write([row(8)])
        letters = made.messages(made.dead_letter_topic, lambda got: len(got) >= 8)
        yield Refused(made, connector, letters, made.messages(made.topic, lambda _: False, 0.5))


def test_s1_120_a_record_without_a_hash_field_is_refused_by_the_smt(refused: Refused) -> None:
    facts = headers_of(refused.letters[0])
    assert facts["headgate.reason"] == "the record has no field col4"
    assert facts["headgate.stage"] == "SMT"
    assert facts["headgate.error_class"].endswith("MissingFieldsException")
    assert refused.passed == []


def test_s1_121_the_refused_record_reaches_the_dead_letters_and_the_task_goes_on(
    refused: Refused,
) -> None:
    assert keys_of(refused.letters) == {f"k{n:06d}" for n in range(1, 9)}
    original = next(value_of(m) for m in refused.letters if key_of(m) == "k000001")
    assert original["col1"] == row(1)["col1"]
    assert original["col2"] == "0.125"
    assert refused.made.is_running(refused.connector)


def test_s1_122_missing_fields_are_counted(refused: Refused) -> None:
    def counted(name: str) -> float:
        return refused.made.counter(refused.connector, "hashrow", name)

    for name in ("missing_fields", "dead_letters", "errors"):
        assert wait_until(lambda name=name: counted(name) == 8, 120)
    assert counted("hashed") == 0


def test_s1_123_an_unsupported_algorithm_fails_the_validation_of_the_configuration(
    harness: ConnectHarness,
) -> None:
    for algorithm in ("SHA-257", "sha256", ""):
        wrong = harness.connector(transforms__ComputeHash__hash__algorithm=algorithm)
        status, text = harness.deploy(wrong)
        assert status == 400
        assert f"Invalid value {algorithm} for configuration hash.algorithm" in text


def test_s1_124_a_connector_with_an_unsupported_algorithm_does_not_start(
    harness: ConnectHarness,
) -> None:
    harness.write([row(1)])
    connector = harness.connector(transforms__ComputeHash__hash__algorithm="SHA-257")
    harness.deploy(connector)
    assert harness.call("GET", f"/connectors/{connector.name}/status")[0] == 404
    assert harness.messages(harness.topic, lambda _: False, seconds=0.5) == []


def test_a_misspelt_column_and_a_type_that_does_not_fit_keep_the_task_from_starting(
    harness: ConnectHarness,
) -> None:
    harness.write([row(1)])
    for contract, words in (
        ("col1:string,colum2:decimal(2)", "it has no column colum2; is col2 meant?"),
        ("col1:string,col2:double", "its column col2 is decimal and cannot be hashed as double"),
    ):
        connector = harness.connector(transforms__ComputeHash__hash__contract=contract)
        harness.deploy(connector)
        assert wait_until(lambda c=connector, w=words: _all_failed_with(harness, c, w), 120)
    assert harness.messages(harness.topic, lambda _: False, 0.5) == []
    harness.deploy(harness.connector())
    harness.call("POST", f"/connectors/{harness.connector().name}/restart?includeTasks=true")
    assert keys_of(harness.messages(harness.topic, lambda got: len(got) >= 1)) == {"k000001"}


def _all_failed_with(harness: ConnectHarness, connector: Connector, words: str) -> bool:
    tasks = harness.tasks(connector)
    return bool(tasks) and all(words in task.get("trace", "") for task in tasks)


def test_deploy_makes_the_topics_that_are_not_there_so_that_a_bad_record_finds_its_place(
    harness: ConnectHarness, tmp_path: Path
) -> None:
    harness.write([row(1)])
    topic, letters = f"{harness.keyspace}.fresh", f"{harness.keyspace}.letters"
    changes: dict[str, str] = {
        "dlq__topic": letters,
        "transforms__ComputeHash__dlq__topic": letters,
        "transforms__RouteTopic__replacement": topic,
    }
    connector = harness.connector_without("col4", **changes)
    file = tmp_path / "mine.json"
    file.write_text(connector.text)
    environ = {
        **harness.worker.service.endpoints(),
        "BROKER": "kafka",
        "BOOTSTRAP_SERVERS": harness.bootstrap,
        "HEADGATE_HOME": str(tmp_path),
    }
    harness.deployed.append(connector.name)
    done = CliRunner(env=environ).invoke(cli, ["connect", "deploy", "--timeout", "240", str(file)])
    assert done.exit_code == 0, done.output
    made = AdminClient({"bootstrap.servers": harness.bootstrap}).list_topics(timeout=60).topics
    assert (len(made[topic].partitions), len(made[letters].partitions)) == (6, 3)
    assert keys_of(harness.messages(letters, lambda got: len(got) >= 1)) == {"k000001"}
    assert harness.is_running(connector)


@dataclass(frozen=True)
class Drifted:
    """A table that got a column and then lost one, with a row before, between and after."""

    made: ConnectHarness
    connector: Connector
    rows: dict[str, dict[str, object]]
    hashes: dict[str, object]


@pytest.fixture(scope="module")
def drifted(
    broker: RunningBroker, cassandra: Running[CassandraServer], connect: Running[ConnectServer]
) -> Iterator[Drifted]:
    with open_connect_harness(broker.bootstrap, cassandra, connect, "smt_drifted") as made:
        rows = {str(r["pk"]): r for r in (row(1), row(2), row(3))}
        connector = made.connector()
        made.write([rows["k000001"]])
        made.deploy(connector)
        made.messages(made.topic, lambda got: "k000001" in keys_of(got))
        assert made.counter(connector, "hashrow", "schema_drift") == 0
        made.cql.execute(f"ALTER TABLE {made.keyspace}.business_table ADD col9 text")
        assert wait_until(
            lambda: made.counter(connector, "cassandrapoll", "schema_drift") == 1, 120
        )
        made.write([rows["k000002"]])
        made.messages(made.topic, lambda got: "k000002" in keys_of(got))
        made.cql.execute(f"ALTER TABLE {made.keyspace}.business_table DROP col2")
        assert wait_until(
            lambda: made.counter(connector, "cassandrapoll", "column_removed") == 1, 120
        )
        kept = ("pk", "col1", "col3", "col4", "last_updated")
        made.write([{c: rows["k000003"][c] for c in kept}], kept)
        found = made.messages(made.topic, lambda got: "k000003" in keys_of(got))
        yield Drifted(made, connector, rows, {key_of(m): value_of(m)["hash_cloud"] for m in found})


def test_s1_125_a_new_column_is_ignored_unless_it_is_listed(drifted: Drifted) -> None:
    assert drifted.hashes["k000001"] == hash_of(drifted.rows["k000001"])
    assert drifted.hashes["k000002"] == hash_of(drifted.rows["k000002"])


def test_s1_126_a_new_column_is_counted_as_drift(drifted: Drifted) -> None:
    counted = drifted.made.counter
    assert wait_until(lambda: counted(drifted.connector, "hashrow", "schema_drift") == 1, 120)


def test_s1_127_a_removed_column_hashes_as_null_so_the_pair_will_mismatch(
    drifted: Drifted,
) -> None:
    last = drifted.rows["k000003"]
    assert drifted.hashes["k000003"] == hash_of({**last, "col2": None})
    assert drifted.hashes["k000003"] != hash_of(last), "on-prem still has the column"
    assert drifted.made.messages(drifted.made.dead_letter_topic, lambda _: False, 0.3) == []


def test_s1_128_a_removed_column_is_counted(drifted: Drifted) -> None:
    counted = drifted.made.counter
    assert wait_until(lambda: counted(drifted.connector, "hashrow", "column_removed") == 1, 120)
