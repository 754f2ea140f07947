"""`headgate reconcile hasher` as it is called: what it plans, and what it refuses."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner

from headgate.cli.main import cli
from headgate.config.settings import load_settings
from headgate.errors import UnavailableError, UsageError
from headgate.reconcile.cassandra.session import place_of
from headgate.reconcile.cli.hasher import METRICS_PORT, planned, words
from headgate.reconcile.hasher.lookups import Lookups, Table
from headgate.reconcile.hasher.metrics import Counts, HasherMetrics, metering
from headgate.reconcile.hasher.plan import Given
from headgate.reconcile.hasher.readings import Rereads
from headgate.reconcile.hasher.run import Hashed
from headgate.reconcile.results import CurrentVerdict

ROOT = Path(__file__).parents[3]
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def shipped(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the shipped rule sets and contracts."""
    for name in ("rules", "contracts"):
        shutil.copytree(ROOT / name, project / name)
    shutil.copy(ROOT / "rules.yaml", project / "rules.yaml")
    monkeypatch.setenv("BOOTSTRAP_SERVERS", "127.0.0.1:1")
    monkeypatch.chdir(project)
    return project


def test_the_shipped_table_is_planned_from_its_declaration(shipped: Path) -> None:
    plan = planned(load_settings(shipped), "business", Given())
    assert plan.topics == ("topic1", "topic1.reread")
    assert (plan.cloud_topic, plan.letters_topic) == ("topic2", "dlq-cassandra-cloud")
    assert plan.cassandra_table == "cloud_keyspace.business_table"
    assert (plan.key, plan.version) == (("pk",), "last_updated")
    assert plan.fields == ("col1", "col2", "col3", "col4")
    assert (plan.job, plan.group) == ("hasher-business", "headgate-hasher-business")
    assert plan.cloud.hash == "hash_cloud"
    assert plan.reread_after == 450


def test_shorter_times_of_the_settings_bring_the_second_look_forward(
    shipped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECONCILE_WINDOW", "20 SECONDS")
    monkeypatch.setenv("RECONCILE_GRACE", "10 SECONDS")
    assert planned(load_settings(shipped), "business", Given()).reread_after == 15


def test_change_events_come_from_the_tables_own_topic_in_a_group_of_their_own(
    shipped: Path,
) -> None:
    plan = planned(load_settings(shipped), "business", Given(mode="cdc"))
    assert plan.topics == ("cassandra.cloud_keyspace.business_table",)
    assert plan.group == "headgate-hasher-business-cdc"
    assert plan.tombstones


def test_a_table_without_rows_in_cassandra_is_refused(shipped: Path) -> None:
    with pytest.raises(UsageError, match="says nothing of rows in Cassandra"):
        planned(load_settings(shipped), "customer", Given())


def test_without_a_cassandra_it_says_how_to_start_one(shipped: Path) -> None:
    with pytest.raises(UnavailableError) as raised:
        place_of(load_settings(shipped))
    assert "local up --with cassandra" in raised.value.fix


def test_help_shows_every_mode() -> None:
    shown = CliRunner().invoke(cli, ["reconcile", "hasher", "--help"])
    assert shown.exit_code == 0
    assert all(mode in shown.output for mode in ("lookup", "cdc"))


def test_another_mode_is_refused_with_those_there_are() -> None:
    shown = CliRunner().invoke(cli, ["reconcile", "hasher", "business", "--mode", "poll"])
    assert shown.exit_code == 2
    assert "'poll' is not one of 'lookup', 'cdc'" in shown.output


def test_the_summary_says_only_what_happened() -> None:
    done = Hashed("business", "lookup", 5, 4, 1, 0, 0, {"missing_pk": 1}, 0, 0, 0, 0, 4, 2.0, False)
    assert words(done).splitlines() == [
        "business (lookup): 5 records, 4 readings in 2.0 s (2 lookups/s)",
        "  rows not found                 1",
        "  skipped, missing_pk            1",
    ]


def test_it_listens_on_a_documented_port_or_the_next_free_one(
    shipped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Given] = []
    done = Hashed("business", "lookup", 0, 0, 0, 0, 0, {}, 0, 0, 0, 0, 0, 0.0, False)

    def run(_table: str, chosen: Given) -> Hashed:
        given.append(chosen)
        return done

    monkeypatch.setattr("headgate.reconcile.cli.hasher.hashed", run)
    CliRunner().invoke(cli, ["reconcile", "hasher", "business"], catch_exceptions=False)
    assert given[0].metrics_port == METRICS_PORT
    metrics = HasherMetrics("t", "j", Counts(), Lookups(cast("Table", None)), Rereads(1))
    with (
        metering(metrics, given[0], None, Quiet()) as first,
        metering(metrics, given[0], None, Quiet()) as second,
    ):
        assert METRICS_PORT <= first < second


class Quiet:
    def say(self, words: str) -> None: ...


def asked_again(monkeypatch: pytest.MonkeyPatch, *keys: str) -> dict[str, datetime | None]:
    asked: dict[str, datetime | None] = {}

    def take(_plan: object, wanted: Mapping[str, datetime | None]) -> None:
        asked.update(wanted)

    monkeypatch.setattr("headgate.reconcile.hasher.publisher.ask_again", take)
    named = [word for key in keys for word in ("--key", key)]
    done = CliRunner().invoke(cli, ["reconcile", "reread", "business", *named])
    assert done.exit_code == 0, done.output
    return asked


@pytest.mark.usefixtures("shipped")
def test_a_key_is_asked_for_again_at_the_newest_version_that_was_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def verdict(key: str, onprem: datetime | None, cloud: datetime | None) -> CurrentVerdict:
        more = (None, None, True, AT, "MISSING_CLOUD", None, "", AT, "missing")
        return CurrentVerdict(key, "MISSING_CLOUD", onprem, cloud, *more)

    told = [verdict("a", AT, None), verdict("b", AT, AT + timedelta(seconds=1))]
    monkeypatch.setattr("headgate.reconcile.results.current_verdicts", lambda *_: told)
    versions = {"a": AT, "b": AT + timedelta(seconds=1), "c": None}
    assert asked_again(monkeypatch, "a", "b", "c") == versions


@pytest.mark.usefixtures("shipped")
def test_a_key_of_which_nothing_was_judged_is_asked_for_as_it_is_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert asked_again(monkeypatch, "a") == {"a": None}
