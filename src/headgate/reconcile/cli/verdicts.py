"""`headgate reconcile status|history|why|decisions`: what is known of keys and verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import click

from headgate.terminal.console import console

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.quality.spec.reconcile_checks import Limits
    from headgate.quality.spec.rule_set import RuleTable
    from headgate.reconcile.results import Standing, StatusCount
    from headgate.reconcile.row_diff import RowDifference


def pair_limits(settings: Settings, table: str) -> Limits:
    """How long the sides of a pair wait: as deployed, else as declared."""
    from headgate.core.ledger.ops_store import OpsStore
    from headgate.quality.revision import declared_rules, fetch
    from headgate.quality.store import RuleStore

    declared_pair(settings, table)
    with OpsStore.open(settings.ops_store_url) as store:
        deployed = store.part(RuleStore).deployed_revision(table)
        rules = fetch(store, deployed) if deployed else declared_rules(settings, table)
    limits = rules.limits or declared_rules(settings, table).limits
    assert limits is not None
    return limits


def declared_pair(settings: Settings, table: str) -> RuleTable:
    """The table's declaration; raises UsageError where it has one source."""
    from headgate.errors import UsageError
    from headgate.quality.revision import declared_table

    found = declared_table(settings.root, table).table
    if found.reconcile is None:
        raise UsageError(
            f"`{table}` is not reconciled",
            why="it has one source",
            fix=f"headgate rules report {table}",
        )
    return found


def pairs_of(settings: Settings) -> tuple[str, ...]:
    """The names of all declared pairs; files with faults are passed over."""
    from headgate.core.sql.script import PLACEHOLDERS
    from headgate.quality.spec.loader import read_rules, rule_files

    readings = (read_rules(path, PLACEHOLDERS) for path in rule_files(settings.root))
    return tuple(
        table.name
        for reading in readings
        if reading.declared is not None
        for table in reading.declared.value.tables
        if table.reconcile is not None
    )


@dataclass(frozen=True)
class PairStatus:
    """One pair as `reconcile status` prints it."""

    table: str
    keys: int
    statuses: tuple[StatusCount, ...]
    rollup: dict[str, int]
    overdue: int
    oldest_pending: datetime | None
    reconciled_within_grace: float | None
    recently_within_grace: float | None
    objective: float
    slo_met: bool | None


@click.command()
@click.argument("table", required=False)
def reconcile_status(table: str | None) -> None:
    """Count the keys of a pair by status, say what waits, and whether enough are in time.

    Without TABLE all pairs with verdicts are shown. A key that is overdue waits for the next sweep of its job.

    \b
    Examples:
      headgate reconcile status
      headgate reconcile status business
      headgate -o json reconcile status business
    """
    from headgate.config.settings import load_settings
    from headgate.reconcile.results import reconciled_tables

    settings = load_settings()
    tables = (table,) if table else reconciled_tables(settings, pairs_of(settings))
    found = [_shown(settings, name) for name in tables]
    text = "\n\n".join(_text(one) for one in found) or "no pair is reconciled yet"
    console.data({"tables": found}, text=text)


def _shown(settings: Settings, table: str) -> PairStatus:
    from headgate.core.ledger.ops_store import utc_now
    from headgate.reconcile.results import standing

    declared = declared_pair(settings, table).reconcile
    assert declared is not None
    found: Standing = standing(settings, table, utc_now(), declared.slo.over)
    lately = found.share_lately
    return PairStatus(
        table=table,
        keys=found.keys,
        statuses=found.statuses,
        rollup={str(name): n for name, n in found.rollup.items()},
        overdue=found.overdue,
        oldest_pending=found.oldest_pending,
        reconciled_within_grace=found.share_within,
        recently_within_grace=lately,
        objective=declared.slo.within_grace,
        slo_met=None if lately is None else lately >= declared.slo.within_grace,
    )


def _text(found: PairStatus) -> str:
    rolled = ", ".join(f"{n:,} {name}" for name, n in found.rollup.items())
    lines = [f"{found.table}: {found.keys:,} keys; {rolled}"]
    lines += [f"  {one.dq_status:<15} {one.cnt:>12,}  {one.rollup}" for one in found.statuses]
    if found.oldest_pending is not None:
        lines.append(
            f"  next deadline {found.oldest_pending:%Y-%m-%d %H:%M:%S}Z, {found.overdue:,} overdue"
        )
    if found.reconciled_within_grace is not None:
        met = "met" if found.slo_met else "not met"
        lines.append(
            f"  within grace {found.reconciled_within_grace:.3%},"
            f" lately {found.recently_within_grace:.3%}, objective {found.objective:.3%}: {met}"
        )
    return "\n".join(lines)


