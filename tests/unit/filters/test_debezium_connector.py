"""The connector of the events: what it is rendered as, and what it never says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from headgate.cli.connect import of_events, specs_of
from headgate.cli.main import cli
from headgate.config.settings import Settings
from headgate.errors import UnavailableError
from headgate.filters.events.database import MIGRATIONS, migrations
from headgate.reconcile.cassandra.connector import notices

CANARY = "canary_51b7"


def settings(**changes: object) -> Settings:
    given = {"postgres_host": "db.example", "postgres_password": CANARY, **changes}
    return Settings.model_validate(given)


def test_it_reads_one_table_and_unwraps_each_change_into_one_flat_record():
    config = of_events(settings()).config
    assert config["connector.class"] == "io.debezium.connector.postgresql.PostgresConnector"
    assert config["plugin.name"] == "pgoutput"
    assert config["table.include.list"] == "public.event_headers"
    assert config["transforms"] == "unwrap,shape,key,route"
    assert config["transforms.unwrap.add.fields"] == "op,table,ts_ms"
    assert config["transforms.unwrap.add.fields.prefix"] == "__"
    assert config["transforms.route.replacement"] == "raw-event-headers"
    assert config["value.converter.schemas.enable"] == "false"


def test_it_comes_back_by_itself_a_second_after_postgresql_does():
    config = of_events(settings()).config
    assert config["errors.max.retries"] == "-1"
    assert config["retriable.restart.connector.wait.ms"] == "1000"


def test_its_password_is_a_reference(project: Path, monkeypatch: pytest.MonkeyPatch):
    connector = of_events(settings())
    assert connector.config["database.password"] == "${env:POSTGRES_PASSWORD}"
    assert CANARY not in connector.text
    monkeypatch.chdir(project)
    environ = {"POSTGRES_HOST": "db.example", "POSTGRES_PASSWORD": CANARY}
    shown = CliRunner().invoke(cli, ["connect", "render", "events"], env=environ)
    assert json.loads(shown.stdout)["config"] == dict(connector.config)
    assert not notices(connector)


def test_without_a_password_none_is_named():
    assert "database.password" not in of_events(settings(postgres_password=None)).config


def test_its_topic_is_made_with_three_partitions_for_seven_days():
    (spec,) = specs_of(of_events(settings(filter_source_topic="changes")))
    assert (spec.name, spec.partitions, spec.retention_days) == ("changes", 3, 7)


def test_where_there_is_no_postgresql_it_says_how_to_get_one():
    with pytest.raises(UnavailableError) as refused:
        of_events(settings(postgres_host=None))
    assert "local up --with postgres" in refused.value.fix


def test_migrations_are_numbered_without_a_gap():
    assert [number for number, _ in migrations()] == [
        *range(1, len([*MIGRATIONS.glob("*.sql")]) + 1)
    ]
