"""`headgate reconcile status`: keys by status, what waits, and whether the objective is met."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import click

from headgate.terminal.cli_console import console

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.reconcile.results import Standing, StatusCount


@dataclass(frozen=True)
class Shown:
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
    from headgate.reconcile.cli.reconcile_pairs import pairs_of
    from headgate.reconcile.results import reconciled_tables

    settings = load_settings()
    tables = (table,) if table else reconciled_tables(settings, pairs_of(settings))
    found = [_shown(settings, name) for name in tables]
    text = "\n\n".join(_text(one) for one in found) or "no pair is reconciled yet"
    console.data({"tables": found}, text=text)


def _shown(settings: Settings, table: str) -> Shown:
    from headgate.core.ledger.ops_store import utc_now
    from headgate.reconcile.cli.reconcile_pairs import declared_pair
    from headgate.reconcile.results import standing

    declared = declared_pair(settings, table).reconcile
    assert declared is not None
    found: Standing = standing(settings, table, utc_now(), declared.slo.over)
    lately = found.share_lately
    return Shown(
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


def _text(found: Shown) -> str:
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
