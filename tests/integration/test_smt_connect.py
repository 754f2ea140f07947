"""Our source and transformation inside a real worker, between a real Cassandra and a real broker."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator

import pytest
from tests.integration.conftest import RunningBroker
from tests.integration.smt_rig import (
    ROOT,
    Rig,
    hash_of,
    headers_of,
    key_of,
    keys,
    rig,
    row,
    until,
    value_of,
)

from headgate.feeds.connect.build import build_plugins
from headgate.local.cassandra import CassandraServer
from headgate.local.connect import ConnectServer
from headgate.local.service import Running

NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def worker(
    broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running[ConnectServer]]:
    plugins = build_plugins(ROOT / "connect").folder
    folder = tmp_path_factory.mktemp("connect")
    with Running(ConnectServer(folder, broker.bootstrap, plugins, group="smt-tests")) as running:
        yield running


@pytest.fixture
def own(
    broker: RunningBroker, cassandra: Running[CassandraServer], worker: Running[ConnectServer]
) -> Iterator[Rig]:
    with rig(broker.bootstrap, cassandra, worker, f"smt{next(NUMBERS)}") as made:
        yield made


def test_both_plugins_are_found_by_their_service_files_and_say_their_version(own: Rig) -> None:
    _, text = own.call("GET", "/connector-plugins?connectorsOnly=false")
    found = {plugin["class"]: plugin.get("version") for plugin in json.loads(text)}
    assert found["headgate.connect.CassandraPollSource"] == "0.1.0"
    assert found["com.company.kafka.connect.smt.HashRowSMT"] == "0.1.0"


def test_rows_become_messages_of_exactly_key_hash_version_and_time(own: Rig) -> None:
    rows = [row(n) for n in range(500)] + [row(900, col1=None, col2=None, col3=None, col4=None)]
    own.write(rows)
    connector = own.connector()
    assert own.deploy(connector)[0] == 201
    found = own.messages(own.topic, lambda got: len(got) >= len(rows))
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


def test_a_changed_row_is_sent_again_and_an_unchanged_one_is_not(own: Rig) -> None:
    own.write([row(1), row(2)])
    own.deploy(own.connector())
    own.messages(own.topic, lambda got: len(got) >= 2)
    changed = row(1, col1="changed")
    own.write([changed])
    found = own.messages(own.topic, lambda got: len(got) >= 3)
    assert [value_of(m)["hash_cloud"] for m in found if key_of(m) == "k000001"][-1] == hash_of(
        changed
    )
    own.write([row(3)])
    found = own.messages(own.topic, lambda got: "k000003" in keys(got))
    assert len(found) == 4, "overlapping scans do not repeat a row"


def test_s1_120_a_record_without_a_hash_field_is_refused_by_the_smt(own: Rig) -> None:
    own.write([row(1)])
    own.deploy(own.connector(transforms__ComputeHash__hash__contract="col1:string,col9:string"))
    letters = own.messages(own.letters_topic, lambda got: len(got) >= 1)
    assert headers_of(letters[0])["headgate.reason"] == "the record has no field col9"
    assert headers_of(letters[0])["headgate.stage"] == "SMT"
    assert own.messages(own.topic, lambda _: False, seconds=0.5) == []


def test_s1_121_the_refused_record_reaches_the_dead_letters_and_the_task_goes_on(own: Rig) -> None:
    first = row(1)
    own.write([first])
    connector = own.connector(transforms__ComputeHash__hash__contract="col1:string,col9:string")
    own.deploy(connector)
    own.messages(own.letters_topic, lambda got: len(got) >= 1)
    own.write([row(2)])
    letters = own.messages(own.letters_topic, lambda got: len(got) >= 2)
    assert keys(letters) == {"k000001", "k000002"}
    original = next(value_of(m) for m in letters if key_of(m) == "k000001")
    assert original["col1"] == first["col1"]
    assert original["col2"] == "0.125"
    assert {task["state"] for task in own.tasks(connector)} == {"RUNNING"}


def test_s1_122_missing_fields_are_counted(own: Rig) -> None:
    own.write([row(n) for n in range(7)])
    connector = own.connector(transforms__ComputeHash__hash__contract="col1:string,col9:string")
    own.deploy(connector)
    own.messages(own.letters_topic, lambda got: len(got) >= 7)
    assert until(lambda: own.counter(connector, "hashrow", "missing_fields") == 7)
    assert own.counter(connector, "hashrow", "dead_letters") == 7
    assert own.counter(connector, "hashrow", "hashed") == 0


def test_s1_123_an_unsupported_algorithm_fails_the_validation_of_the_configuration(
    own: Rig,
) -> None:
    connector = own.connector(transforms__ComputeHash__hash__algorithm="SHA-257")
    status, text = own.deploy(connector)
    assert status == 400
    assert re.search(
        r"SHA-257 for configuration transforms.ComputeHash.hash.algorithm|SHA-257", text
    )


def test_s1_124_a_connector_with_an_unsupported_algorithm_does_not_start(own: Rig) -> None:
    own.write([row(1)])
    connector = own.connector(transforms__ComputeHash__hash__algorithm="SHA-257")
    own.deploy(connector)
    assert own.call("GET", f"/connectors/{connector.name}/status")[0] == 404
    assert own.messages(own.topic, lambda _: False, seconds=0.5) == []


def test_s1_125_a_new_column_is_ignored_unless_it_is_listed(own: Rig) -> None:
    first, second = row(1), row(2)
    own.write([first])
    own.deploy(own.connector())
    own.messages(own.topic, lambda got: len(got) >= 1)
    own.cql.execute(f"ALTER TABLE {own.keyspace}.business_table ADD col9 text")
    own.write([second])
    found = own.messages(own.topic, lambda got: len(got) >= 2)
    assert {key_of(m): value_of(m)["hash_cloud"] for m in found} == {
        "k000001": hash_of(first),
        "k000002": hash_of(second),
    }


def test_s1_126_a_new_column_is_counted_as_drift(own: Rig) -> None:
    own.write([row(1)])
    connector = own.connector()
    own.deploy(connector)
    own.messages(own.topic, lambda got: len(got) >= 1)
    assert own.counter(connector, "hashrow", "schema_drift") == 0
    own.cql.execute(f"ALTER TABLE {own.keyspace}.business_table ADD col9 text")
    assert until(lambda: own.counter(connector, "cassandrapoll", "schema_drift") == 1)
    own.write([row(2)])
    assert until(lambda: own.counter(connector, "hashrow", "schema_drift") == 1)


def test_s1_127_a_removed_column_hashes_as_null_so_the_hash_changes(own: Rig) -> None:
    own.write([row(1)])
    own.deploy(own.connector())
    own.messages(own.topic, lambda got: len(got) >= 1)
    own.cql.execute(f"ALTER TABLE {own.keyspace}.business_table DROP col2")
    second = row(2)
    own.cql.write_many(
        f"INSERT INTO {own.keyspace}.business_table (pk, col1, col3, col4, last_updated)"
        " VALUES (?, ?, ?, ?, ?)",
        [[second[c] for c in ("pk", "col1", "col3", "col4", "last_updated")]],
    )
    found = own.messages(own.topic, lambda got: "k000002" in keys(got))
    cloud = next(value_of(m)["hash_cloud"] for m in found if key_of(m) == "k000002")
    assert cloud == hash_of({**second, "col2": None})
    assert cloud != hash_of(second), "on-prem, which still has the column, gets a mismatch"
    assert own.messages(own.letters_topic, lambda _: False, seconds=0.3) == []


def test_s1_128_a_removed_column_is_counted(own: Rig) -> None:
    own.write([row(1)])
    connector = own.connector()
    own.deploy(connector)
    own.messages(own.topic, lambda got: len(got) >= 1)
    own.cql.execute(f"ALTER TABLE {own.keyspace}.business_table DROP col4")
    assert until(lambda: own.counter(connector, "cassandrapoll", "column_removed") == 1)
    own.cql.execute(
        f"INSERT INTO {own.keyspace}.business_table (pk, col1, last_updated)"
        " VALUES ('k2', 'x', toTimestamp(now()))"
    )
    assert until(lambda: own.counter(connector, "hashrow", "column_removed") == 1)
