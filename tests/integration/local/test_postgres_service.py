"""The embedded PostgreSQL: it starts, is killed, comes back with its data, and keeps its password."""

from __future__ import annotations

import os
import signal
import stat
from dataclasses import replace

import psycopg
import pytest
from tests.support.local_commands import LocalEnvironment
from tests.support.postgres import create_database, query_rows
from tests.support.services import READY_SECONDS

from headgate.core.runtime.ports import any_port
from headgate.errors import UnavailableError
from headgate.filters.events.database import Place, connect, migrate
from headgate.local.postgres import PostgresServer, answers, password_of
from headgate.local.process import wait_until
from headgate.local.service import Running
from headgate.local.state import POSTGRES, LocalFiles, Phase


def test_a_killed_server_comes_back_with_every_committed_row(postgres):
    place = create_database(postgres.service, "kept")
    with connect(place) as connection:
        connection.execute("CREATE TABLE kept AS SELECT generate_series(1, 1000) AS n")
    with connect(place) as open_:
        open_.execute("INSERT INTO kept VALUES (0)")
        postgres.kill()
        postgres.restart()
        with pytest.raises(psycopg.OperationalError):
            open_.execute("SELECT 1")
    assert query_rows(place, "SELECT count(*), min(n) FROM kept") == [(1000, 1)]
    assert query_rows(place, "SHOW wal_level") == [("logical",)]
    assert postgres.pid is not None
    postgres.stop()
    assert not (postgres.service.data / "postmaster.pid").exists()  # it stopped cleanly
    postgres.start()


def test_it_never_runs_as_root_and_asks_for_its_password(postgres, events_place):
    owner = (postgres.service.data / "PG_VERSION").stat().st_uid
    assert owner != 0
    assert stat.S_IMODE((postgres.service.folder / "password").stat().st_mode) == 0o600
    wrong = replace(events_place, password="guessed")
    with pytest.raises(UnavailableError, match="does not answer") as refused:
        connect(wrong)
    assert "password authentication failed" in refused.value.why


def test_the_password_is_drawn_once_for_each_folder(tmp_path):
    first = password_of(tmp_path / "a")
    assert first == password_of(tmp_path / "a")
    assert first != password_of(tmp_path / "b")


def test_its_tables_are_made_once_however_many_ask(events_place):
    assert migrate(events_place) == (1,)
    assert migrate(events_place) == ()
    found = query_rows(events_place, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    assert {name for (name,) in found} == {
        *("business_events", "event_headers", "headgate_migrations"),
        *("cars", "loans", "loan_payments", "service_records", "parts_used", "service_details"),
    }
    keys = query_rows(events_place, "SELECT count(*) FROM pg_constraint WHERE contype = 'f'")
    assert keys == [(7,)]  # the header's and six entities'


def test_a_second_server_on_the_same_port_says_that_it_is_taken(postgres, tmp_path):
    second = Running(PostgresServer(tmp_path, port=postgres.service.port), READY_SECONDS)
    assert answers(second.service.port), "the first one answers there"
    with pytest.raises(UnavailableError) as refused, second:
        pass
    assert refused.value.why == "its port is in use"


@pytest.mark.slow
def test_the_supervisor_restarts_a_killed_server_on_its_port(tmp_path):
    local = LocalEnvironment(tmp_path)
    local.environ["POSTGRES_PORT"] = str(any_port())
    files = LocalFiles(local.home)

    def server():
        state = files.read_state()
        found = state.service(POSTGRES) if state else None
        assert found is not None
        return found

    try:
        local.run("local", "up", "--only", "postgres")
        first = server()
        endpoints = files.read_endpoints()
        assert endpoints["POSTGRES_PORT"] == local.environ["POSTGRES_PORT"]
        place = Place(
            endpoints["POSTGRES_HOST"],
            int(endpoints["POSTGRES_PORT"]),
            endpoints["POSTGRES_USER"],
            endpoints["POSTGRES_DB"],
            endpoints["POSTGRES_PASSWORD"],
        )
        assert migrate(place) == (1,)
        assert first.pid is not None
        os.kill(first.pid, signal.SIGKILL)
        assert wait_until(
            lambda: server().state == Phase.READY and server().pid != first.pid, limit=120
        )
        assert server().address == first.address
        assert migrate(place) == ()
        assert "postgres" in local.run("local", "health")
    finally:
        local.run("local", "down")
