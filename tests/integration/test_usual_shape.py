"""The quick way to know that a record is sound never says so of one that the slow way refuses."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.support.dataset_events import compact, event
from tests.support.hostile_records import KINDS
from tests.support.pipeline import FILTERS, MANIFEST, ROOT

from headgate.compile.dataset import BRONZE_BATCH, compile_dataset
from headgate.compile.script import parse_script
from headgate.jobs.declaration import layouts
from headgate.spec.loader import load_dataset

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEED = 7
MUTATED = 8_000
TAGS = (
    *(b"null", b'"plain"', b"12.5", b"true", b"[]", b"{}", b'["a", 1, null]', b'{"k":{"n":[1,2]}}'),
    *(b'{"a":1,"a":2}', b"[1e999]", b'"\\u0041"', b'{"deep":[[[[[1]]]]]}', b"[1,]", b"[}", b"nul"),
)
TAGS_COLUMN = "  - {name: tags, kafka_type: JSON, bronze_type: STRING, silver_name: tags, silver_type: STRING}\n"
WITHOUT_SHAPE = "(SELECT * EXCEPT (_shape), CAST(NULL AS STRING) AS _shape FROM s_parsed)"
PIECES = (
    *(b'"', b"}", b"{", b",", b":", b" ", b"\\", b"null", b"nul", b"true", b"0", b"-", b".", b"e9"),
    *(b"e999", b"NaN", b'"id":7,', b',"n":1', b'"x":1,', b"\n", b"\xff", b"\\ud800", b"[", b"]"),
    *(b"99999999999", b"0.001", b"/**/", b"'", b"\xe2\x82\xac", b"\x00", b'{"id":1}', b"\t"),
)


def spaced(rng: Random) -> bytes:
    return json.dumps(event(rng, rng.randrange(10**6)), ensure_ascii=False).encode()


def without_nulls(rng: Random) -> bytes:
    return compact({k: v for k, v in event(rng, 1).items() if v is not None})


def tagged(rng: Random) -> bytes:
    return compact(event(rng, 1))[:-1] + b',"tags":' + rng.choice(TAGS) + b"}"


def mutated(rng: Random, text: bytes) -> bytes:
    """Up to three times something is put in, taken out, or written twice."""
    for _ in range(rng.randrange(1, 4)):
        start = rng.randrange(len(text) + 1)
        end = min(len(text), start + rng.randrange(12))
        new = (rng.choice(PIECES), b"", text[start:end] * 2)[rng.randrange(3)]
        text = text[:start] + new + text[start if new in PIECES else end :]
    return text


def texts(rng: Random) -> list[bytes]:
    hostile = [kind.make(rng) for kind in KINDS if "MB" not in kind.name for _ in range(5)]
    sound = [make(rng) for make in (spaced, without_nulls) for _ in range(1_000)]
    sound += [compact(event(rng, n)) for n in range(1_000)]
    sound += [tagged(rng) for _ in range(1_000)]
    return [*hostile, *sound, *(mutated(rng, rng.choice(sound)) for _ in range(MUTATED))]


@pytest.mark.slow
def test_quick_and_slow_judge_alike(spark: SparkSession, tmp_path: Path) -> None:
    print(f"seed {SEED}")
    manifest = tmp_path / "dataset.yml"
    pattern = "yyyy-MM-dd''T''HH:mm:ss"
    text = MANIFEST.format(name="s", topic="s", ts_format=pattern, filters=FILTERS, key="[id, at]")
    manifest.write_text(text.replace("dedup_key:", f"{TAGS_COLUMN}dedup_key:"))
    compiled = compile_dataset(load_dataset(manifest, {}), layouts(ROOT), "dataset.yml")
    script = parse_script("x", compiled.template(BRONZE_BATCH).text)
    parsed, judged, *_ = script.named("view")
    slow = judged.replace("s_judged", "s_slow").replace("s_parsed", WITHOUT_SHAPE)
    rows = [(value,) for value in texts(Random(SEED))]
    frame = spark.createDataFrame(rows, "value BINARY").selectExpr(
        *("*", "NULL AS topic", "0 AS partition", "0L AS offset", "NULL AS timestamp"),
        *("NULL AS key", "NULL AS headers"),
    )
    frame.createOrReplaceTempView("s_source")
    for statement in (*script.named("clock"), parsed, judged, slow):
        spark.sql(statement)
    found = spark.sql("SELECT kafka_value, _reason_code AS code, _shape FROM s_judged")
    judged_slowly = spark.sql("SELECT kafka_value, _reason_code AS code FROM s_slow")
    assert found.select("kafka_value", "code").exceptAll(judged_slowly).collect() == []
    kinds = Counter((row["_shape"], row["code"] is None) for row in found.collect())
    assert kinds["whole", True] > 400
    assert kinds["partial", True] > 2_000
    assert kinds[None, False] > MUTATED / 2
    rows = script.one("accept").partition("\n")[2]
    quickly, slowly = spark.sql(rows), spark.sql(rows.replace("s_judged", "s_slow"))
    assert quickly.exceptAll(slowly).collect() == []
    assert quickly.where("tags IS NOT NULL").count() > 300
    assert quickly.where("_extra IS NOT NULL").count() > 300
