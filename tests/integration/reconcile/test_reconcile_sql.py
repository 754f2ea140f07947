"""The SQL of a reconciled pair says of every key what the pure function says, in both ANSI modes."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.reconcile_messages import (
    RECORD,
    START,
    random_messages,
    states_of,
)
from tests.support.reconcile_sql import VIEWS, run_script, set_batch_time
from tests.support.rule_tables import script_of

from headgate.core.sql.script import PLACEHOLDERS, Script
from headgate.quality.compile.file import compile_table
from headgate.quality.compile.resolve import load_judged
from headgate.quality.spec.reconcile_checks import Limits
from headgate.reconcile.decision_table import Verdict, judge
from headgate.reconcile.state import SIDES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
ANSI = "spark.sql.ansi.enabled"
LIMITS = Limits()
# The states of all messages, as a batch or a sweep binds them: of a window or whole, amid the input or at its end.
BOUND = "SELECT * EXCEPT (whole, ended), {whole} AS whole, {ended} AS ended FROM dq_states_business"
COLUMNS = (
    "pk verdict provisional settled rollup dq_reason deadline onprem_version cloud_version"
    " onprem_read_at cloud_read_at hash_onprem hash_cloud within_grace late stale conflict id"
).split()


@pytest.fixture(scope="module")
def script() -> Script:
    judged = load_judged(ROOT / "rules" / "topic1.yml", PLACEHOLDERS).tables[0]
    return script_of(compile_table(judged, "rules/topic1.yml"), judged)


@pytest.fixture(scope="module")
def session(spark: SparkSession, script: Script) -> SparkSession:
    """A session with the views of the file over no message; tests bind its sources anew."""
    found = spark.newSession()
    run_script(found, script, [], START)
    return found


def told(verdict: Verdict) -> tuple[Any, ...]:
    found = {
        **{name: getattr(verdict, name) for name in COLUMNS if hasattr(verdict, name)},
        "id": verdict.id_in("business"),
        "verdict": verdict.status,
        "dq_reason": verdict.reason,
    }
    return tuple(_plain(found[name]) for name in COLUMNS)


def _plain(value: object) -> object:
    if not isinstance(value, datetime):
        return value
    return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC)


def found_in(session: SparkSession, view: str) -> dict[str, tuple[Any, ...]]:
    times = {"deadline", *(name for name in COLUMNS if name.endswith(("version", "read_at")))}
    columns = [f"unix_micros({name}) AS {name}" if name in times else name for name in COLUMNS]
    rows = session.sql(f"SELECT {', '.join(columns)} FROM {view}").collect()
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return {
        row["pk"]: tuple(
            epoch + timedelta(microseconds=row[name])
            if name in times and row[name] is not None
            else row[name]
            for name in COLUMNS
        )
        for row in rows
    }


def test_s1_23_to_35_messages_of_the_documents_get_their_status(session: SparkSession) -> None:
    """As they are written there: fields over several lines, times that end in Z."""
    cases = json.loads((ROOT / "tests/fixtures/reconcile/contracts.json").read_text("utf-8"))
    set_batch_time(session, START + timedelta(days=500))
    for side, topic in zip(SIDES, ("topic1", "topic2"), strict=True):
        rows = [
            (c["pk"].encode(), json.dumps(c[topic], indent=2).encode(), topic, 0, at, START, None)
            for at, c in enumerate(cases)
            if c[topic] is not None
        ]
        session.createDataFrame(rows, RECORD).createOrReplaceTempView(VIEWS[side])
    found = session.sql("SELECT * FROM dq_hash_check")
    assert found.columns == ["event_id", "pk", "hash_onprem", "hash_cloud", "dq_status"]
    assert {row["pk"]: row["dq_status"] for row in found.collect()} == {
        c["pk"]: c["dq_status"] for c in cases
    }
    keys = session.sql("SELECT event_id, hash_onprem, pk, event_ts FROM topic1_with_pk").collect()
    assert {row["event_id"] for row in keys} == {f"evt-{c['pk']}" for c in cases}
    (first,) = session.sql(
        "SELECT partitionColumns[0].value AS key, CAST(event_ts AS STRING) AS at"
        " FROM topic1_onprem WHERE event_id = 'evt-1234567'"
    ).collect()
    assert first["key"] == "1234567"
    (counted,) = session.sql(
        "SELECT `dq.cassandra.hash_match` AS n FROM dq_metrics_business"
        " WHERE `dq.cassandra.hash_match` > 0"
    ).collect()
    assert counted["n"] == 1


def test_the_job_takes_what_the_table_of_records_calls_sound(session: SparkSession) -> None:
    """With which key and version: the hasher goes by the same table."""
    set_batch_time(session, START + timedelta(days=500))
    cases = json.loads((ROOT / "tests/fixtures/reconcile/sound.json").read_text("utf-8"))
    rows = [
        (b"k", case["text"].encode(), "topic1", 0, at, START, None)
        for at, case in enumerate(cases.values())
    ]
    session.createDataFrame(rows, RECORD).createOrReplaceTempView(VIEWS["onprem"])
    found = session.sql(
        "SELECT offset, pk, unix_micros(version) AS version FROM dq_messages_business"
        " WHERE side = 'onprem'"
    ).collect()
    names = list(cases)
    assert {names[row["offset"]]: (row["pk"], row["version"]) for row in found} == {
        name: (case["key"], micros(case["version"]))
        for name, case in cases.items()
        if case["sound"]
    }


def micros(version: str | None) -> int:
    at = datetime.fromisoformat(version) if version else START
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@pytest.mark.parametrize("ansi", ["true", pytest.param("false", marks=pytest.mark.slow)])
def test_sql_and_python_say_the_same_of_random_keys(
    spark: SparkSession, script: Script, ansi: str
) -> None:
    messages = random_messages(Random(7), 1_200)
    session = spark.newSession()
    session.conf.set(ANSI, ansi)
    run_script(session, script, messages, START)
    times = [START + timedelta(minutes=minutes) for minutes in (15, 240)]
    seen: Counter[str] = Counter()
    run = script.view("dq_states_business")
    for whole, ended in ((True, False), (True, True), (False, False)):
        for at in times:
            set_batch_time(session, at)
            session.sql(run)
            bound = session.sql(BOUND.format(whole=whole, ended=ended))
            bound.createOrReplaceTempView("dq_states_business")
            states = states_of(messages, at)
            expected = {
                pk: told(judge(state, at, LIMITS, whole=whole, ended=ended))
                for pk, state in states.items()
            }
            assert found_in(session, "dq_results_business") == expected
            seen.update(row[1] for row in expected.values() if whole)
    assert len(seen) == 12, f"not every status was met: {seen}"
