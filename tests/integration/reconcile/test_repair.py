"""A repair against a real Cassandra and a real broker: the verdicts follow, nothing newer is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.hasher_harness import (
    AT,
    HasherHarness,
    event,
    hash_of,
    row_of,
    write_project,
)

from headgate.config.settings import Settings, load_settings
from headgate.local.process import wait_until
from headgate.quality.spec.loader import load_rules
from headgate.quality.spec.reconcile_checks import Limits
from headgate.quality.spec.rule_set import RuleTable
from headgate.reconcile.cassandra.session import Cassandra, Place, session_at
from headgate.reconcile.decision_table import judge
from headgate.reconcile.hasher.requests import reread_topic
from headgate.reconcile.repair.plan import CLOUD_NEWER, Item
from headgate.reconcile.repair.run import need_open_journal, new_journal, open_journal
from headgate.reconcile.repair.table_repairs import Repairs, open_repairs
from headgate.reconcile.repair.targets import NO_EFFECT, micros
from headgate.reconcile.row_diff import EQUAL
from headgate.reconcile.rows import open_rows
from headgate.reconcile.state import Reading, Side, State, merge, of_message

LATE = AT + timedelta(hours=2)
SCHEMA = pa.schema(
    {
        "pk": pa.string(),
        "col1": pa.string(),
        "col2": pa.decimal128(18, 2),
        "col3": pa.timestamp("us", tz="UTC"),
        "col4": pa.float64(),
        "last_updated": pa.timestamp("us", tz="UTC"),
    }
)


@dataclass(frozen=True)
class Verdict:
    """What a repair asks of a key's verdict."""

    pk: str
    verdict: str
    onprem_version: datetime | None
    action: str | None


class Nobody:
    def update(self, done: int) -> None: ...


@dataclass
class Shop:
    """A lab whose on-prem rows stand in a Parquet file, and whose verdicts are judged from topics."""

    harness: HasherHarness
    settings: Settings
    table: RuleTable

    def onprem(self, rows: Sequence[dict[str, object]]) -> None:
        file = self.settings.root / "onprem.parquet"
        pq.write_table(pa.Table.from_pylist(list(rows), schema=SCHEMA), file)

    def verdicts(self, at: datetime = LATE) -> dict[str, Verdict]:
        states: dict[str, State] = {}
        topics: dict[Side, str] = {"onprem": self.harness.topic, "cloud": self.harness.cloud_topic}
        for side, topic in topics.items():
            for got in self.harness.records(topic):
                fields = json.loads(got.value or b"{}")
                time = fields["event_ts" if side == "onprem" else "cloud_ts"]
                reading = Reading(
                    version=datetime.fromisoformat(time),
                    partition=got.partition,
                    offset=got.offset,
                    hash=fields.get(f"hash_{side}"),
                    hash_version=2,
                    action=fields.get("action", "UPSERT") if side == "onprem" else None,
                    read_at=AT,
                )
                pk = got.key.decode()
                state = of_message(side, pk, reading)
                states[pk] = merge(states[pk], state) if pk in states else state
        return {pk: self._verdict(pk, state, at) for pk, state in states.items()}

    def statuses(self) -> dict[str, str]:
        return {pk: each.verdict for pk, each in self.verdicts().items()}

    def current(
        self,
        _settings: Settings,
        _table: str,
        statuses: Sequence[str],
        keys: Sequence[str] = (),
        limit: int | None = None,
    ) -> list[Verdict]:
        found = [v for v in self.verdicts().values() if not keys or v.pk in keys]
        return [v for v in found if not statuses or v.verdict in statuses][:limit]

    def repair(self, repairs: Repairs, keys: Sequence[str] = ()) -> Any:
        from headgate.core.ledger.ops_store import utc_now

        plan = repairs.plan(repairs.broken(keys=keys))
        return plan, repairs.carry_out(repairs.begin(plan, utc_now()), 1_000, Nobody())

    @staticmethod
    def _verdict(pk: str, state: State, at: datetime) -> Verdict:
        version = state.onprem.newest.version if state.onprem else None
        action = state.onprem.newest.action if state.onprem else None
        return Verdict(pk, judge(state, at, Limits()).status, version, action)