@click.command()
@click.argument("table")
@click.argument("pk")
def reconcile_history(table: str, pk: str) -> None:
    """Tell the story of one key: what each side said and when it first came, each verdict and why.

    \b
    Examples:
      headgate reconcile history business 1234567
      headgate -o json reconcile history business 1234567
    """
    from headgate.config.settings import load_settings
    from headgate.core.ledger.ops_store import utc_now
    from headgate.errors import UsageError
    from headgate.reconcile.key_history import read_story, story_text

    settings = load_settings()
    limits = pair_limits(settings, table)
    story = read_story(settings, table, pk, limits, utc_now())
    if story is None:
        raise UsageError(
            f"nothing is known of the key `{pk}`",
            why=f"no message of {table} that was judged has it",
            fix="keys are case-sensitive; what was refused is in headgate.dead_letters",
        )
    console.data(story, text=story_text(story, limits))


@click.command()
@click.argument("table")
@click.argument("keys", nargs=-1, required=True, metavar="PK...")
def reconcile_why(table: str, keys: tuple[str, ...]) -> None:
    """Read both rows of a key and tell the columns that differ, and how.

    The rows are read as they are now, from where `reconcile: rows:` of TABLE says. What counts as
    equal is the hash contract's to say. Sensitive values are masked. Exit code 5 says that some
    differ.

    \b
    Examples:
      headgate reconcile why business 1234567
      headgate -o json reconcile why business 1234567 1234568
    """
    from headgate.config.settings import load_settings
    from headgate.errors import DifferenceError
    from headgate.quality.compile.resolve import open_rules
    from headgate.reconcile.row_diff import EQUAL, NOWHERE, count_kinds
    from headgate.reconcile.rows import open_rows

    settings = load_settings()
    with open_rows(settings, open_rules(settings, table).table) as rows:
        found = rows.why(keys)
    kinds = count_kinds(found)
    text = "\n".join(line for row in found for line in lines(row))
    console.data({"keys": found, "kinds": kinds}, text=text)
    differing = [row.pk for row in found if row.found not in (EQUAL, NOWHERE)]
    if differing:
        words = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
        raise DifferenceError(
            f"{len(differing)} of {len(found)} keys differ",
            why=words or "one side lacks the row",
            fix=f"headgate reconcile repair {table} --dry-run shows what would be sent again",
        )


def lines(row: RowDifference) -> Iterator[str]:
    """One key: what was found, and a line for each column that differs."""
    from headgate.reconcile.row_diff import shown_key

    yield f"{shown_key(row.pk)}: {row.found}"
    for each in row.differences:
        values = f"{_value(each.onprem)} on-prem, {_value(each.cloud)} in the cloud"
        yield f"  {each.column}: {values} ({each.kind})"


def _value(value: str | None) -> str:
    return "NULL" if value is None else value


@dataclass(frozen=True)
class DecisionRow:
    """One row of the decision table."""

    place: int
    status: str
    when: str
    settled: bool
    rollup: str
    metric: str | None
    severity: str | None
    reason: str


@click.command()
@click.option("--facts", "with_facts", is_flag=True, help="Say what the facts in it mean.")
def reconcile_decisions(with_facts: bool) -> None:
    """Show the decision table: the first row that matches gives a key its verdict.

    \b
    Examples:
      headgate reconcile decisions
      headgate reconcile decisions --facts
      headgate -o json reconcile decisions
      headgate -o markdown reconcile decisions
    """
    from headgate.reconcile.decision_table import decisions
    from headgate.reconcile.state import FACTS

    if with_facts:
        console.data([{"fact": fact.name, "words": fact.words} for fact in FACTS])
        return
    console.data(
        [
            DecisionRow(
                row.place,
                row.status,
                row.when,
                row.settled,
                row.rollup,
                row.metric,
                row.severity,
                row.reason,
            )
            for row in decisions()
        ]
    )
