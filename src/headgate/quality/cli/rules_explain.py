"""`headgate rules explain`: each rule in words, its SQL and its last counts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from headgate.terminal.cli_console import console

if TYPE_CHECKING:
    from headgate.quality.rule_explain import Explained


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
    from headgate.quality.rule_explain import explained_text

    found = _explained(table)
    if only is not None:
        found = [_only(one, only) for one in found]
        _require(found, only)
        found = [one for one in found if one.rules or one.aggregates]
    console.data({"tables": found}, text="\n\n".join(explained_text(one) for one in found))


def _explained(table: str | None) -> list[Explained]:
    from headgate.config.settings import load_settings
    from headgate.core.ledger.ops_store import OpsStore
    from headgate.quality.cli.rules_check import load_judged_file
    from headgate.quality.rule_explain import explained, read_counts
    from headgate.quality.spec.rules_loader import find_table, rule_files
    from headgate.terminal.project import below, faults_below

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
