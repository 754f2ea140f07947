"""What local services write about themselves can be read back, or is nothing."""

from __future__ import annotations

import socket

import pytest

from headgate.config.settings import Settings
from headgate.core.runtime.ports import any_port, choose_port, port_is_free
from headgate.errors import ConflictError
from headgate.local import kafka
from headgate.local.process import read_log
from headgate.local.service_kinds import last_error
from headgate.local.stack import embedded_data, remove_data
from headgate.local.state import LocalFiles, LocalState, Phase, ServiceState, now, write_record


def test_a_state_survives_its_file(tmp_path):
    files = LocalFiles(tmp_path)
    service = ServiceState(service="broker", state=Phase.READY, address="127.0.0.1:9092", pid=7)
    state = LocalState(pid=1, started_at=now(), asked_at=now(), services=(service,))
    write_record(files.state, state)
    assert files.read_state() == state
    assert state.service("broker") == service
    assert state.service("engine") is None


def test_a_file_cut_short_is_as_good_as_none(tmp_path):
    files = LocalFiles(tmp_path)
    files.engine.write_text('{"pid": 1, "connect')
    assert files.read_engine() is None
    assert files.read_plan() is None


def test_the_lock_tells_whether_a_supervisor_runs(tmp_path):
    files = LocalFiles(tmp_path)
    assert files.supervisor_pid() is None
    with files.supervising() as alone:
        assert alone
        assert LocalFiles(tmp_path).supervisor_pid() is not None
        with LocalFiles(tmp_path).supervising() as second:
            assert not second
    assert files.supervisor_pid() is None


def test_endpoints_are_for_their_owner_only(tmp_path):
    files = LocalFiles(tmp_path)
    files.write_endpoints({"BOOTSTRAP_SERVERS": "127.0.0.1:9092"})
    assert "BOOTSTRAP_SERVERS=127.0.0.1:9092\n" in files.endpoints.read_text()
    assert files.endpoints.stat().st_mode & 0o077 == 0


def test_removing_data_leaves_what_is_not_ours(tmp_path):
    for name in ("kafka/data", "demo/kafka", "mine"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "ops.db-wal").write_text("")
    settings = Settings(root=tmp_path, home=tmp_path)
    assert [p.name for p in remove_data(settings)] == ["kafka", "ops.db-wal"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["demo", "mine"]


def test_what_is_remembered_of_data_goes_with_it(tmp_path):
    kept, gone = ("data/input/a.csv",), ("hasher/t.json", "repairs/t-1.jsonl", "data/pairs/k")
    for name in (*kept, *gone):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    settings = Settings(root=tmp_path, home=tmp_path)
    assert {p.name for p in remove_data(settings)} == {"hasher", "repairs", "pairs"}
    assert [str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()] == [*kept]


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"warehouse": "/somewhere/else"},
        {
            "storage": "minio",
            "s3_endpoint": "http://127.0.0.1:9000",
            "minio_root_user": "minio",
            "minio_root_password": "minio-secret",
        },
    ],
)
def test_the_ledger_of_tables_that_are_elsewhere_stays(tmp_path, elsewhere):
    for name in ("kafka", "certificates", "checkpoints", "warehouse"):
        (tmp_path / name).mkdir()
    for name in ("ops.db", "catalog.db"):
        (tmp_path / name).write_text("x")
    settings = Settings(root=tmp_path, home=tmp_path, **elsewhere)
    assert [p.name for p in embedded_data(settings)] == ["kafka"]
    assert [p.name for p in remove_data(settings)] == ["kafka"]
    assert len(list(tmp_path.iterdir())) == 5


def test_a_port_in_use_gives_way_to_the_next():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert not port_is_free(port)
        assert choose_port(port, "KAFKA_PORT") > port


def test_a_port_that_was_named_is_not_changed():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConflictError, match=f"port {port} is in use"):
            choose_port(port, "KAFKA_PORT", exact=True)


def test_zero_asks_for_any_port():
    assert choose_port(0, "KAFKA_PORT") > 0
    assert any_port() > 0


def test_a_broker_listens_on_loopback_only_and_makes_no_topics(tmp_path):
    text = kafka.properties(kafka.Broker(tmp_path / "kafka", 19092, 19093, tmp_path / "log"))
    listeners = [line for line in text.splitlines() if "listeners=" in line]
    assert all(line.count("://127.0.0.1:") == 2 for line in listeners)
    assert "auto.create.topics.enable=false" in text


def test_the_registration_of_a_killed_broker_runs_out_within_seconds(tmp_path):
    text = kafka.properties(kafka.Broker(tmp_path / "kafka", 19092, 19093, tmp_path / "log"))
    assert "broker.session.timeout.ms=1500" in text


def test_a_known_cause_is_told_in_our_words():
    why, fix = kafka.cause("2026 ERROR x\njava.io.IOException: No space left on device\n\tat x")
    assert (why, "space" in fix) == ("the disk is full", True)
    assert kafka.cause("2026-01-01 INFO KafkaServer: started\n") == ("", "")


def test_a_killed_broker_is_told_by_its_signal(tmp_path):
    log = tmp_path / "broker.log"
    log.write_text("2026-01-01T00:00:00 INFO fine\n")
    assert kafka.why_it_ended(log, -9)[0] == "it was killed by signal 9"


def test_only_what_was_logged_since_the_start_counts(tmp_path):
    log = tmp_path / "broker.log"
    log.write_text("old\nnew\n")
    assert read_log(log, since=4) == "new\n"
    assert read_log(tmp_path / "none") == ""


def test_cluster_ids_are_taken_by_the_storage_tool():
    for _ in range(200):
        text = kafka.cluster_id()
        assert len(text) == 22
        assert not text.startswith("-")


def test_the_last_error_of_a_command_is_found():
    log = "words\nerror HG-3002: TOPIC is not set\n  why: no profile\n  do: write it\n"
    assert last_error(log) == ("TOPIC is not set; no profile", "write it")
    assert last_error("Traceback\nValueError: no\n") == ("ValueError: no", "")
    assert last_error("") == ("", "")
