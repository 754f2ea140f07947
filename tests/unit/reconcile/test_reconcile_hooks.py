"""What goes on beside the batches of a pair: it follows what is deployed, and what it cannot tell shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from headgate.config.settings import Settings
from headgate.core.engine.run import RunContext
from headgate.core.engine.submit import ask_for
from headgate.core.ledger.model import LedgerRow
from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import UnavailableError
from headgate.quality.deploy import plan_deployment
from headgate.quality.revision import Revisions, declared_rules, keep
from headgate.quality.store import RuleStore
from headgate.reconcile.job.publishers import FIRST_PAUSE, LONGEST_PAUSE, Declared, Telling
from headgate.reconcile.job.target import ReconcileTarget

RULES = """
version: 2
tables:
  - name: pair
    pk: pk
    sources:
      onprem: {topic: one, table: pair_onprem, dc: onprem, alias: t1, event_time: at,
               columns: {pk: STRING, hash_onprem: STRING, at: TIMESTAMP(3)}}
      cloud: {topic: two, table: pair_cloud, dc: azure, alias: t2, event_time: at,
              columns: {pk: STRING, hash_cloud: STRING, at: TIMESTAMP(3)}}
    hash: {onprem_field: hash_onprem, cloud_field: hash_cloud}
    reconcile: {%s}
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "rules").mkdir()
    declare(tmp_path, "")
    return Settings(root=tmp_path, home=tmp_path, bootstrap_servers="nowhere:1")


def declare(root: Path, section: str) -> None:
    (root / "rules" / "pair.yml").write_text(RULES % section)


@pytest.fixture
def context(settings: Settings, store: OpsStore) -> RunContext:
    asked = ask_for(settings, store, "reconcile-pair", "streaming")
    run = store.claim(asked.job, asked.number, "this test")
    return RunContext(run, settings, cast("Any", None), store, lambda: None)


class Tongue:
    """Tells while it can."""

    what = "what there is"

    def __init__(self) -> None:
        self.can_tell, self.asked = True, 0

    def tick(self) -> None:
        self.asked += 1
        if not self.can_tell:
            raise TimeoutError("no broker\nand a long trace")

    def settled(self, row: LedgerRow) -> None:
        self.tick()

    def ended(self) -> None:
        self.tick()


def trouble(context: RunContext) -> str | None:
    return context.store.run(context.run.job, context.run.number).error_text


def test_what_cannot_be_told_shows_in_the_run_until_it_can(context: RunContext) -> None:
    tongue, now = Tongue(), [0.0]
    telling = Telling(context, tongue, lambda: now[0])
    telling.tick()
    assert trouble(context) is None
    tongue.can_tell = False
    telling.tick()
    told = trouble(context)
    assert told is not None
    assert "reconcile-pair cannot tell what there is" in told
    assert "no broker" in told
    assert "trace" not in told
    tongue.can_tell = True
    now[0] += FIRST_PAUSE
    telling.tick()
    assert trouble(context) is None


def test_what_cannot_be_told_is_tried_less_and_less_often(context: RunContext) -> None:
    tongue, now = Tongue(), [0.0]
    telling, tongue.can_tell = Telling(context, tongue, lambda: now[0]), False
    for second in range(600):
        now[0] = float(second)
        telling.tick()
    assert 600 / LONGEST_PAUSE <= tongue.asked < 20


def test_a_batch_run_that_owes_something_fails(context: RunContext) -> None:
    tongue = Tongue()
    Telling(context, tongue).ended()
    tongue.can_tell = False
    with pytest.raises(UnavailableError, match="cannot tell what there is") as found:
        Telling(context, tongue).ended()
    assert found.value.exit_code == 8


def test_what_is_declared_beside_the_rules_is_taken_over_as_it_is_deployed(
    context: RunContext, settings: Settings
) -> None:
    revisions = Revisions(context.store, settings)
    target = ReconcileTarget("reconcile-pair", "", "", "", "pair", revisions)
    declared = Declared(context, target)
    assert (declared().audit.topic, declared().keep_matches) == ("dq_reconciliation_audit", False)
    section = "audit: {topic: other}, keep_matches: true, status_topic: s, slo: {within_grace: 0.5}"
    declare(settings.root, section)
    assert not declared().keep_matches
    wanted = keep(context.store, declared_rules(settings, "pair"))
    assert plan_deployment(settings, context.store, "pair").revision == wanted
    context.store.part(RuleStore).write_deployed_revision("pair", wanted)
    now = declared()
    assert (now.audit.topic, now.keep_matches, now.status_topic) == ("other", True, "s")
    assert now.slo.within_grace == 0.5
