"""A repair of one rule table put together: its verdicts, both sides' rows, where repairs go."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime

from headgate.config.settings import Settings
from headgate.core.kafka.producer import TopicWriter
from headgate.core.kafka.topics import Topics, TopicSpec
from headgate.core.runtime.journal import Watcher
from headgate.errors import SettingsError, UsageError
from headgate.quality.spec.reconcile_section import Repair
from headgate.quality.spec.rule_set import RuleTable
from headgate.reconcile.hasher.requests import reread_topic
from headgate.reconcile.repair.plan import (
    REPAIRABLE,
    Broken,
    Followed,
    RepairPlan,
    RepairReport,
    repair_plan,
)
from headgate.reconcile.repair.run import Edges, Judged, RepairJournal, new_journal, run_repair
from headgate.reconcile.repair.targets import CassandraTarget, Rereads, Target, TopicTarget
from headgate.reconcile.results import current_verdicts
from headgate.reconcile.rows import (
    CassandraRows,
    DuckRows,
    contract_of_table,
    declared_rows,
    hidden_columns,
    need_version,
    open_side,
)
from headgate.reconcile.state import DELETE

RETENTION_DAYS = 7
VALID, LOOK_SECONDS = "valid", 1.0


@dataclass(frozen=True)
class Repairs:
    """Plans and carries out repairs of one table."""

    settings: Settings
    table: RuleTable
    declared: Repair
    onprem: DuckRows | CassandraRows
    cloud: DuckRows | CassandraRows | None
    writer: TopicWriter
    # Columns of which no value is shown.
    hidden: frozenset[str] = frozenset()

    @property
    def onprem_topic(self) -> str:
        return str(self.table.sources["onprem"].topic)

    @property
    def target_name(self) -> str:
        if self.declared.to == "topic":
            return f"topic {self.repair_topic}"
        return f"cassandra {declared_rows(self.table, 'cloud').cassandra}"

    @property
    def repair_topic(self) -> str:
        return self.declared.topic or f"{self.onprem_topic}.repair"

    def broken(
        self,
        verdicts: Sequence[str] = REPAIRABLE,
        keys: Sequence[str] = (),
        limit: int | None = None,
    ) -> list[Broken]:
        """The repair list: keys whose verdict says that the cloud is wrong, oldest version first."""
        found = current_verdicts(self.settings, self.table.name, verdicts, keys, limit)
        return [
            Broken(each.pk, each.verdict, each.onprem_version, deleted=each.action == DELETE)
            for each in found
            if each.verdict in verdicts and each.onprem_version is not None
        ]

    def plan(self, broken: Sequence[Broken]) -> RepairPlan:
        keys = [each.pk for each in broken]
        cloud = self.cloud.read(keys) if self.cloud else {}
        return repair_plan(self.table.name, self.target_name, broken, self.onprem.read(keys), cloud)

    def begin(self, plan: RepairPlan, now: datetime) -> RepairJournal:
        return new_journal(self.settings.home, plan.table, plan.target, plan.items, now)

    def carry_out(
        self,
        journal: RepairJournal,
        per_second: int,
        watcher: Watcher,
        stopped: Callable[[], bool] = lambda: False,
    ) -> RepairReport:
        """What is left of the journal, asking for each key to be read again."""
        to_cassandra = self.declared.to == "cassandra"
        topic = reread_topic(self.onprem_topic) if to_cassandra else self.repair_topic
        self._make_topic(topic)
        edges = Edges(
            source=self.onprem,
            cloud=self.cloud,
            target=self._target(journal),
            verdicts=self._verdicts,
            rereads=Rereads(self.writer, topic) if to_cassandra else None,
            stopped=stopped,
        )
        return run_repair(journal, edges, per_second, watcher)

    def follow(
        self, journal: RepairJournal, seconds: float, stopped: Callable[[], bool] = lambda: False
    ) -> Followed:
        """Wait until the verdicts of what was sent have become valid, or so long."""
        sent = [o.pk for o in journal.outcomes.values() if o.result == "applied"]
        begun = time.monotonic()
        while True:
            found = current_verdicts(self.settings, self.table.name, (), sent) if sent else []
            wrong = {each.pk: each.status for each in found if each.rollup != VALID}
            passed = time.monotonic() - begun
            if not wrong or passed >= seconds or stopped():
                return Followed(round(passed, 1), Counter(each.status for each in found), wrong)
            time.sleep(LOOK_SECONDS)

    def _verdicts(self, keys: Sequence[str]) -> Mapping[str, Judged]:
        found = current_verdicts(self.settings, self.table.name, (), keys)
        return {each.pk: Judged(each.verdict, deleted=each.action == DELETE) for each in found}

    def _target(self, journal: RepairJournal) -> Target:
        if self.declared.to == "topic":
            return TopicTarget(self.writer, self.repair_topic, lambda: journal.name)
        if isinstance(self.cloud, CassandraRows):
            return CassandraTarget(self.cloud, self.onprem.columns, hidden=self.hidden)
        raise SettingsError(
            f"{self.table.name} cannot be repaired in Cassandra",
            why="`reconcile: rows: cloud:` names no table of Cassandra",
            fix="declare it, or `repair: {to: topic}`",
        )

    def _make_topic(self, topic: str) -> None:
        topics = Topics(self.settings.need("bootstrap_servers"))
        known = topics.names()
        if topic not in known:
            partitions = topics.found(self.onprem_topic).partitions
            topics.create([TopicSpec(topic, partitions, RETENTION_DAYS)])


@contextmanager
def open_repairs(settings: Settings, table: RuleTable) -> Generator[Repairs]:
    """All that a repair needs, opened; refused where the table is not reconciled."""
    if table.reconcile is None:
        raise UsageError(
            f"{table.name} is not reconciled as a stream",
            why="it has no `reconcile:` section",
            fix="declare one: docs/reconciliation.md",
        )
    need_version(table)
    rows = table.reconcile.rows
    with ExitStack() as stack:
        yield Repairs(
            settings=settings,
            table=table,
            declared=table.reconcile.repair,
            onprem=open_side(stack, settings, table, "onprem"),
            cloud=open_side(stack, settings, table, "cloud") if rows.cloud else None,
            writer=TopicWriter(settings.need("bootstrap_servers")),
            hidden=hidden_columns(table, contract_of_table(settings, table)),
        )
