"""The feeder of rule tables: same seed, same messages, and every count known beforehand."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from headgate.demo.quality.declaration import find_feed, load_feed, require_fit
from headgate.demo.quality.planting import Feeding, Order, Planted, window_of
from headgate.errors import DeclarationError, UsageError
from headgate.pipeline.generator.declaration import load_sample
from headgate.quality.compile.resolve import JudgedRule, JudgedTable
from headgate.quality.spec.rule_set import RuleSet, RuleSource, RuleTable

START = datetime(2024, 1, 1, tzinfo=UTC)
HEX = re.compile(r"[0-9a-f]{64}")

PAIR = """\
key: {field: id, prefix: C}
event_time: {field: ts, span: 1 MINUTE}
hash_of: [id, name]
columns:
  - {name: action, type: STRING, constant: UPSERT}
  - {name: name, type: STRING, code: {length: 6}}
sides:
  onprem: {id: id, action: action, hash_onprem: hash, ts: ts}
  cloud: {id: id, hash_cloud: hash, ts: ts}
defects:
  - {name: changed, share: 0.1, cloud: {rehash: true}, expect: {status: MISMATCH, rules: [mismatch]}}
  - {name: lost, share: 0.05, cloud: {drop: true}, expect: {status: MISSING_CLOUD, rules: [missing]}}
  - {name: garbled, share: 0.01, cloud: {garble: true},
     expect: {status: MISSING_CLOUD, rules: [missing], refused: 1}}
  - {name: keyless, share: 0.01, onprem: {remove: [id]}, cloud: {drop: true}, expect: {refused: 1}}
  - {name: gone, share: 0.01, onprem: {tombstone: true}, cloud: {drop: true},
     expect: {status: DELETE_EVENT, tombstones: 1}}
  - {name: twice, share: 0.02, cloud: {repeat: true}, expect: {status: MATCH}}
  - {name: older, share: 0.02, onprem: {older_first: true}, expect: {status: MATCH}}
  - {name: late, share: 0.02, onprem: {late: 2 MINUTES}, cloud: {late: 2 MINUTES},
     expect: {status: MATCH}}
  - {name: no_hash, share: 0.01, cloud: {set: {hash_cloud: nonsense}}, expect: {status: INVALID_HASH}}
"""
ONE = """\
dataset: things
event_time: {field: at, span: 30 SECONDS}
defects:
  - {name: negative, share: 0.1, onprem: {negate: [price]},
     expect: {status: INVALID, rules: [price_negative], dead_letter: true}}
  - {name: twice, share: 0.05, onprem: {repeat: true}, expect: {status: QUARANTINE, rules: [again]}}
  - {name: wrong_type, share: 0.02, onprem: {set: {price: dear}}, expect: {refused: 1}}
  - {name: surprise, share: 0.02, onprem: {add: {extra: 1}}, expect: {status: VALID}}
  - {name: late, share: 0.02, onprem: {late: 2 MINUTES}, expect: {status: VALID}}
"""
THINGS = """\
columns:
  - {name: id, type: STRING, code: {length: 12}}
  - {name: at, type: TIMESTAMP(6), time: {start: 2020-01-01T00:00:00, end: 2020-02-01T00:00:00}}
  - {name: until, type: TIMESTAMP(6), after: {column: at, seconds: lasting}}
  - {name: price, type: DOUBLE, uniform: {low: 1, high: 9}, decimals: 2}
  - {name: lasting, type: BIGINT, helper: true, constant: 60}
