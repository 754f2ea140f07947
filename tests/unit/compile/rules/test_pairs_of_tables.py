"""Two tables of the lake as a pair: each dead letter once, and the same row is always the newest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.rule_files import load_rule_file
from tests.support.rule_tables import compile_script

from headgate.compile.rules.model import JudgedTable

PAIR = """\
version: 2
tables:
  - name: both
    pk: id
    sources:
      onprem: {%s, table: t_a, event_time: at,
               columns: {id: BIGINT, action: STRING, h1: STRING, at: TIMESTAMP(3)}}
      cloud: {%s, table: t_b, event_time: at, columns: {id: BIGINT, h2: STRING, at: TIMESTAMP(3)}}
    hash: {onprem_field: h1, cloud_field: h2}
    rules:
      - {name: gone, when: "{t1}.action = 'DELETE'", on_fail: dead_letter}
"""
TABLES, TOPICS = ("iceberg: a.a", "iceberg: a.b"), ("topic: a", "topic: b")


def pair(folder: Path, onprem: str, cloud: str) -> JudgedTable:
    return load_rule_file(folder, PAIR % (onprem, cloud)).tables[0]


@pytest.mark.parametrize(
    ("sources", "records", "rows"),
    [
        (TABLES, 0, 1),
        (TOPICS, 2, 0),
        ((TOPICS[0], TABLES[1]), 1, 1),
        ((TABLES[0], TOPICS[1]), 1, 1),
    ],
)
def test_a_pair_has_one_letter_as_a_record_or_as_a_row(
    tmp_path: Path, sources: tuple[str, str], records: int, rows: int
) -> None:
    refuse = compile_script(pair(tmp_path, *sources)).one("refuse")
    of_rule = [part for part in refuse.split("UNION ALL") if "dq_committed_both" in part]
    by_place = [part for part in of_rule if "record.kafka_offset = dead.kafka_offset" in part]
    as_row = [part for part in of_rule if "AND kafka_offset IS NULL" in part]
    assert (len(by_place), len(as_row), len(of_rule)) == (records, rows, records + rows)


def view(judged: JudgedTable, name: str) -> str:
    (found,) = [sql for sql in compile_script(judged).named("view") if f"VIEW {name} AS" in sql]
    return found


def test_a_pair_without_a_row_on_prem_has_the_clouds_time(tmp_path: Path) -> None:
    time = "coalesce(IF({0}.`at` BETWEEN [^,]+, {0}.`at`, NULL), session.batch_time)".format
    wanted = f"IF(t1.id IS NULL, {time('t2')}, {time('t1')}) AS _at"
    found = re.sub(
        r"TIMESTAMP_LTZ '[^']+' AND TIMESTAMP_LTZ '[^']+'",
        "[^,]+",
        " ".join(view(pair(tmp_path, *TABLES), "dq_judged_both").split()),
    )
    assert wanted in found


def test_the_newest_row_of_a_table_is_told_by_its_values(tmp_path: Path) -> None:
    newest = view(pair(tmp_path, *TABLES), "t_a_newest")
    assert "ORDER BY `at` DESC, id DESC, action DESC, h1 DESC)" in newest
    of_topic = view(pair(tmp_path, *TOPICS), "t_a_newest")
    assert "kafka_timestamp) DESC, kafka_partition DESC, kafka_offset DESC)" in of_topic


def test_a_row_is_refused_by_its_value_as_it_would_be_judged(tmp_path: Path) -> None:
    judged = pair(tmp_path, *TABLES)
    read = view(judged, "t_a_read")
    assert "WHEN id IS NULL THEN 'dq_missing_pk'" in read
    assert "WHEN id IS NOT NULL AND try_cast(id AS BIGINT) IS NULL THEN 'wrong_type'" in read
    assert view(judged, "t_a").endswith("FROM t_a_read\nWHERE _reason_code IS NULL")
    found = compile_script(judged)
    for step in ("outcomes", "refuse"):
        assert "FROM t_b_read" in found.one(step)
    assert "struct(*)" not in found.one("refuse")


HIDDEN = "{type: %s, sensitive: true}"


@pytest.mark.parametrize("side", ["t_a", "t_b"])
def test_what_is_sensitive_on_one_side_is_masked_on_both(tmp_path: Path, side: str) -> None:
    first, _, second = (PAIR % TOPICS).partition("      cloud:")
    parts = {"t_a": first, "t_b": second}
    for name, kind in {
        "id": "BIGINT",
        "h1": "STRING",
        "h2": "STRING",
        "at": "TIMESTAMP(3)",
    }.items():
        parts[side] = parts[side].replace(f"{name}: {kind}", f"{name}: {HIDDEN % kind}")
    text = f"{parts['t_a']}      cloud:{parts['t_b']}"
    results = view(load_rule_file(tmp_path, text).tables[0], "dq_results_both")
    assert "sha2(_pk, 256) AS pk" in results
    for column in ("hash_onprem", "hash_cloud"):
        assert f"IF(_{column} IS NULL, NULL, '***') AS {column}" in results
    assert results.count("'id', '***'") == 2
    assert "'h1', '***'" in results
    assert "'h2', '***'" in results
    assert "_at AS event_time" not in results


def test_a_sensitive_action_is_masked(tmp_path: Path) -> None:
    text = (PAIR % TOPICS).replace("action: STRING", f"action: {HIDDEN % 'STRING'}")
    results = view(load_rule_file(tmp_path, text).tables[0], "dq_results_both")
    assert "IF(_action IS NULL, NULL, '***') AS action" in results
