"""The report of a real run: its counts are the ledger's and the tables', and nothing sensitive is in it."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from tests.support.pipeline import Pipeline, ProducerRecord, create_topic, produce
from tests.support.quality_job import QualityJob

from headgate.core.ledger.ops_store import utc_now
from headgate.errors import DifferenceError, UsageError
from headgate.quality.cli.report import report_after_run
from headgate.quality.compile.resolve import JudgedTable
from headgate.quality.diff.changes import row_changes, rule_changes
from headgate.quality.diff.revisions import Finder
from headgate.quality.diff.rows import rows_of_topics
from headgate.quality.explain import explained, explained_text, read_counts
from headgate.quality.report.gather import Wanted, make_and_write, quality_report
from headgate.quality.report.model import QualityReport
from headgate.quality.report.page import report_text

CANARY = "canary-51e7"
SEED = 11
RULE_SET = """
version: 2
metadata: {env: test, pipeline: tests}
metrics: {namespace: dq.test, window: 10 SECONDS}
tables:
  - name: %(name)s
    pk: id
    sources:
      onprem:
        topic: %(topic)s
        dlq_topic: %(topic)s-dlq
        table: %(name)s_events
        event_time: at
        columns:
          id: STRING
          mail: {type: STRING, sensitive: true}
          amount: DOUBLE
          at: TIMESTAMP(3)
    rules:
      - {name: no_mail, type: required, fields: [mail], on_fail: dead_letter}
      - {name: negative, when: "amount < %(limit)s", emit: {dq_status: NEGATIVE, severity: WARN}}
      - {name: odd_mail, when: "mail NOT LIKE 'canary%%'", emit: {dq_status: ODD, severity: INFO}}
      - {name: silent, when: "amount > 1000000", emit: {dq_status: HUGE, severity: ERROR}}