@pytest.fixture(scope="module")
def session(cassandra: Any) -> Iterator[Cassandra]:
    with session_at(Place((cassandra.service.contact_points,), cassandra.service.port)) as opened:
        yield opened


@pytest.fixture
def shop(broker: Any, session: Cassandra, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    harness = HasherHarness(broker, session, tmp_path)
    root = write_project(harness)
    file = root / "rules" / "topic1.yml"
    text = file.read_text().replace("iceberg: onprem.business_table", "parquet: onprem.parquet")
    file.write_text(text)
    settings = load_settings(
        root,
        {
            "HEADGATE_HOME": str(tmp_path / "home"),
            "BOOTSTRAP_SERVERS": broker.bootstrap,
            "CASSANDRA_CONTACT_POINTS": ",".join(session.place.contact_points),
            "CASSANDRA_PORT": str(session.place.port),
        },
    )
    made = Shop(harness, settings, load_rules(file, {}).value.table("business"))
    monkeypatch.setattr("headgate.reconcile.repair.table_repairs.current_verdicts", made.current)
    return made


def write_time(harness: HasherHarness, key: str) -> int:
    cql = f"SELECT WRITETIME(col1) AS at FROM {harness.table} WHERE pk = '{key}'"
    return int(str(harness.cassandra.execute(cql)[0]["at"]))


def test_a_mismatch_is_repaired_and_its_verdict_becomes_match(shop: Shop) -> None:
    harness = shop.harness
    shop.onprem([row_of(key) for key in ("wrong", "missing", "newer", "fine", "buried")])
    harness.write([{"pk": "wrong", "col1": "something else"}, {"pk": "fine"}, {"pk": "zombie"}])
    harness.write([{"pk": "newer", "col1": "newer", "last_updated": AT + timedelta(minutes=1)}])
    harness.cassandra.execute(f"DELETE FROM {harness.table} WHERE pk = 'buried'")  # now: after AT
    alive = ("wrong", "missing", "newer", "fine", "buried")
    harness.send(
        [*(event(key) for key in alive), event("zombie", action="DELETE", hash_onprem=None)]
    )
    harness.run()
    assert shop.statuses() == {
        "wrong": "MISMATCH",
        "missing": "MISSING_CLOUD",
        "newer": "MISMATCH",
        "fine": "MATCH",
        "buried": "MISSING_CLOUD",
        "zombie": "ZOMBIE",
    }
    before = write_time(harness, "wrong")
    with open_repairs(shop.settings, shop.table) as repairs:
        plan, found = shop.repair(repairs)
        again = repairs.broken()
    assert {item.pk: item.action for item in plan.items} == {
        "buried": "upsert",
        "missing": "upsert",
        "wrong": "upsert",
        "zombie": "delete",
    }
    assert [(each.pk, each.why) for each in plan.skipped] == [("newer", CLOUD_NEWER)]
    assert (found.applied, found.skipped) == (3, {NO_EFFECT: 1})
    # What stood there was written after the source's version, so just after that; else at it.
    assert (write_time(harness, "wrong"), write_time(harness, "missing")) == (
        before + 1,
        micros(AT),
    )
    asked = [json.loads(got.value or b"") for got in harness.records(reread_topic(harness.topic))]
    assert {each["pk"] for each in asked} == {"wrong", "missing", "zombie"}
    assert [each.pk for each in again if each.pk == "wrong"] == ["wrong"], "nothing was read yet"
    harness.run()
    statuses = shop.statuses()
    assert (statuses["wrong"], statuses["missing"], statuses["fine"]) == ("MATCH",) * 3
    assert statuses["zombie"] == "DELETE_EVENT"
    assert (statuses["newer"], statuses["buried"]) == ("MISMATCH", "MISSING_CLOUD")
    with open_rows(shop.settings, shop.table) as rows:
        assert [row.found for row in rows.why(["wrong", "missing"])] == [EQUAL, EQUAL]
        (newer,) = rows.why(["newer"])
    assert [(d.column, d.kind, d.cloud) for d in newer.differences] == [("col1", "real", "'newer'")]


def test_a_row_that_changes_under_the_repair_is_left_alone(shop: Shop) -> None:
    harness = shop.harness
    keys = [f"k{at}" for at in range(6)]
    shop.onprem([row_of(key) for key in keys])
    harness.write([{"pk": key, "col1": "wrong"} for key in keys])
    harness.send([event(key) for key in keys])
    harness.run()
    from headgate.core.ledger.ops_store import utc_now

    with open_repairs(shop.settings, shop.table) as repairs:
        plan = repairs.plan(repairs.broken())
        journal = repairs.begin(plan, utc_now())
        harness.write([{"pk": "k2", "col1": "newer", "last_updated": AT + timedelta(minutes=1)}])
        stops = iter([False, True])
        first = repairs.carry_out(journal, 3, Nobody(), lambda: next(stops))
        assert (first.applied, first.skipped, first.left) == (2, {CLOUD_NEWER: 1}, 3)
        rest = repairs.carry_out(need_open_journal(shop.settings.home, "business"), 1_000, Nobody())
    assert (rest.applied, rest.left) == (5, 0)
    assert len(harness.records(reread_topic(harness.topic))) == 5
    cql = f"SELECT pk, col1 FROM {harness.table}"
    assert {row["pk"]: row["col1"] for row in harness.cassandra.execute(cql)} == {
        **{key: f"text of {key}" for key in keys},
        "k2": "newer",
    }


def test_a_repair_can_be_asked_for_on_a_topic(shop: Shop) -> None:
    from dataclasses import replace

    harness = shop.harness
    shop.onprem([row_of("gone")])
    harness.send([event("gone", hash_onprem=hash_of("gone"))])
    harness.run()
    with open_repairs(shop.settings, shop.table) as repairs:
        by_topic = replace(repairs, declared=replace(repairs.declared, to="topic"))
        _, found = shop.repair(by_topic)
    (got,) = harness.records(f"{harness.topic}.repair")
    told = json.loads(got.value or b"")
    assert (found.applied, got.key) == (1, b"gone")
    assert told == {
        "pk": "gone",
        "action": "UPSERT",
        "version": "2026-03-01T12:00:00.123000Z",
        "status": "MISSING_CLOUD",
        "repair": found.repair,
    }


# The command line in a process of its own; every key is said to be a mismatch until it is repaired.
DRIVER = """
import sys
from datetime import datetime
from types import SimpleNamespace

import headgate.reconcile.repair.table_repairs as put_together
from headgate.cli.main import cli

count, version, *words = sys.argv[1:]


def current(settings, table, statuses, keys=(), limit=None):
    names = keys or [f"k{at:03d}" for at in range(int(count))]
    at = datetime.fromisoformat(version)
    return [
        SimpleNamespace(
            pk=name, verdict="MISMATCH", onprem_version=at, action="UPSERT"
        )
        for name in names
    ]


put_together.current_verdicts = current
cli.main(words, standalone_mode=False)
"""


def started(
    shop: Shop, count: int, *words: str, log: Path | None = None
) -> subprocess.Popen[bytes]:
    """The command, running; what it says goes to the log."""
    place = shop.harness.cassandra.place
    environ = {
        **os.environ,
        "HEADGATE_HOME": str(shop.settings.home),
        "BOOTSTRAP_SERVERS": shop.harness.broker.bootstrap,
        "CASSANDRA_CONTACT_POINTS": ",".join(place.contact_points),
        "CASSANDRA_PORT": str(place.port),
    }
    told = [str(count), AT.isoformat(), "reconcile", "repair", "business", *words]
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, *told],
        cwd=shop.settings.root,
        env=environ,
        stderr=log.open("wb") if log else None,
    )


