"""A watched service is started, restarted with back-off, and given up when it never comes up."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import cast

import pytest

from headgate.errors import ConflictError
from headgate.local import process, service_kinds, supervisor
from headgate.local.process import Child, Command
from headgate.local.service import PORT_IN_USE, Ended
from headgate.local.service_kinds import EngineService
from headgate.local.state import LocalFiles, Phase, Plan, now
from headgate.local.supervisor import BACK_OFF, GIVE_UP_AFTER, Watched


class FakeChild:
    """A child whose life the test decides."""

    def __init__(self, command):
        self.pid, self.exit_code, self.started = 42, None, 0.0
        self.command, self.log_from = command, 0


class FakeService:
    name, address = "broker", "127.0.0.1:9092"

    def __init__(self, files=None, plan=None):
        self.is_ready, self.retry = False, True

    def command(self):
        return "run"

    def ready(self, child):
        return self.is_ready

    def explain(self, child):
        return Ended("it fell over", "pick it up", self.retry)

    def endpoints(self):
        return {"BOOTSTRAP_SERVERS": self.address}

    def stop(self, child):
        child.exit_code = 143


class Clock:
    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(supervisor, "time", clock)
    monkeypatch.setattr(supervisor, "Child", FakeChild)
    return clock


@pytest.fixture
def service(monkeypatch):
    service = FakeService()
    monkeypatch.setitem(supervisor.KINDS, "broker", lambda files, plan: service)
    return service


@pytest.fixture
def plan(tmp_path):
    return Plan(root=tmp_path, services=("broker",), kafka_port=0, exact_port=False, asked_at=now())


@pytest.fixture
def watched(clock, service, plan, tmp_path):
    return Watched("broker", LocalFiles(tmp_path), plan)


def die(watched, clock):
    watched._child.exit_code = 1
    watched.tick()


def test_it_is_ready_when_it_answers(watched, service):
    watched.tick()
    assert watched.state.state == Phase.STARTING
    service.is_ready = True
    watched.tick()
    assert (watched.state.state, watched.state.pid) == (Phase.READY, 42)
    assert watched.state.address == "127.0.0.1:9092"


def test_one_that_dies_is_restarted_ever_more_slowly(watched, service, clock):
    service.is_ready = True
    for wait in (*BACK_OFF, BACK_OFF[-1]):
        watched.tick()
        watched.tick()
        assert watched.state.state == Phase.READY
        die(watched, clock)
        assert watched.state.state == Phase.RESTARTING
        clock.now += wait - 0.01
        watched.tick()
        assert watched.state.pid is None
        clock.now += 0.02
    watched.tick()
    assert watched.state.restarts == len(BACK_OFF) + 1


def test_one_that_never_comes_up_is_given_up(watched, clock):
    for _ in range(GIVE_UP_AFTER):
        clock.now += 60
        watched.tick()
        die(watched, clock)
    assert (watched.state.state, watched.state.why) == (Phase.FAILED, "it fell over")


def test_a_final_cause_is_not_tried_again_until_a_person_asks(watched, service, plan, clock):
    service.retry = False
    watched.tick()
    die(watched, clock)
    assert watched.state.state == Phase.FAILED
    watched.retry(plan)
    watched.tick()
    assert (watched.state.state, watched.state.pid) == (Phase.STARTING, 42)


def test_a_start_that_is_refused_keeps_its_reason(clock, monkeypatch, plan, tmp_path):
    def refuse(files, plan):
        raise ConflictError("port 9092 is in use", why="another listens", fix="stop it")

    monkeypatch.setitem(supervisor.KINDS, "broker", refuse)
    watched = Watched("broker", LocalFiles(tmp_path), plan)
    watched.tick()
    state = watched.state
    assert (state.state, state.what, state.fix) == (
        Phase.FAILED, "port 9092 is in use", "stop it"
    )  # fmt: skip


def test_what_ran_before_is_tried_again_when_its_start_is_refused(watched, service, clock):
    watched.tick()
    service.is_ready = True
    watched.tick()

    def refuse():
        raise OSError(28, "No space left on device")

    service.command = refuse
    die(watched, clock)
    clock.now += 60
    watched.tick()
    assert watched.state.state == Phase.RESTARTING
    assert "No space left" in watched.state.why
    service.command = lambda: "run"
    clock.now += 60
    watched.tick()
    assert watched.state.pid == 42


@pytest.fixture
def made(monkeypatch):
    """Every service that is made; none gets its port."""
    made: list[FakeService] = []

    def make(files, plan):
        made.append(service := FakeService())
        service.explain = lambda child: Ended(PORT_IN_USE, "stop the other", retry=False)
        return service

    monkeypatch.setitem(supervisor.KINDS, "broker", make)
    return made


def test_one_whose_port_was_taken_before_it_came_up_is_made_anew(watched, made, clock):
    for count in range(1, GIVE_UP_AFTER):
        clock.now += 60
        watched.tick()
        die(watched, clock)
        assert (len(made), watched.state.state) == (count, Phase.RESTARTING)
    clock.now += 60
    watched.tick()
    made[-1].is_ready = True
    watched.tick()
    assert (len(made), watched.state.state) == (GIVE_UP_AFTER, Phase.READY)


def test_one_that_was_ready_waits_for_its_own_port(watched, made, clock):
    watched.tick()
    made[0].is_ready = True
    watched.tick()
    for _ in range(GIVE_UP_AFTER + 1):
        die(watched, clock)
        assert (watched.state.state, watched.state.why) == (Phase.RESTARTING, PORT_IN_USE)
        clock.now += 60
        watched.tick()
    assert len(made) == 1


def test_one_that_never_gets_a_port_is_given_up(watched, made, clock):
    for _ in range(GIVE_UP_AFTER):
        clock.now += 60
        watched.tick()
        die(watched, clock)
    assert (watched.state.state, watched.state.why) == (Phase.FAILED, PORT_IN_USE)


def test_its_endpoints_stay_while_it_restarts(watched, clock):
    assert watched.endpoints == {}
    watched.tick()
    die(watched, clock)
    assert watched.endpoints == {"BOOTSTRAP_SERVERS": "127.0.0.1:9092"}


def test_an_engine_is_ready_when_its_own_file_says_so_and_its_port_answers(
    plan, tmp_path, monkeypatch
):
    listening = {15002}
    monkeypatch.setattr(service_kinds, "port_answers", lambda port: port in listening)
    files, child = LocalFiles(tmp_path), cast(Child, FakeChild("run"))
    engine = EngineService(files, plan)
    said = {"pid": 7, "connect_port": 15002, "ui_port": 4040, "state": "ready"}
    said["metrics_port"] = 9249
    files.engine.write_text(json.dumps(said))
    assert not engine.ready(child), "that file is another process's"
    files.engine.write_text(json.dumps(said | {"pid": child.pid, "state": "starting"}))
    assert not engine.ready(child)
    files.engine.write_text(json.dumps(said | {"pid": child.pid}))
    assert engine.ready(child)
    assert engine.endpoints() == {
        "CONNECT_URL": "sc://localhost:15002",
        "SPARK_UI_URL": "http://localhost:4040",
        "METRICS_URL": "http://localhost:9249/metrics",
    }
    listening.clear()
    assert not engine.ready(child)


def test_an_engine_that_starts_again_forgets_where_it_listened(plan, tmp_path):
    files = LocalFiles(tmp_path)
    engine = EngineService(files, plan)
    files.engine.write_text("{}")
    command = engine.command()
    assert not files.engine.exists()
    assert engine.endpoints() == {}
    assert command.argv[-2:] == ("engine", "run")
    assert command.env is not None
    assert command.env["HEADGATE_HOME"] == str(tmp_path)


def test_an_engine_that_starts_again_is_given_the_ports_it_had(plan, tmp_path, monkeypatch):
    monkeypatch.setattr(process, "lock_folder", lambda: tmp_path)
    wanted = dict.fromkeys(("CONNECT_PORT", "SPARK_UI_PORT", "METRICS_PORT"), 0)
    engine = EngineService(LocalFiles(tmp_path), plan.model_copy(update={"engine_ports": wanted}))
    try:
        first, second = engine.command().env, engine.command().env
    finally:
        process.release_ports("engine")
    assert first is not None
    assert first == second
    assert len({int(first[name]) for name in wanted} - {0}) == 3


@pytest.mark.parametrize(
    ("code", "why", "retry"),
    [
        (-9, "it was killed by signal 9", True),
        (2, "no such table", False),
        (1, "no such table", True),
    ],
)
def test_why_an_engine_ended_is_its_last_error_unless_it_was_killed(
    plan, tmp_path, code, why, retry
):
    command = Command(("run",), tmp_path / "engine.log", tmp_path)
    child = FakeChild(command)
    child.exit_code = code
    command.log.write_text("error HG-1001: no such table\nmetrics on http://localhost:9249\n")
    ended = EngineService(LocalFiles(tmp_path), plan).explain(cast(Child, child))
    assert (ended.why, ended.retry) == (why, retry)


def test_an_engine_started_by_hand_is_not_disturbed(plan, tmp_path, monkeypatch):
    monkeypatch.setattr(service_kinds, "runs_ours", lambda pid: pid == 7)
    files = LocalFiles(tmp_path)
    files.engine.write_text('{"pid": 7, "connect_port": 15002, "state": "ready"}')
    with pytest.raises(ConflictError, match="an engine already runs here"):
        EngineService(files, plan).command()
    assert files.engine.exists()


@pytest.mark.parametrize(
    ("code", "why", "retry"),
    [
        (-9, "it was killed by signal 9", True),
        (8, "the engine's JVM was killed by signal 9; memory is short", True),
        (3, "the engine's JVM was killed by signal 9; memory is short", False),
    ],
)
def test_an_engine_that_ended_says_why(plan, tmp_path, code, why, retry):
    """A killed one had no time to say anything: its log ends with something else."""
    log = tmp_path / "engine.log"
    said = "error HG-8003: the engine's JVM was killed by signal 9\n  why: memory is short\n"
    log.write_text("metrics on http://localhost:9249/metrics\n" + said * (code > 0))
    child = FakeChild(SimpleNamespace(log=log))
    child.exit_code = code
    ended = EngineService(LocalFiles(tmp_path), plan).explain(cast(Child, child))
    assert (ended.why, ended.retry) == (why, retry)
