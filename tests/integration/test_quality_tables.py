"""A pair of tables of the lake as a job: columns checked before it begins, each dead letter once."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.support.pipeline import Pipeline
from tests.support.quality_job import QualityJob

from headgate.errors import DeclarationError

PAIR = """
version: 2
metadata: {env: test, pipeline: tests}
metrics: {namespace: dq.test, window: 1 HOUR}
tables:
  - name: %(name)s
    pk: id
    sources:
      onprem: {iceberg: given.%(name)s_a, table: %(name)s_onprem, event_time: at,
               columns: {id: BIGINT, action: STRING, amount: %(amount)s, h1: STRING, at: TIMESTAMP(3)}}
      cloud: {iceberg: given.%(name)s_b, table: %(name)s_cloud, columns: {id: BIGINT, h2: STRING}}
    hash: {onprem_field: h1, cloud_field: h2}
    rules:
      - {name: gone, when: "{t1}.action = 'DELETE'", on_fail: dead_letter}
"""
ONE, OTHER = "a" * 64, "b" * 64
TIME = "TIMESTAMP '2024-01-01 10:00:00Z'"


def declare(pipeline: Pipeline, amount: str) -> None:
    folder = pipeline.settings.root / "rules"
    folder.mkdir(exist_ok=True)
    text = PAIR % {"name": pipeline.name, "amount": amount}
    (folder / "pair.yml").write_text(text)


@pytest.mark.slow
def test_two_tables_are_judged_and_each_dead_letter_is_written_once(pipeline: Pipeline) -> None:
    quality = QualityJob(pipeline)
    quality.sql("CREATE NAMESPACE IF NOT EXISTS lake.given")
    columns = "id STRING, action STRING, amount DOUBLE, h1 STRING, at TIMESTAMP"
    quality.sql(f"CREATE TABLE lake.given.{{t}}_a ({columns}) USING iceberg")
    quality.sql("CREATE TABLE lake.given.{t}_b (id BIGINT, h2 STRING) USING iceberg")
    rows = [
        f"('1', 'UPSERT', 1, '{ONE}', {TIME})",
        f"('2', 'DELETE', 1, '{ONE}', {TIME})",
        f"('abc', 'UPSERT', 1, '{ONE}', {TIME})",
        f"(NULL, 'UPSERT', 1, '{ONE}', {TIME})",
    ]
    quality.sql(f"INSERT INTO lake.given.{{t}}_a VALUES {', '.join(rows)}")
    quality.sql(f"INSERT INTO lake.given.{{t}}_b VALUES (1, '{OTHER}'), (2, '{ONE}')")
    declare(pipeline, '"DECIMAL(10, 2)"')
    with pytest.raises(DeclarationError) as caught:
        pipeline.process("quality")
    assert "amount: declared as DECIMAL(10, 2), and given." in caught.value.why
    assert "has DOUBLE" in caught.value.why

    declare(pipeline, "DOUBLE")
    wanted = {"newest": 3, "dead_letter": 1, "refused": 2}
    for _ in range(2):
        pipeline.process("quality")
        assert quality.statuses() == {"MISMATCH": 1, "INVALID": 1}
        assert pipeline.ledger("quality")[-1].outcomes == wanted
        codes = Counter(code for code, _, _ in quality.dead_letters().elements())
        assert codes == {"dq_gone": 1, "dq_missing_pk": 1, "wrong_type": 1}