@pytest.mark.slow
def test_a_killed_repair_goes_on_and_every_key_is_repaired_once(shop: Shop) -> None:
    harness, keys = shop.harness, [f"k{at:03d}" for at in range(60)]
    shop.onprem([row_of(key) for key in keys])
    harness.write([{"pk": key, "col1": "wrong"} for key in keys])
    before = {key: write_time(harness, key) for key in keys}
    repair = started(shop, len(keys), "--yes", "--per-second", "10")
    try:
        assert wait_until(lambda: len(done_keys(shop)) >= 20, 120)
    finally:
        repair.kill()
        repair.wait(30)
    left = need_open_journal(shop.settings.home, "business").left
    assert 0 < len(left) <= 40
    rest = started(shop, len(keys), "--resume", "--yes", "--per-second", "100")
    assert rest.wait(60) == 0
    with open_rows(shop.settings, shop.table) as rows:
        assert {row.found for row in rows.why(keys)} == {EQUAL}
    # One microsecond after what stood there, for every key: none was written a second time.
    assert {key: write_time(harness, key) for key in keys} == {
        k: at + 1 for k, at in before.items()
    }
    asked = Counter(got.key.decode() for got in harness.records(reread_topic(harness.topic)))
    assert set(asked) == set(keys)
    assert sum(asked.values()) <= len(keys) + 10