duplicates: 0.5
"""


def rule(name: str, status: str, severity: Any = "ERROR") -> JudgedRule:
    return JudgedRule(name, name, status, name, severity, "keep")


def judged(*rules: JudgedRule, pair: bool) -> JudgedTable:
    columns: Any = {"id": "STRING"}
    first = RuleSource(table="t", columns=columns, topic="first")
    second = RuleSource(table="u", columns=columns, topic="second", alias="t2")
    sources: Any = {"onprem": first, "cloud": second} if pair else {"onprem": first}
    table = RuleTable(name="things", pk="id", sources=sources)
    return JudgedTable(RuleSet(version=2, tables=(table,)), table, rules, (), {})


PAIRED = judged(rule("mismatch", "MISMATCH"), rule("missing", "MISSING_CLOUD", "WARN"), pair=True)
ALONE = judged(rule("price_negative", "INVALID"), rule("again", "QUARANTINE", "WARN"), pair=False)


def feeding(
    tmp_path: Path, text: str, rows: int = 1000, seed: int = 42, **shares: float
) -> Feeding:
    file = tmp_path / "things.yml"
    file.write_text(text)
    feed = load_feed(file)
    table = PAIRED if text is PAIR else ALONE
    require_fit(feed, table)
    sample = None
    if feed.value.dataset:
        (tmp_path / "sample.yml").write_text(THINGS)
        sample = load_sample(tmp_path / "sample.yml").value
    return Feeding(feed.value, table, Order(rows, seed, START, shares), sample)


def sent(feed: Feeding) -> dict[str, list[tuple[bytes | None, bytes | None]]]:
    found: dict[str, list[tuple[bytes | None, bytes | None]]] = {"onprem": [], "cloud": []}
    for block in feed.blocks():
        for side, messages in block.items():
            found[side] += [(message.key, message.value) for message in messages]
    return found


def values(messages: list[tuple[bytes | None, bytes | None]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for _, value in messages:
        try:
            rows.append(orjson.loads(value or b""))
        except orjson.JSONDecodeError:
            continue
    return rows


def test_same_seed_same_bytes_and_another_seed_other_keys(tmp_path: Path) -> None:
    once, again = sent(feeding(tmp_path, PAIR)), sent(feeding(tmp_path, PAIR))
    other = sent(feeding(tmp_path, PAIR, seed=43))
    assert once == again
    assert not {key for key, _ in once["onprem"]} & {key for key, _ in other["onprem"]}


def test_messages_have_the_shape_of_the_documents_and_both_sides_agree(tmp_path: Path) -> None:
    found = sent(feeding(tmp_path, PAIR, rows=1))
    (onprem,), (cloud,) = values(found["onprem"]), values(found["cloud"])
    assert list(onprem) == ["id", "action", "hash_onprem", "ts"]
    assert list(cloud) == ["id", "hash_cloud", "ts"]
    assert onprem["hash_onprem"] == cloud["hash_cloud"]
    assert HEX.fullmatch(onprem["hash_onprem"])
    assert re.fullmatch(r"2024-01-01T00:00:\d\d\.000Z", onprem["ts"])
    assert found["onprem"][0][0] == onprem["id"].encode() == b"C42-0000000"


def test_what_was_planted_is_what_a_count_of_the_messages_finds(tmp_path: Path) -> None:
    feed = feeding(tmp_path, PAIR)
    planted, found = feed.planted(), sent(feed)
    assert planted.messages == {"first": len(found["onprem"]), "second": len(found["cloud"])}
    assert planted.statuses == recounted(found)
    assert planted.refused == unreadable(found)
    assert planted.tombstones == sum(v is None for _, v in found["onprem"] + found["cloud"]) == 10
    assert planted.results == sum(planted.statuses.values()) == 1000 - 10
    assert planted.outcomes == {
        "accepted": sum(len(rows) for rows in found.values()) - 20 - 10,
        "refused": 20,
        "tombstone": 10,
    }
    assert planted.counters == {"duplicates": 20}
    assert planted.windows == ()
    assert [(d.name, d.rows) for d in planted.defects][:3] == [
        ("changed", 100),
        ("lost", 50),
        ("garbled", 10),
    ]


def recounted(found: dict[str, list[tuple[bytes | None, bytes | None]]]) -> dict[str, int]:
    """The statuses as an independent reader of the messages would give them."""
    newest = {
        side: {row["id"]: row for row in sorted(values(rows), key=lambda r: r["ts"]) if "id" in row}
        for side, rows in found.items()
    }
    gone = sum(value is None for rows in found.values() for _, value in rows)
    counts: Counter[str] = Counter({"DELETE_EVENT": gone} if gone else {})
    for key in newest["onprem"].keys() | newest["cloud"].keys():
        left = newest["onprem"].get(key, {}).get("hash_onprem")
        right = newest["cloud"].get(key, {}).get("hash_cloud")
        if right is None:
            counts["MISSING_CLOUD"] += 1
        elif not HEX.fullmatch(right):
            counts["INVALID_HASH"] += 1
        else:
            counts["MATCH" if left == right else "MISMATCH"] += 1
    return dict(sorted(counts.items()))


def unreadable(found: dict[str, list[tuple[bytes | None, bytes | None]]]) -> int:
    messages = [message for rows in found.values() for message in rows if message[1] is not None]
    return len(messages) - sum("id" in row for row in values(messages))


def test_every_window_of_one_source_is_known_and_late_rows_stand_in_an_earlier_one(
    tmp_path: Path,
) -> None:
    planted = feeding(tmp_path, ONE).planted()
    width = timedelta(seconds=10)
    late = [w for w in planted.windows if w.window_start < START]
    assert sum(window.rows for window in late) == 20
    assert sum(window.rows for window in planted.windows) == planted.results
    negative = "dq.price_negative"
    assert sum(w.metrics[negative] for w in planted.windows) == planted.metrics[negative] == 100
    assert all(window_of(w.window_start, width) == w.window_start for w in planted.windows)


def test_what_no_rule_matches_is_counted_by_the_verdicts_of_the_pair(tmp_path: Path) -> None:
    planted = feeding(tmp_path, PAIR).planted()
    metrics = {name: count for name, count in planted.metrics.items() if count}
    of_rules = {"dq.mismatch": 100, "dq.missing": 60}
    of_verdicts = {"dq.invalid_hash": 10, "dq.hash_match": 810, "dq.delete_event": 10}
    assert metrics == of_rules | of_verdicts
    assert planted.severities == {"ERROR": 110, "WARN": 60, "INFO": 820}


def test_a_share_of_ones_own_is_planted_exactly(tmp_path: Path) -> None:
    planted = feeding(tmp_path, PAIR, rows=999, changed=0.5, lost=0).planted()
    assert {d.name: d.rows for d in planted.defects}["changed"] == 500
    assert {d.name: d.rows for d in planted.defects}["lost"] == 0


@pytest.mark.parametrize("rows", [1, 3, 7, 101])
def test_few_rows_never_have_more_defects_than_rows(tmp_path: Path, rows: int) -> None:
    feed = feeding(tmp_path, PAIR, rows=rows, changed=0.5, lost=0.35)
    planted = feed.planted()
    assert sum(defect.rows for defect in planted.defects) <= rows
    assert planted.statuses == recounted(sent(feed))


def test_rows_of_a_dataset_get_event_times_of_now_and_keep_their_form(tmp_path: Path) -> None:
    feed = feeding(tmp_path, ONE, late=0)
    rows = values(sent(feed)["onprem"])
    assert all(row["at"].startswith("2024-01-01T00:00:") for row in rows)
    assert all(row["until"].startswith("2024-01-01T00:01:") for row in rows)
    assert "lasting" not in rows[0]


def test_a_copy_in_one_source_is_a_row_of_its_own_and_comes_last(tmp_path: Path) -> None:
    feed = feeding(tmp_path, ONE)
    planted, messages = feed.planted(), sent(feed)["onprem"]
    assert len(messages) == planted.messages["first"] == 1050
    assert all(messages.index(copy) < 1000 for copy in messages[-50:])
    assert planted.statuses == {"INVALID": 100, "QUARANTINE": 50, "VALID": 880}
    assert (planted.results, planted.refused, planted.dead_letters) == (1030, 20, 100)
    assert planted.outcomes["accepted"] == 930
    assert matched(planted) == {"price_negative": (100, 100), "again": (50, 50)}


def matched(planted: Planted) -> dict[str, tuple[int, int]]:
    return {rule.rule: (rule.n, rule.matched) for rule in planted.rules}


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("hash_of: [id, name]", "hash_of: [id, nmae]", "Did you mean `name`?"),
        ("{rehash: true}", "{}", "nothing is changed"),
        ("hash_cloud: hash, ts: ts", "hash_cloud: hsh, ts: ts", "there is no column `hsh`"),
        ("rules: [mismatch]", "rules: [mismatsh]", "Did you mean `mismatch`?"),
        ("{status: MISMATCH,", "{status: MATCH,", "`mismatch` gives MISMATCH, not MATCH"),
        ("share: 0.1,", "share: 1,", "the shares sum to"),
        ("{refused: 1}", "{}", "nothing is expected"),
        ("name: lost", "name: changed", "`changed` is used twice"),
    ],
)
def test_a_feed_that_does_not_fit_is_refused_with_its_line(
    tmp_path: Path, before: str, after: str, said: str
) -> None:
    file = tmp_path / "things.yml"
    file.write_text(PAIR.replace(before, after, 1))
    with pytest.raises(DeclarationError) as refused:
        require_fit(load_feed(file), PAIRED)
    assert said in refused.value.why
    assert re.search(r"things\.yml:\d+: ", refused.value.why)


def test_an_unknown_feed_is_refused_with_those_there_are(tmp_path: Path) -> None:
    (tmp_path / "rules" / "feed").mkdir(parents=True)
    (tmp_path / "rules" / "feed" / "orders.yml").write_text("")
    with pytest.raises(UsageError) as refused:
        find_feed(tmp_path, "order")
    assert refused.value.fix == "Did you mean `orders`?"
