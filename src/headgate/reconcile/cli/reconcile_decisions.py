"""`headgate reconcile decisions`: the table by which a verdict is found."""

from __future__ import annotations

from dataclasses import dataclass

import click

from headgate.terminal.cli_console import console


@dataclass(frozen=True)
class Shown:
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
    from headgate.reconcile.decisions import decisions
    from headgate.reconcile.facts import FACTS

    if with_facts:
        console.data([{"fact": fact.name, "words": fact.words} for fact in FACTS])
        return
    console.data(
        [
            Shown(
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
