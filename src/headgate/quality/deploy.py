"""Deploys a rule table: plans what would change, and makes a revision the one its job must run.

A running stream takes the revision over between two batches. Refused: another window width once windows have
been counted, and another source while a run is active.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headgate.config.settings import Settings
from headgate.core.ledger.model import ACTIVE, Run, canonical
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.sql.fragments import job_name
from headgate.errors import ConflictError, UnavailableError
from headgate.quality.revision import RulesRevision, declared_rules, fetch, keep
from headgate.quality.store import RuleStore


def refuse_other_width(store: OpsStore, declared: RulesRevision) -> None:
    """Refuse windows of another width than those that the job has counted.

    A window's sums are those of its partials, found by its start alone: with two widths, windows that
    begin together would be added up. A snapshot is counted anew each time.
    """
    job = job_name(declared.kind, declared.name)
    known = _known(store, job, declared.name)
    if known is None or known.window == declared.window or not declared.follows_a_topic:
        return
    if not store.windows(job, limit=1):
        return
    raise ConflictError(
        f"{job} has counted windows of {known.window}, and cannot go on with {declared.window}",
        why=f"windows of two widths would be added up in {declared.partials}",
        fix=f"keep the window of {known.window}, or declare the table under another name:"
        " it gets tables of its own",
    )


def _known(store: OpsStore, job: str, table: str) -> RulesRevision | None:
    """The revision that judged last, as far as the store still knows it."""
    rules = store.part(RuleStore)
    hash_ = rules.running_revision(job) or rules.deployed_revision(table)
    return fetch(store, hash_) if hash_ and store.revision(hash_) else None


POLL_SECONDS = 0.2
# A batch may be under way, and a new revision waits until it is settled.
PATIENCE_SECONDS = 120.0


@dataclass(frozen=True)
class Deployment:
    """The declared revision beside the deployed one, and what is different in words."""

    table: str
    job: str
    revision: str
    before: str | None
    changes: tuple[str, ...]
    streaming: bool

    @property
    def is_new(self) -> bool:
        return self.revision != self.before


def plan_deployment(settings: Settings, store: OpsStore, table: str) -> Deployment:
    """What a deployment would change; raises where a running stream could not take it over."""
    declared = declared_rules(settings, table)
    hash_ = declared.hash
    before = store.part(RuleStore).deployed_revision(table)
    known = fetch(store, before) if before else None
    refuse_other_width(store, declared)
    job = job_name(declared.kind, table)
    run = _active(store, job)
    if run is not None and known is not None:
        refuse_other_source(run, known, declared)
    found = tuple(changes(known, declared)) if hash_ != before else ()
    streaming = run is not None and run.mode == "streaming"
    return Deployment(table, job, hash_, before, found, streaming)


def deploy(
    settings: Settings,
    store: OpsStore,
    planned: Deployment,
    alive: Callable[[], None] = lambda: None,
) -> bool:
    """Want the planned revision; whether a stream has taken it over (False: none runs)."""
    declared = declared_rules(settings, planned.table)
    if keep(store, declared) != planned.revision:
        raise ConflictError(
            f"the rules of {planned.table} changed just now",
            why="what was looked at is no longer what is declared",
            fix="the same command again",
        )
    store.part(RuleStore).write_deployed_revision(planned.table, planned.revision)
    return _taken_over(store, planned, alive)


def _taken_over(store: OpsStore, planned: Deployment, alive: Callable[[], None]) -> bool:
    until = time.monotonic() + PATIENCE_SECONDS
    while _active(store, planned.job) is not None:
        if store.part(RuleStore).running_revision(planned.job) == planned.revision:
            return True
        alive()
        if time.monotonic() > until:
            raise UnavailableError(
                f"{planned.job} has not taken the revision over yet",
                why="a batch is under way; it does once that is settled",
                fix=f"headgate job show {planned.job}",
            )
        time.sleep(POLL_SECONDS)
    return False


def _active(store: OpsStore, job: str) -> Run | None:
    run = store.latest(job)
    return run if run and run.state in ACTIVE else None


def refuse_other_source(run: Run, known: RulesRevision, declared: RulesRevision) -> None:
    """A run goes on with its topic and its windows, whatever its rules are."""
    before, now = _fixed(known), _fixed(declared)
    other = [
        f"{name}: {before[name]}, now {now[name]}" for name in now if before[name] != now[name]
    ]
    if other:
        raise ConflictError(
            f"{run.job} cannot go on with this declaration while it runs",
            why="; ".join(other),
            fix=f"headgate job stop {run.job}, then: headgate job start {run.job}",
        )


def _fixed(rules: RulesRevision) -> Mapping[str, str]:
    where = (f"{s.side} {s.topic or s.iceberg}" for s in rules.sources)
    fixed = {"sources": ", ".join(where), "window": str(rules.window)}
    if rules.limits is None:
        return fixed
    # The state of a pair is made by a query that goes on as it began.
    (table,) = rules.declared["tables"]
    times = " ".join(str(value) for value in vars(rules.limits).values())
    return {**fixed, "times": times, "columns": canonical(table["sources"])}


def changes(known: RulesRevision | None, declared: RulesRevision) -> list[str]:
    """In words: which rules come, go and change."""
    before = _parts(known) if known else {}
    now = _parts(declared)
    told = [f"new {name}" for name in now if name not in before]
    told += [f"gone {name}" for name in before if name not in now]
    told += [f"changed {name}" for name in now if name in before and before[name] != now[name]]
    order = [n for n in now if n in before], [n for n in before if n in now]
    if order[0] != order[1]:
        told.append("the order of rules, which decides a row's status")
    return told or ["nothing of the rules themselves: the SQL is written otherwise"]


def _parts(rules: RulesRevision) -> dict[str, object]:
    """Every rule, aggregate and setting by what it is called."""
    plain = rules.declared
    (table,) = plain["tables"]
    found: dict[str, object] = {}
    for kind in ("rules", "aggregates"):
        for part in (*plain.get(kind, ()), *table.get(kind, ())):
            found[f"{kind.removesuffix('s')} {part['name']}"] = part
    own = {k: v for k, v in table.items() if k not in ("rules", "aggregates")}
    settings = {k: v for k, v in plain.items() if k in ("metadata", "metrics")}
    return found | {f"table {table['name']}": own, **{f"{k}": v for k, v in settings.items()}}