@pytest.mark.slow
def test_declared_statuses_are_repaired_by_themselves_and_what_was_left_open_first(
    shop: Shop,
) -> None:
    harness, keys = shop.harness, [f"k{at:03d}" for at in range(5)]
    declare_automatic(shop)
    shop.onprem([row_of(key) for key in keys])
    harness.write([{"pk": key, "col1": "wrong"} for key in keys])
    item = Item("k003", "MISMATCH", "upsert", AT)
    new_journal(shop.settings.home, "business", "cassandra", [item], AT)
    repair = started(shop, 5, "--automatic", "--rounds", "1")
    assert repair.wait(60) == 0
    assert open_journal(shop.settings.home, "business") is None
    with open_rows(shop.settings, shop.table) as rows:
        assert {row.found for row in rows.why(keys)} == {EQUAL}


@pytest.mark.slow
@pytest.mark.parametrize("away", ["cassandra", "broker"])
def test_an_outage_is_waited_out_and_every_key_is_repaired_once(
    shop: Shop, cassandra: Any, away: str, tmp_path: Path
) -> None:
    harness, keys, log = shop.harness, [f"k{at:03d}" for at in range(60)], tmp_path / "repair.log"
    declare_automatic(shop)
    shop.onprem([row_of(key) for key in keys])
    harness.write([{"pk": key, "col1": "wrong"} for key in keys])
    before = {key: write_time(harness, key) for key in keys}
    pid = cassandra.pid if away == "cassandra" else harness.broker.child.pid
    repair = started(shop, len(keys), "--automatic", "--per-second", "10", log=log)
    try:
        assert wait_until(lambda: len(done_keys(shop)) >= 20, 120), log.read_text()
        os.kill(pid, signal.SIGSTOP)
        try:
            assert wait_until(lambda: "it is tried again" in log.read_text(), 120), log.read_text()
            assert 0 < len(need_open_journal(shop.settings.home, "business").left) <= 40
        finally:
            os.kill(pid, signal.SIGCONT)
        assert wait_until(lambda: "60 keys of business sent again" in log.read_text(), 120), (
            log.read_text()
        )
        assert "all answer again" in log.read_text()
        repair.send_signal(signal.SIGTERM)
        assert repair.wait(60) == 0
    finally:
        repair.kill()
        repair.wait(30)
    assert open_journal(shop.settings.home, "business") is None
    assert {key: write_time(harness, key) for key in keys} == {
        k: at + 1 for k, at in before.items()
    }


def declare_automatic(shop: Shop) -> None:
    file = shop.settings.root / "rules" / "topic1.yml"
    text = file.read_text()
    audit = "      audit: {topic: dq_reconciliation_audit}\n"
    assert audit in text
    file.write_text(text.replace(audit, f"{audit}      repair: {{automatic: [MISMATCH]}}\n"))


def done_keys(shop: Shop) -> list[str]:
    found = open_journal(shop.settings.home, "business")
    return list(found.outcomes) if found else []
