"""A command with a home of its own sees the shipped profile and nothing of the user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.config.settings import load_settings
from headgate.demo.cli import demo_environment
from headgate.demo.own_home import alone, embedded_environment, stopped_on_failure
from headgate.errors import ConflictError, UnavailableError


def test_the_chosen_profile_does_not_leak_into_the_demo(project: Path) -> None:
    (project / ".env").write_bytes((project / "env" / "local.env").read_bytes())
    home = project / ".headgate" / "demo"
    environ = embedded_environment(project, home, {"PATH": "/bin", "S3_ENDPOINT": "http://x:9000"})

    settings = load_settings(project, environ)

    assert (settings.broker, settings.catalog, settings.storage) == ("embedded", "jdbc", "local")
    assert settings.s3_endpoint is None
    assert settings.warehouse == str(home / "warehouse")
    assert environ["PATH"] == "/bin"


def test_running_services_of_the_demo_are_found(project: Path) -> None:
    (project / ".env").write_bytes((project / "env" / "local.env").read_bytes())
    home = project / ".headgate" / "demo"
    home.mkdir(parents=True)
    (home / "endpoints.env").write_text("BOOTSTRAP_SERVERS=127.0.0.1:9\n")

    settings = load_settings(project, embedded_environment(project, home, {}))

    assert settings.bootstrap_servers == "127.0.0.1:9"


@pytest.mark.parametrize("name", ["SPARK_MASTER", "SPARK_DRIVER_MEMORY", "KAFKA_PORT"])
def test_how_much_of_the_machine_is_used_stays_the_users_choice(project: Path, name: str) -> None:
    value = {"SPARK_MASTER": "local[1]", "SPARK_DRIVER_MEMORY": "1g", "KAFKA_PORT": "19099"}[name]

    environ = embedded_environment(project, project / "home", {name: value})

    assert environ[name] == value


def test_the_demo_of_another_dataset_takes_nothing_of_the_shipped_one(project: Path) -> None:
    home = project / ".headgate" / "demo"
    shipped = demo_environment(project, home, {"DATASET": "mine"}, None)
    assert (shipped["DATASET"], shipped["TOPIC"]) == ("taxi", "taxi.raw_trips")
    assert demo_environment(project, home, {}, "taxi") == demo_environment(project, home, {}, None)

    other = load_settings(project, demo_environment(project, home, {}, "orders"))

    assert (other.dataset, other.topic, other.dlq_topic) == (
        *("orders", "orders.events", "orders.events.dlq"),
    )
    assert other.data_file == home / "data" / "events.parquet"


def test_a_second_command_does_not_empty_the_home_under_the_first(tmp_path: Path) -> None:
    with alone(tmp_path / "demo"), pytest.raises(ConflictError), alone(tmp_path / "demo"):
        pass


def test_the_advice_of_a_failed_demo_names_its_own_home(tmp_path: Path) -> None:
    home = tmp_path / "a clone" / "demo"
    failure = UnavailableError("the engine could not be started", fix="headgate local logs")
    with pytest.raises(UnavailableError) as caught, stopped_on_failure(home):
        raise failure
    assert caught.value.fix == f"export HEADGATE_HOME='{home}'; headgate local logs"
