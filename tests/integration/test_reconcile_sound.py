"""Which records of Topic-1 the job takes, with which key and version: the hasher goes by the same table."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.reconcile_messages import RECORD, START
from tests.support.reconcile_sql import VIEWS, run_script

from headgate.compile.dataset import PLACEHOLDERS
from headgate.compile.rules.compile import compile_table
from headgate.compile.rules.judge import load_judged
from headgate.compile.script import parse_script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def test_the_job_takes_what_the_table_of_records_calls_sound(spark: SparkSession) -> None:
    session = spark.newSession()
    judged = load_judged(ROOT / "rules" / "topic1.yml", PLACEHOLDERS).tables[0]
    script = parse_script("business", compile_table(judged, "rules/topic1.yml").text)
    run_script(session, script, [], START + timedelta(days=500))
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
    taken = {row["offset"]: (row["pk"], row["version"]) for row in found}
    names = list(cases)
    assert {names[at]: told for at, told in taken.items()} == {
        name: (case["key"], micros(case["version"]))
        for name, case in cases.items()
        if case["sound"]
    }


def micros(version: str | None) -> int:
    at = datetime.fromisoformat(version) if version else START
    return (at - EPOCH) // timedelta(microseconds=1)
