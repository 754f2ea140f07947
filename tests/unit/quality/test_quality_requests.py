"""A quality job is asked for by its rule table; to start it is to deploy what is declared."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate.config.settings import Settings
from headgate.core.engine.submit import ask_for, full_name, need_broker
from headgate.core.ledger.model import Intent, LedgerRow, Run
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.ranges import TopicRange
from headgate.errors import ConflictError, UsageError
from headgate.quality.cli.compile import compiled_texts
from headgate.quality.deploy import deploy, plan_deployment
from headgate.quality.job_kind import QualityRunOptions
from headgate.quality.revision import declared_rules, fetch
from headgate.quality.store import RuleStore
from headgate.reconcile.job_kind import PairRunOptions

FILE = "rules/one.yml"
RULES = """
version: 2
tables:
  - name: one
    pk: id
    sources:
      onprem: {topic: some.topic, table: one_events, columns: {id: STRING, amount: DOUBLE}}
    rules:
      - {name: negative, when: "amount < %s"}
  - name: stored
    pk: id
    sources:
      onprem: {iceberg: silver.one, table: one_rows, columns: {id: STRING, amount: DOUBLE}}
    rules:
      - {name: negative, when: "amount < 0"}
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "rules").mkdir()
    declare(tmp_path, 0)
    return Settings(root=tmp_path, home=tmp_path, bootstrap_servers="nowhere:1")


def declare(root: Path, limit: int) -> None:
    (root / "rules" / "one.yml").write_text(RULES % limit)


def test_a_quality_job_is_named_with_its_table(settings: Settings) -> None:
    assert full_name(settings, "quality-one") == "quality-one"
    with pytest.raises(UsageError, match="named with its rule table"):
        full_name(settings, "quality")


def test_an_unknown_table_is_told_with_those_there_are(settings: Settings, store: OpsStore) -> None:
    with pytest.raises(UsageError, match="no rule set has a table `onee`"):
        ask_for(settings, store, "quality-onee", "batch")


def test_the_evaluation_of_a_snapshot_is_no_stream(settings: Settings, store: OpsStore) -> None:
    with pytest.raises(UsageError, match="quality-stored is no stream") as refused:
        ask_for(settings, store, "quality-stored", "streaming")
    assert refused.value.fix == "headgate job run quality-stored"
    assert ask_for(settings, store, "quality-stored", "batch").subject == "stored"


PAIR = """
version: 2
tables:
  - name: pair
    pk: id
    sources:
      onprem: {topic: a, table: a, columns: {id: STRING, hash_onprem: STRING, at: TIMESTAMP(3)}, event_time: at}
      cloud: {topic: b, table: b, columns: {id: STRING, hash_cloud: STRING, at: TIMESTAMP(3)}, event_time: at}
    hash: {onprem_field: hash_onprem, cloud_field: hash_cloud}
"""


@pytest.mark.parametrize(
    ("asked", "named"), [("quality-pair", "reconcile-pair"), ("reconcile-one", "quality-one")]
)
def test_a_table_has_one_job_which_is_named_where_the_other_is_asked_for(
    settings: Settings, store: OpsStore, asked: str, named: str
) -> None:
    (settings.root / "rules" / "pair.yml").write_text(PAIR)
    for refuse in (
        lambda: ask_for(settings, store, asked, "batch"),
        lambda: ask_for(settings, store, asked, "streaming"),
        lambda: need_broker(settings, asked),
    ):
        with pytest.raises(UsageError, match=f"there is no job {asked}") as refused:
            refuse()
        assert refused.value.fix == f"headgate job run {named}"


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_a_pair_is_reconciled_without_a_section_in_both_modes(
    settings: Settings, store: OpsStore, mode: str
) -> None:
    (settings.root / "rules" / "pair.yml").write_text(PAIR)
    run = ask_for(settings, store, "reconcile-pair", mode)
    assert (run.mode, PairRunOptions.of(run).topics) == (mode, {"onprem": "a", "cloud": "b"})
    limits = fetch(store, run.revision).limits
    assert limits is not None
    assert (limits.window, limits.grace) == (timedelta(seconds=10), timedelta(seconds=5))


