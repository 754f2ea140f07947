"""`headgate rules explain`, `diff` and `deploy`: read a revision in words, compare two, deploy the declared one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.terminal.console import console
from headgate.terminal.project import below, faults_below, open_store
from headgate.terminal.runs import EngineWatch

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.quality.deploy import Deployment
    from headgate.quality.diff.changes import RuleDiff
    from headgate.quality.diff.revisions import Revision
    from headgate.quality.diff.rows import Rows
    from headgate.quality.explain import Explained
    from headgate.quality.spec.rule_set import RuleTable


@click.command()
@click.argument("table", required=False)
@click.option("--rule", "only", default=None, help="Only this rule.")
def rules_explain(table: str | None, only: str | None) -> None:
    """Say each rule in words, with its SQL, what it emits and what it last counted.

    \b
    Examples:
      headgate rules explain
      headgate rules explain orders
      headgate rules explain orders --rule missing_cloud
      headgate -o json rules explain orders
    """
    from headgate.quality.explain import explained_text

    found = _explained(table)
    if only is not None:
        found = [_only(one, only) for one in found]
        _require(found, only)
        found = [one for one in found if one.rules or one.aggregates]
    console.data({"tables": found}, text="\n\n".join(explained_text(one) for one in found))


def _explained(table: str | None) -> list[Explained]:
    from headgate.config.settings import load_settings
    from headgate.core.ledger.ops_store import OpsStore
    from headgate.quality.cli.check import load_judged_file
    from headgate.quality.explain import explained, read_counts
    from headgate.quality.spec.loader import find_table, rule_files

    settings = load_settings()
    files = (find_table(settings.root, table),) if table else rule_files(settings.root)
    with faults_below(settings.root), OpsStore.open(settings.ops_store_url) as store:
        return [
            explained(judged, below(path, settings.root), read_counts(store, judged.table))
            for path in files
            for judged in load_judged_file(settings, path).tables
            if table in (None, judged.table.name)
        ]


def _only(found: Explained, rule: str) -> Explained:
    return replace(
        found,
        rules=tuple(r for r in found.rules if r.rule == rule),
        aggregates=tuple(a for a in found.aggregates if a.aggregate == rule),
    )


def _require(found: list[Explained], rule: str) -> None:
    from headgate.errors import UsageError

    if not any(one.rules or one.aggregates for one in found):
        tables = ", ".join(one.table for one in found)
        raise UsageError(
            f"there is no rule `{rule}`",
            why=f"looked at: {tables}",
            fix="headgate rules explain lists all of them",
        )


LAST = 1_000


@click.command()
@click.argument("old")
@click.argument("new")
@click.option("--table", default=None, help="Needed where OLD or NEW does not say which.")
@click.option(
    "--last",
    type=click.IntRange(0, 1_000_000),
    default=LAST,
    show_default=True,
    help="Rows; 0: none.",
)
@click.option(
    "--rows",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=None,
    help="Rows of a Parquet or JSONL file instead of the topic's.",
)
def rules_diff(old: str, new: str, table: str | None, last: int, file: Path | None) -> None:
    """Compare two revisions of rules: in words, and over the last rows that came.

    OLD and NEW are a file, git:REF, the hash of a revision that ran, or `deployed`. The rows are
    read from the topic without Spark and judged by both; sensitive values are masked. A `unique`
    rule sees only these rows.

    \b
    Examples:
      headgate rules diff git:HEAD rules/orders.yml --table orders
      headgate rules diff deployed rules/orders.yml --table orders --last 10000
      headgate rules diff old.yml new.yml --rows data/orders.parquet
      headgate -o json rules diff 3f9a1c rules/orders.yml --table orders
    """
    from headgate.config.settings import load_settings
    from headgate.core.ledger.ops_store import OpsStore
    from headgate.quality.diff.changes import diff_text
    from headgate.quality.diff.revisions import Finder

    settings = load_settings()
    with faults_below(settings.root), OpsStore.open(settings.ops_store_url) as store:
        finder = Finder(settings.root, store, table)
        before, after = finder.find(old), finder.find(new)
    names = _names(before, after, table)
    found = [_diff(settings, before, after, name, last, file) for name in names]
    console.data({"tables": found}, text="\n\n".join(diff_text(one) for one in found))


def _names(before: Revision, after: Revision, table: str | None) -> list[str]:
    from headgate.errors import UsageError

    known = dict.fromkeys(t.table.name for t in (*after.tables, *before.tables))
    if table is not None and table not in known:
        raise UsageError(
            f"neither {before.name} nor {after.name} has a table `{table}`",
            fix=f"there are: {', '.join(known)}",
        )
    return [table] if table is not None else list(known)


def _diff(
    settings: Settings, before: Revision, after: Revision, name: str, last: int, file: Path | None
) -> RuleDiff:
    from headgate.core.ledger.ops_store import utc_now
    from headgate.quality.diff.changes import RuleDiff, row_changes, rule_changes

    old, new = before.table(name), after.table(name)
    changes = rule_changes(old, new)
    if old is None or new is None or not last:
        words = "added" if old is None else "removed"
        notes = (f"The table is {words}.",) if old is None or new is None else ()
        return RuleDiff(name, before.name, after.name, changes, notes=notes)
    rows = _rows(settings, new.table, last, file)
    if rows is None:
        return RuleDiff(name, before.name, after.name, changes)
    found = row_changes(old, new, rows.rows, utc_now())
    compared = replace(found, unreadable=found.unreadable + rows.unreadable)
    return RuleDiff(name, before.name, after.name, changes, compared, rows.notes)


def _rows(settings: Settings, table: RuleTable, last: int, file: Path | None) -> Rows | None:
    """The rows, or None and a word why there are none: the rules are compared all the same."""
    from headgate.core.sql.script import Template, render_values
    from headgate.errors import HeadgateError
    from headgate.quality.diff.rows import rows_of_file, rows_of_topics

    if file is not None:
        return rows_of_file(file, table, last)
    values = render_values(settings, table.name)
    topics = {
        side: Template(f"{table.name}: topic", source.topic).render(values)
        for side, source in table.sources.items()
        if source.topic is not None
    }
    try:
        return rows_of_topics(settings.need("bootstrap_servers"), table, topics, last)
    except HeadgateError as error:
        console.warn(f"no rows of {table.name} are compared: {error.what}")
        console.say("  --rows FILE takes them from a Parquet or JSONL file")
        return None


@click.command("deploy")
@click.argument("table")
@click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
def rules_deploy(table: str, dry_run: bool) -> None:
    """Let the declared rules of a table judge from the next batch on.

    A running stream takes them over between two batches, without a restart: no record is judged
    twice, and open windows keep their sums. Where none runs, the next start does. The views
    dq_results_<table> and dq_metrics_<table> of the engine are made anew.

    \b
    Examples:
      headgate rules deploy customer --dry-run
      headgate rules deploy customer
    """
    from headgate.quality.deploy import deploy, plan_deployment

    settings, store = open_store()
    with store:
        planned = plan_deployment(settings, store, table)
        if dry_run:
            console.data(planned, text=_text(planned))
            return
        taken = deploy(settings, store, planned, EngineWatch(store, console.say))
    words = "judges from the next batch on" if taken else "judges once the job runs"
    console.done(f"revision {planned.revision[:12]} of {table} {words}")
    console.data(planned, text="")


def _text(planned: Deployment) -> str:
    before = planned.before[:12] if planned.before else "none"
    if not planned.is_new:
        return f"{planned.table}: revision {before} is deployed, and nothing is declared otherwise"
    how = "its stream takes it over between two batches" if planned.streaming else "no stream runs"
    head = f"{planned.table}: revision {before} → {planned.revision[:12]} ({how})"
    return "\n".join([head, *(f"  {change}" for change in planned.changes)])
