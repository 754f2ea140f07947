"""`headgate ledger`: show, export and rebuild what became of every offset."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.terminal.console import console

if TYPE_CHECKING:
    from headgate.core.ledger.model import LedgerRow
    from headgate.core.ledger.ops_store import OpsStore


@click.group()
def group() -> None:
    """Show, export and rebuild the ledger."""


@group.command()
@click.option("--job", help="Only this job, such as bronze-orders.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="Newest rows.")
def show(job: str | None, limit: int) -> None:
    """Print what each batch read and what became of it, the newest last."""
    with _store() as store:
        rows = store.ledger(job)[-limit:]
    console.data([_shown(row) for row in rows])


@group.command()
@click.option("--job", help="Only this job.")
@click.option("--out", type=click.Path(path_type=Path), help="A file instead of stdout.")
def export(job: str | None, out: Path | None) -> None:
    """Write the ledger as lines of canonical JSON, as the certificate's re-check reads them."""
    from headgate.certify.certificate import exported

    with _store() as store:
        rows = store.ledger(job)
    if out is None:
        click.echo(exported(rows), nl=False)
    else:
        out.write_text(exported(rows), encoding="utf-8")
        console.done(f"{len(rows):,} rows written to {out}")


@group.command()
def rebuild() -> None:
    """Recreate missing rows from what the tables' snapshots say of themselves."""
    from headgate.config.settings import load_settings
    from headgate.core.engine.recovery import rebuild_ledger

    with _store() as store:
        rebuilt = rebuild_ledger(load_settings(), store)
    for words in rebuilt.unknown:
        console.warn(words)
    if rebuilt.unknown:
        console.say("what the ledger has of those batches stays; what it lacks cannot be known")
    console.data(rebuilt, text=f"{rebuilt.added} rows added")


def _store() -> OpsStore:
    from headgate.config.settings import load_settings
    from headgate.core.ledger.ops_store import OpsStore

    return OpsStore.open(load_settings().ops_store_url)


def _shown(row: LedgerRow) -> dict[str, object]:
    return {
        "id": row.id,
        "job": row.job,
        "run": row.run,
        "source": row.range.source,
        "start": _range(row.range.start),
        "end": _range(row.range.end),
        "read": row.read,
        "gaps": row.gaps,
        "outcomes": _range(row.outcomes),
        "committed_at": f"{row.committed_at:%Y-%m-%d %H:%M:%S}",
        "rebuilt": row.rebuilt,
    }


def _range(values: Mapping[str, int]) -> str:
    return " ".join(f"{key}:{value}" for key, value in sorted(values.items()))