def test_results_of_one_source_are_not_added_to_by_a_pair(
    settings: Settings, store: OpsStore
) -> None:
    file = settings.root / "rules" / "pair.yml"
    file.write_text(RULES.replace("name: one", "name: pair", 1).replace("stored", "other") % 0)
    run = ask_for(settings, store, "quality-pair", "batch")
    settle(store, run)
    file.write_text(PAIR)
    with pytest.raises(UsageError, match="results_pair holds the results of quality-pair") as no:
        ask_for(settings, store, "reconcile-pair", "batch")
    assert "name: pair_reconcile" in no.value.fix
    file.write_text(PAIR.replace("name: pair\n", "name: pair_reconcile\n"))
    assert ask_for(settings, store, "reconcile-pair_reconcile", "batch").state.value


def settle(store: OpsStore, run: Run) -> None:
    """One batch of the run in the ledger."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    range_ = TopicRange("a", "id", {"0": 0}, {"0": 1})
    intent = store.begin(Intent(None, run.job, run.number, range_, (run.revision,), at, 0))
    row = LedgerRow(
        None, run.job, run.number, range_, intent.revisions, at, 0, 1, 1, 0, {"accepted": 1}, {}, at
    )
    store.settle(intent, row)


def test_a_started_job_reads_its_topic_under_the_declared_rules(
    settings: Settings, store: OpsStore
) -> None:
    run = ask_for(settings, store, "quality-one", "streaming")
    assert QualityRunOptions.of(run).topic == "some.topic"
    assert QualityRunOptions.of(run).dlq_topic == "some.topic.dlq"
    assert store.part(RuleStore).deployed_revision("one") == run.revision
    assert [rule.name for rule in fetch(store, run.revision).rules] == ["negative"]
    assert ask_for(settings, store, "quality-one", "streaming") == run


def test_a_revision_has_one_name_in_the_file_the_store_and_the_batch(
    settings: Settings, store: OpsStore
) -> None:
    run = ask_for(settings, store, "quality-one", "streaming")
    planned = plan_deployment(settings, store, "one")
    kept = fetch(store, run.revision)
    (text,) = [t for t in compiled_texts(settings, settings.root / FILE) if t.table == "one"]
    assert {kept.hash, planned.revision, text.revision} == {run.revision}
    for sql in (kept.template, kept.engine, text.sql):
        assert f"Compiled from {FILE}, revision {run.revision[:12]}," in sql


def test_another_table_of_the_file_changes_no_revision(settings: Settings) -> None:
    before = {name: declared_rules(settings, name).hash for name in ("one", "stored")}
    declare(settings.root, 5)
    after = {name: declared_rules(settings, name).hash for name in ("one", "stored")}
    assert before["stored"] == after["stored"]
    assert before["one"] != after["one"]


def test_a_changed_rule_is_deployed_not_started_again(settings: Settings, store: OpsStore) -> None:
    run = ask_for(settings, store, "quality-one", "streaming")
    declare(settings.root, 5)
    with pytest.raises(ConflictError, match="under another revision") as error:
        ask_for(settings, store, "quality-one", "streaming")
    assert "headgate rules deploy one" in error.value.fix
    planned = plan_deployment(settings, store, "one")
    assert (planned.before, planned.changes) == (run.revision, ("changed rule negative",))
    store.part(RuleStore).write_running_revision("quality-one", planned.revision)
    assert deploy(settings, store, planned)
    assert ask_for(settings, store, "quality-one", "streaming") == run
    assert not plan_deployment(settings, store, "one").is_new


def test_a_plan_is_void_once_the_rules_have_moved_on(settings: Settings, store: OpsStore) -> None:
    planned = plan_deployment(settings, store, "one")
    assert planned.before is None
    declare(settings.root, 7)
    with pytest.raises(ConflictError, match="changed just now"):
        deploy(settings, store, planned)
    assert store.part(RuleStore).deployed_revision("one") is None
