"""`headgate feed rules`: what it says beforehand, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from headgate.cli.main import cli
from headgate.errors import HeadgateError, UnavailableError, UsageError

ROOT = Path(__file__).resolve().parents[3]
START = ("--start", "2024-01-01T00:00:00Z")


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("HEADGATE_HOME", str(tmp_path))
    monkeypatch.delenv("BOOTSTRAP_SERVERS", raising=False)


def said(*words: str) -> dict[str, Any]:
    done = CliRunner().invoke(cli, ["-o", "json", "feed", "rules", *words], catch_exceptions=False)
    assert done.exit_code == 0
    return orjson.loads(done.stdout)


def refused(*words: str) -> HeadgateError:
    done = CliRunner().invoke(cli, ["feed", "rules", *words])
    assert isinstance(done.exception, HeadgateError)
    return done.exception


@pytest.mark.parametrize("table", ["customer", "orders"])
def test_a_dry_run_says_every_count_and_sends_nothing(table: str) -> None:
    planned = said(table, "--rows", "1000", "--dry-run", *START)
    planted = planned["planted"]
    assert planned["sent"] == 0
    assert all(defect["rows"] > 0 for defect in planted["defects"])
    assert sum(planted["statuses"].values()) == planted["results"] == 1000
    assert planted["counters"] == {"duplicates": 10}
    assert planted["severities"]["ERROR"] == (
        planted["metrics"]["dq.cassandra.hash_mismatch"]
        + planted["metrics"]["dq.cassandra.missing_cloud"]
        + planted["metrics"]["dq.cassandra.invalid_hash"]
    )


def test_a_share_of_ones_own_and_the_text_for_a_person() -> None:
    words = ("customer", "--rows", "200", "--dry-run", "--share", "late=0.5", *START)
    done = CliRunner().invoke(cli, ["feed", "rules", *words], catch_exceptions=False)
    assert "late                            100  → MATCH" in done.stdout
    assert "To be found again" in done.stdout


def test_what_is_called_wrongly_is_refused_with_what_to_write() -> None:
    assert refused("customer", "--share", "latte=0.1").fix == "Did you mean `late`?"
    assert "no share" in refused("customer", "--share", "late=2").what
    assert "sum to" in refused("customer", "--share", "late=0.95").what
    assert "no time" in refused("customer", "--start", "yesterday").what
    unknown = refused("custmer")
    assert isinstance(unknown, UsageError)
    assert "`customer`" in unknown.fix


def test_without_a_broker_it_says_how_to_start_one() -> None:
    away = refused("customer", "--rows", "10")
    assert isinstance(away, UnavailableError)
    assert away.fix == "start it with `headgate local up`"