"""


def declare(pipeline: Pipeline, limit: int = 0) -> Path:
    file = pipeline.settings.root / "rules" / f"{pipeline.name}.yml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(RULE_SET % {"name": pipeline.name, "topic": pipeline.topic, "limit": limit})
    return file


def records(count: int, seed: int) -> list[ProducerRecord]:
    rng = Random(seed)
    made: list[ProducerRecord] = []
    for n in range(count):
        value = {
            "id": f"{seed}-{n}",
            "mail": rng.choice([None, "other", *[f"{CANARY}-{n}"] * 6]),
            "amount": rng.uniform(-5, 20),
            "at": f"2024-01-01T10:00:{n % 60:02d}.000Z",
        }
        made.append(ProducerRecord(json.dumps(value).encode(), str(n).encode(), partition=n % 2))
    return made


def held(sent: list[ProducerRecord]) -> Counter[str]:
    """How often each rule holds, worked out here."""
    found: Counter[str] = Counter()
    for value in (json.loads(record.value or b"null") for record in sent):
        found["no_mail"] += value["mail"] is None
        found["negative"] += value["amount"] < 0
        found["odd_mail"] += value["mail"] == "other"
    return found


def judged(pipeline: Pipeline) -> list[ProducerRecord]:
    """Two runs: 200 rows, then 120 rows and a record that is none."""
    declare(pipeline)
    pipeline.produce(records(200, SEED))
    pipeline.process("quality")
    second = records(120, SEED + 1)
    pipeline.produce([*second, ProducerRecord(f"{CANARY} is no JSON".encode(), partition=0)])
    pipeline.process("quality")
    return second


def test_a_report_counts_what_was_sent_and_hides_what_is_sensitive(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    second = judged(pipeline)
    print("seed", SEED)
    wanted = Wanted(pipeline.name)
    report, files = make_and_write(pipeline.settings, pipeline.store, wanted, tmp_path)

    assert report.adds_up, report.sums
    assert (report.read, report.judged) == (121, 120)
    assert {rule.name: rule.matched for rule in report.rules} == {**held(second), "silent": 0}
    assert report.clean + sum(rule.n for rule in report.rules) == 120
    assert report.outcomes["dead_letter"] == held(second)["no_mail"]
    assert [point.label for point in report.trend.points] == ["run 1", "run 2"]
    assert [point.rows for point in report.trend.points] == [200, 120]
    assert sum(window.rows for window in report.windows.shown) == 320
    assert {row.status for row in report.sample.rows} == {"INVALID", "NEGATIVE", "ODD"}
    assert report.sample.failing == report.failed

    declared = _declared(pipeline)
    counts = read_counts(pipeline.store, declared.table)
    explained_words = explained_text(explained(declared, "rules.yml", counts))
    assert f"matched {held(second)['negative']:,}" in explained_words
    _all_hidden(report, files.html, files.json, explained_words)
    _is_the_same_again(pipeline, report)
    _first_run_stays_readable(pipeline)
    _what_is_tagged_later_is_masked_too(pipeline)
    _revisions_are_compared_over_the_topic(pipeline, second)
    _a_run_can_be_a_gate(pipeline, second)


def _declared(pipeline: Pipeline, name: str = "") -> JudgedTable:
    finder = Finder(pipeline.settings.root, pipeline.store, pipeline.name)
    found = finder.find(str(pipeline.settings.root / "rules" / f"{name or pipeline.name}.yml"))
    table = found.table(pipeline.name)
    assert table is not None
    return table


def _all_hidden(report: QualityReport, html: Path, data: Path, words: str) -> None:
    forms = [html.read_text(), data.read_text(), report_text(report), words]
    assert all(CANARY not in form for form in forms)
    assert '"mail": "***"' in forms[1]


def _is_the_same_again(pipeline: Pipeline, report: QualityReport) -> None:
    """Same seed, same rows; another seed, other rows of the same kinds."""
    again = quality_report(pipeline.settings, pipeline.store, Wanted(pipeline.name))
    other = quality_report(pipeline.settings, pipeline.store, Wanted(pipeline.name, seed=99))
    assert again.sample == report.sample
    assert other.sample.rows != report.sample.rows
    assert len(other.sample.rows) == len(report.sample.rows)


def _what_is_tagged_later_is_masked_too(pipeline: Pipeline) -> None:
    file = declare(pipeline)
    untagged = quality_report(pipeline.settings, pipeline.store, Wanted(pipeline.name))
    assert all(row.row["amount"] != "***" for row in untagged.sample.rows)
    file.write_text(
        file.read_text().replace("amount: DOUBLE", "amount: {type: DOUBLE, sensitive: true}")
    )
    tagged = quality_report(pipeline.settings, pipeline.store, Wanted(pipeline.name))
    assert {row.row["amount"] for row in tagged.sample.rows} == {"***"}


def _a_run_can_be_a_gate(pipeline: Pipeline, second: list[ProducerRecord]) -> None:
    run = pipeline.store.run(QualityJob(pipeline).job, 2)
    for level, matched in (("error", ["no_mail"]), ("warn", ["no_mail", "negative"])):
        with pytest.raises(DifferenceError) as refused:
            report_after_run(pipeline.settings, pipeline.store, run, level)
        assert refused.value.exit_code == 5
        lines = refused.value.why.splitlines()
        assert {line.split()[1].rstrip(":") for line in lines} == {*matched}
        assert f"ERROR no_mail: {held(second)['no_mail']} rows" in lines
    report_after_run(pipeline.settings, pipeline.store, run, None)


def _first_run_stays_readable(pipeline: Pipeline) -> None:
    first = quality_report(pipeline.settings, pipeline.store, Wanted(pipeline.name, run=1))
    assert first.judged == 200
    assert first.adds_up
    assert len(first.trend.points) == 1


def _revisions_are_compared_over_the_topic(
    pipeline: Pipeline, second: list[ProducerRecord]
) -> None:
    root, store = pipeline.settings.root, pipeline.store
    ran = store.newest_batches(QualityJob(pipeline).job, 1)[0].revisions[-1]
    file = declare(pipeline, limit=5)
    finder = Finder(root, store, pipeline.name)
    old, new = (finder.find(name).table(pipeline.name) for name in (ran[:12], str(file)))
    assert old is not None
    assert new is not None
    (change,) = rule_changes(old, new)
    assert change.words == ("matches when amount is below 5 (was: amount is below 0)",)

    topics = {"onprem": pipeline.topic}
    rows = rows_of_topics(pipeline.settings.need("bootstrap_servers"), new.table, topics, 1_000)
    assert (len(rows.rows), rows.unreadable) == (320, 1)
    found = row_changes(old, new, rows.rows, utc_now())
    counts = {count.rule: (count.matched_before, count.matched_after) for count in found.counts}
    sent = [json.loads(r.value or b"") for r in (*records(200, SEED), *second)]
    assert counts["negative"] == tuple(sum(v["amount"] < n for v in sent) for n in (0, 5))
    assert found.changed > 0
    assert CANARY not in repr(found)

    few = rows_of_topics(pipeline.settings.need("bootstrap_servers"), new.table, topics, 10)
    assert len(few.rows) + few.unreadable == 10

    with pytest.raises(UsageError, match="no revision begins with"):
        finder.find("0123456789")


def test_a_revision_of_git_is_the_file_as_it_was(tmp_path: Path) -> None:
    """Needs no engine: the file that declares the table, and the list beside it, at a commit."""
    folder = tmp_path / "rules"
    folder.mkdir()
    names = {"name": "sales", "topic": "sales.events", "limit": 0}
    listed = "      - {name: state, type: lookup_in, field: mail, values_file: states.json}\n"
    (folder / "sales.yml").write_text(RULE_SET % names + listed)
    (folder / "states.json").write_text('["a", "b"]')
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(
        tmp_path, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-q", "-m", "first"
    )
    (folder / "sales.yml").write_text(RULE_SET % {**names, "limit": 3} + listed)
    (folder / "states.json").write_text('["a"]')

    finder = Finder(tmp_path, None, "sales")  # type: ignore[arg-type]  # git asks no store
    old = finder.find("git:HEAD").table("sales")
    new = finder.find(str(folder / "sales.yml")).table("sales")
    assert {change.name for change in rule_changes(old, new)} == {"negative", "state"}
    with pytest.raises(UsageError, match="git has no nowhere"):
        finder.find("git:nowhere")
    with pytest.raises(UsageError, match="names no commit"):
        finder.find("git:--upload-pack=x")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True)


PAIR = """
version: 2
metadata: {env: test, pipeline: tests}
tables:
  - name: %(name)s
    pk: id
    sources:
      onprem: {topic: %(topic)s, table: %(name)s_onprem, alias: t1, dlq_topic: %(topic)s-dlq,
               columns: {id: STRING, action: STRING, hash_onprem: STRING, ts: TIMESTAMP(3)}, event_time: ts}
      cloud: {topic: %(topic)s-cloud, table: %(name)s_cloud, alias: t2, dlq_topic: %(topic)s-cloud-dlq,
              columns: {id: STRING, hash_cloud: STRING, ts: TIMESTAMP(3)}, event_time: ts}
    hash: {onprem_field: hash_onprem, cloud_field: hash_cloud}
    rules:
      - {name: deleted, when: "{t1}.action = 'DELETE'", emit: {dq_status: DELETE_EVENT, severity: INFO}}
      - {name: missing_cloud, when: "{t1}.id IS NOT NULL AND {hash_cloud} IS NULL",
         emit: {dq_status: MISSING_CLOUD, severity: ERROR}}
      - {name: differs, when: "{hash_onprem} <> {hash_cloud}", emit: {dq_status: MISMATCH, severity: ERROR}}
