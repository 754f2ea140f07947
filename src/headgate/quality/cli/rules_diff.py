"""`headgate rules diff`: what two revisions say differently, in words and over the last rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.terminal.cli_console import console

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.quality.diff.revisions import Revision
    from headgate.quality.diff.rule_diff import RuleDiff
    from headgate.quality.diff.rule_diff_read import Rows
    from headgate.quality.spec.rule_set import RuleTable

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
    from headgate.quality.diff.revisions import Finder
    from headgate.quality.diff.rule_diff_text import diff_text
    from headgate.terminal.project import faults_below

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
    from headgate.quality.diff.rule_diff import RuleDiff, row_changes, rule_changes

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
    from headgate.core.sql.render import Template, render_values
    from headgate.errors import HeadgateError
    from headgate.quality.diff.rule_diff_read import rows_of_file, rows_of_topics

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
