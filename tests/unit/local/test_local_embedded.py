"""What the added services are told, what they wait for, and in which order they stop."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from headgate.cli.main import cli
from headgate.config.settings import Settings
from headgate.core.runtime.bundles import read_lock
from headgate.errors import SettingsError, UsageError
from headgate.local import supervisor
from headgate.local.cassandra import CAUSES, CassandraServer, CdcServer, options
from headgate.local.connect import ConnectServer
from headgate.local.health import QUESTIONS
from headgate.local.service import cause
from headgate.local.service_kinds import BUNDLES, EXTRA, NEEDS
from headgate.local.stack import wanted_services
from headgate.local.state import BROKER, CASSANDRA, CDC, CONNECT, ENGINE, LocalFiles, Phase, Plan
from headgate.local.state import now as right_now
from headgate.local.supervisor import KINDS, Supervisor, Watched


def settings(**values):
    return Settings.model_validate(values)


def test_nothing_is_added_unless_it_is_asked_for():
    assert wanted_services(settings()) == (BROKER, ENGINE)
    assert wanted_services(settings(local_services="cassandra, connect")) == (
        *(BROKER, ENGINE),
        *(CASSANDRA, CONNECT),
    )
    assert wanted_services(settings(local_services="cassandra"), extra=()) == (BROKER, ENGINE)


def test_change_capture_brings_the_node_it_reads_and_one_alone_brings_what_it_needs():
    assert {CDC, CASSANDRA, BROKER} <= {*wanted_services(settings(), extra=(CDC,))}
    assert wanted_services(settings(), only=CASSANDRA) == (CASSANDRA,)
    assert wanted_services(settings(), only=CONNECT) == (BROKER, CONNECT)


def test_a_broker_elsewhere_is_not_started_for_connect():
    elsewhere = settings(broker="kafka", bootstrap_servers="kafka:9092")
    assert wanted_services(elsewhere, only=CONNECT) == (CONNECT,)
    with pytest.raises(UsageError):
        wanted_services(elsewhere, only=BROKER)


def test_a_service_that_is_none_is_refused_by_name():
    done = CliRunner().invoke(cli, ["local", "up", "--with", "cassandra,zookeeper"])
    assert isinstance(done.exception, UsageError)
    assert "zookeeper" in done.exception.what


def test_the_broker_stops_last_and_what_reads_from_it_first():
    order = list(reversed(KINDS))
    assert order[-1] == BROKER
    assert order.index(CDC) < order.index(CASSANDRA)
    assert order.index(CONNECT) < order.index(CASSANDRA)
    assert order.index(CONNECT) < order.index(ENGINE)


def test_every_added_service_can_be_fetched_started_and_asked():
    assert {*EXTRA} == {*BUNDLES} == {*QUESTIONS}
    assert {*EXTRA} < {*KINDS}
    for names in BUNDLES.values():
        assert all(read_lock()[name].optional for name in names)


def test_a_service_waits_for_what_it_needs(tmp_path, monkeypatch):
    plan = Plan(root=tmp_path, services=(), kafka_port=0, exact_port=False, asked_at=right_now())
    started: list[str] = []
    monkeypatch.setattr(Watched, "_start", lambda self: started.append(self.name))
    supervised = Supervisor(LocalFiles(tmp_path))
    for name in (BROKER, CONNECT):
        supervised._watched[name] = Watched(name, LocalFiles(tmp_path), plan)
    for watched in supervised._watched.values():
        watched.tick(supervised._may_start(watched.name))
    assert started == [BROKER]
    broker = supervised._watched[BROKER]
    broker.state = broker.state.model_copy(update={"state": Phase.READY})
    assert supervised._may_start(CONNECT)
    assert NEEDS[CONNECT] == (BROKER,)
    assert supervisor.NEEDS is NEEDS


def test_everything_binds_the_loopback_address_and_keeps_its_data_in_its_folder(tmp_path):
    node = CassandraServer(tmp_path / "c", port=19042)
    text = node.yaml()
    assert "rpc_address: 127.0.0.1" in text
    assert "listen_address: 127.0.0.1" in text
    assert "native_transport_port: 19042" in text
    assert f'cdc_raw_directory: "{tmp_path}/c/cdc_raw"' in text
    assert "cdc_enabled: true" in text
    assert text == node.yaml()
    worker = ConnectServer(tmp_path / "k", "b:1", tmp_path / "plugins", port=18083)
    assert "listeners=http://127.0.0.1:18083" in worker.properties()
    assert f"plugin.path={tmp_path}/plugins" in worker.properties()
    assert "plugin.discovery=service_load" in worker.properties()
    assert "session.timeout.ms=2000" in worker.properties()
    reader = CdcServer(tmp_path / "d", "b:1", tmp_path / "c", 19042)
    assert f"cassandra.config={tmp_path}/c/cassandra.yaml" in reader.properties()


def test_free_ports_are_taken_and_told():
    node = CassandraServer(Path("x"))
    assert node.port > 0
    assert node.folder == Path("x").absolute()
    assert node.endpoints() == {
        "CASSANDRA_CONTACT_POINTS": "127.0.0.1",
        "CASSANDRA_PORT": str(node.port),
        "CASSANDRA_LOCAL_DC": "datacenter1",
    }


def test_options_are_single_words_so_that_the_class_archive_fits():
    assert all(option.startswith("-") for option in options())
    assert len(options()) == len(set(options()))


def test_a_full_disk_is_told_as_that():
    why, fix = cause(CAUSES, "2026 ERROR X: FSWriteError in x: No space left on device")
    assert (why, fix) == ("the disk is full", "free some space, then start it again")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("local_services", "cassandra,zookeeper"),
        ("local_services", ","),
        ("reconcile_window", "20s"),
        ("reconcile_grace", "0 SECONDS"),
        ("kafka_connect_url", "localhost:8083"),
        ("cassandra_port", "90420"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused(variable, value):
    with pytest.raises(SettingsError):
        settings(**{variable: value})


def test_cassandras_password_is_a_secret():
    given = settings(cassandra_user="reader", cassandra_password="hidden")
    assert "hidden" not in repr(given)
    assert given.shown("cassandra_password") == "********"