"""


def send_pairs(pipeline: Pipeline) -> None:
    """Keys a to e, one of each status; a comes twice, and one record of the cloud is none."""
    bootstrap, cloud = str(pipeline.settings.bootstrap_servers), f"{pipeline.topic}-cloud"
    create_topic(bootstrap, cloud, 2, 1_048_588)
    folder = pipeline.settings.root / "rules"
    folder.mkdir()
    (folder / "pair.yml").write_text(PAIR % {"name": pipeline.name, "topic": pipeline.topic})
    upserts = [("a", "1", 1), ("a", "2", 5), ("b", "1", 2), ("d", "1", 4)]
    onprem = [_side("hash_onprem", *one, action="UPSERT") for one in upserts]
    produce(
        bootstrap, pipeline.topic, [*onprem, _side("hash_onprem", "c", "1", 3, action="DELETE")]
    )
    others = [_side("hash_cloud", *one) for one in (("a", "2", 6), ("b", "2", 6), ("e", "1", 6))]
    produce(bootstrap, cloud, [*others, ProducerRecord(b"{", b"broken")])


def _side(field: str, key: str, digit: str, second: int, **more: str) -> ProducerRecord:
    value = {"id": key, field: digit * 64, "ts": f"2024-01-01T10:00:{second:02d}.000Z", **more}
    return ProducerRecord(json.dumps(value).encode(), key.encode())


def test_revisions_of_a_pair_are_compared_over_its_topics_and_its_report_is_another(
    pipeline: Pipeline,
) -> None:
    send_pairs(pipeline)
    table = _declared(pipeline, "pair")
    topics = {"onprem": pipeline.topic, "cloud": f"{pipeline.topic}-cloud"}
    rows = rows_of_topics(pipeline.settings.need("bootstrap_servers"), table.table, topics, 100)
    found = row_changes(table, replace(table, rules=()), rows.rows, utc_now())
    assert (found.rows, rows.unreadable) == (5, 1)
    assert found.changed == 0, "each rule says what the verdict says"
    with pytest.raises(UsageError, match="has two sources") as refused:
        quality_report(pipeline.settings, pipeline.store, Wanted(pipeline.name))
    assert refused.value.fix == f"headgate reconcile report {pipeline.name}"
