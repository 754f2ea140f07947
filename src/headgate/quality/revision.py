"""A revision of a rule table: declaration and SQL as one immutable value, kept in the ops store under its hash.

A job reads nothing from disk: it runs what the revision holds. `declared_rules` makes one from the project's
files, `keep` and `fetch` store and load it, `Revisions` caches revisions and their scripts for a run.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from headgate.config.settings import Settings
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.sql.fragments import table_name
from headgate.core.sql.script import (
    PLACEHOLDERS,
    Script,
    Template,
    parse_rule_script,
    render_values,
)
from headgate.errors import OperationError, SettingsError
from headgate.quality.compile.file import (
    CompiledRules,
    compile_table,
    declaration_of,
    quality_views,
)
from headgate.quality.compile.resolve import JudgedRule, JudgedTable, judged_table
from headgate.quality.compile.tables import QUALITY, RECONCILE, Names, table_statements
from headgate.quality.pairs import pair_support
from headgate.quality.spec.loader import find_table, load_rules
from headgate.quality.spec.reconcile_checks import Limits, limits_of
from headgate.quality.spec.reconcile_section import Reconcile
from headgate.quality.spec.rule_set import Aggregate, OnFail, RuleSet, RuleSource, Severity

KIND = "rules"
DEAD_LETTER: OnFail = "dead_letter"
STOP: OnFail = "stop"
_FROZEN = ConfigDict(frozen=True)
_RULE_SET = TypeAdapter(RuleSet)


class SourceRevision(BaseModel):
    """Where one side's rows come from; a topic's name may still be a placeholder."""

    model_config = _FROZEN

    side: str
    view: str
    topic: str | None
    iceberg: str | None
    dlq_topic: str | None
    dc: str
    watermark: timedelta

    @property
    def bound(self) -> str:
        """The view that the engine puts the records under."""
        return f"{self.view}_source"


class RuleRevision(BaseModel):
    """What a job must know of a rule beside its SQL."""

    model_config = _FROZEN

    name: str
    reason: str
    status: str
    metric: str
    severity: Severity
    on_fail: OnFail
    horizon: timedelta | None = None


class RulesRevision(BaseModel):
    """All that the job of a rule table needs; nothing of it is read from disk later."""

    model_config = _FROZEN

    # Its name in the store and in the file; kept beside the content, not in it.
    hash: str = Field(default="", exclude=True)
    name: str
    file: str
    template: str
    # What the job does with the views of the file; as `engine.sql` it stands beside it.
    engine: str
    # A view of pairs under a name that the declaration asks for.
    pairs_view: str | None = None
    sources: tuple[SourceRevision, ...]
    rules: tuple[RuleRevision, ...]
    aggregates: tuple[Aggregate, ...]
    window: timedelta
    namespace: str
    env: str
    # The rule set as it was declared, for whoever compares two revisions.
    declared: dict[str, Any]
    # How long the two sides of a pair wait for each other; None where there is one source.
    limits: Limits | None = None

    @property
    def kind(self) -> str:
        """The kind of the job that runs it."""
        return RECONCILE if self.limits is not None else QUALITY

    @property
    def names(self) -> Names:
        return Names(self.name, self.kind)

    @property
    def follows_a_topic(self) -> bool:
        """Whether its topic, or two of them, is judged batch by batch; a table is by its snapshot."""
        return self.first.topic is not None

    @property
    def first(self) -> SourceRevision:
        return self.sources[0]

    @property
    def rule_set(self) -> RuleSet:
        return _RULE_SET.validate_python(self.declared)

    @property
    def results(self) -> str:
        return dq_table("results", self.name)

    @property
    def partials(self) -> str:
        return dq_table("partials", self.name)

    @property
    def keys(self) -> str | None:
        """The table of keys seen, where a rule asks for uniqueness across batches."""
        seen = self.follows_a_topic and self.horizon is not None
        return dq_table("keys", self.name) if seen else None

    @property
    def horizon(self) -> timedelta | None:
        """How long keys are kept: as far back as any rule looks."""
        return max((rule.horizon for rule in self.rules if rule.horizon), default=None)

    def with_on_fail(self, wanted: OnFail) -> tuple[RuleRevision, ...]:
        return tuple(rule for rule in self.rules if rule.on_fail == wanted)

    def script(self, settings: Settings) -> Script:
        """The SQL as it runs: rendered with the settings, cut into steps.

        The file for readers has no marks: a job binds the views of its sources, and runs all others.
        """
        text = Template(self.file, f"{self.template}\n{self.engine}").render(
            render_values(settings, self.name)
        )
        return parse_rule_script(self.file, text, (source.bound for source in self.sources))

    def tables(self) -> list[str]:
        """The statements that make the tables of the job."""
        if self.limits is not None:
            return pair_support().table_statements(self.names)
        return table_statements(self.names, has_keys=self.keys is not None)

    def permanent_views(self, script: Script) -> list[str]:
        """The statements that make the permanent views over the tables of the job."""
        if self.limits is not None:
            return pair_support().permanent_views(self.names, script, self.pairs_view)
        return quality_views(self.names, script)

    def topic_of(self, source: SourceRevision, settings: Settings) -> str:
        return self._rendered("topic", source.topic or "", settings)

    def dlq_topic_of(self, source: SourceRevision, settings: Settings) -> str:
        written = source.dlq_topic or f"{source.topic}.dlq"
        return self._rendered("dlq_topic", written, settings)

    def _rendered(self, field: str, text: str, settings: Settings) -> str:
        values = render_values(settings, self.name)
        return Template(f"{self.name}: {field}", text).render(values)


def dq_table(kind: str, name: str) -> str:
    """A table of a rule set in our catalog."""
    return table_name(f"dq.{kind}_{name}")


def declared_table(root: Path, name: str) -> JudgedTable:
    """The table as it stands on disk, checked."""
    declared = load_rules(find_table(root, name), PLACEHOLDERS)
    return judged_table(declared, declared.value.table(name))


def declared_rules(settings: Settings, name: str) -> RulesRevision:
    """What the job of this table runs, if it starts now."""
    judged = with_limits(declared_table(settings.root, name), settings)
    file = find_table(settings.root, name).relative_to(settings.root).as_posix()
    return revision_from(judged, compile_table(judged, file))


def with_limits(judged: JudgedTable, settings: Settings) -> JudgedTable:
    """The table under the times of the settings, where those are given for a reconciliation."""
    given = {
        "window": settings.reconcile_window,
        "grace": settings.reconcile_grace,
        "horizon": settings.reconcile_horizon,
    }
    changed = {name: value for name, value in given.items() if value is not None}
    if judged.table.reconcile is None or not changed:
        return judged
    table = replace(judged.table, reconcile=replace(judged.table.reconcile, **changed))
    limits = limits_of(table.reconcile or Reconcile())
    if limits.horizon < limits.wait:
        raise SettingsError(
            f"the horizon of {table.name} is shorter than window and grace together",
            why=f"horizon {limits.horizon}, window {limits.window}, grace {limits.grace},"
            " as RECONCILE_WINDOW, RECONCILE_GRACE and RECONCILE_HORIZON say",
            fix="set RECONCILE_HORIZON to at least their sum",
        )
    tables = tuple(table if t.name == table.name else t for t in judged.rule_set.tables)
    return replace(judged, table=table, rule_set=replace(judged.rule_set, tables=tables))


def revision_from(judged: JudgedTable, compiled: CompiledRules) -> RulesRevision:
    rule_set, table = judged.rule_set, judged.table
    return RulesRevision(
        hash=compiled.revision,
        name=table.name,
        file=compiled.file,
        template=compiled.text,
        engine=compiled.engine,
        pairs_view=table.reconcile.view if table.reconcile else None,
        sources=tuple(_source(side, source) for side, source in table.sources.items()),
        rules=tuple(_rule(rule) for rule in compiled.rules),
        aggregates=judged.aggregates,
        window=rule_set.metrics.window,
        namespace=rule_set.metrics.namespace,
        env=rule_set.metadata.env,
        declared=declaration_of(judged),
        limits=limits_of(table.reconcile) if table.reconcile is not None else None,
    )


def _source(side: str, source: RuleSource) -> SourceRevision:
    return SourceRevision(
        side=side,
        view=source.table,
        topic=source.topic,
        iceberg=source.iceberg,
        dlq_topic=source.dlq_topic,
        dc=source.dc,
        watermark=source.watermark,
    )


def _rule(rule: JudgedRule) -> RuleRevision:
    return RuleRevision(
        name=rule.name,
        reason=rule.reason,
        status=rule.status,
        metric=rule.metric,
        severity=rule.severity,
        on_fail=rule.on_fail,
        horizon=rule.unique.horizon if rule.unique else None,
    )


def keep(store: OpsStore, revision: RulesRevision) -> str:
    """Store the revision under the name that its SQL file has, unless it is there."""
    return store.keep_revision(KIND, revision.name, revision.model_dump_json(), revision.hash)


def fetch(store: OpsStore, hash_: str) -> RulesRevision:
    found = store.revision(hash_)
    if found is None:
        raise OperationError(f"revision {hash_[:12]} is not in the ops store")
    kept = RulesRevision.model_validate_json(found.content)
    return kept.model_copy(update={"hash": hash_})


class Revisions:
    """Revisions and their SQL by hash: a batch runs the file of its intent's revision."""

    def __init__(self, store: OpsStore, settings: Settings) -> None:
        self._store, self._settings = store, settings
        self._known: dict[str, RulesRevision] = {}
        self._scripts: dict[str, Script] = {}

    def of(self, hash_: str) -> RulesRevision:
        if hash_ not in self._known:
            self._known[hash_] = fetch(self._store, hash_)
        return self._known[hash_]

    def script(self, hash_: str) -> Script:
        if hash_ not in self._scripts:
            self._scripts[hash_] = self.of(hash_).script(self._settings)
        return self._scripts[hash_]
