"""`headgate dataset drift`: which fields of the topic deviate from the manifest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from headgate.terminal.cli_console import console
from headgate.terminal.project import active_dataset

if TYPE_CHECKING:
    from headgate.pipeline.drift_report import Deviation, DriftReport


@click.command()
@click.argument("name", required=False)
def drift(name: str | None) -> None:
    """Show fields of the topic that are unknown, missing or of another type.

    The counts are of the batches that bronze has read so far. A field that became a column by
    itself is counted as unknown in the batch that brought it. The last lines declare what is not
    declared: paste them under `columns:` of the manifest.

    \b
    Examples:
      headgate dataset drift
      headgate dataset drift orders
      headgate -o json dataset drift orders
    """
    from headgate.config.settings import load_settings
    from headgate.core.ledger.ops_store import OpsStore
    from headgate.core.sql.render import PLACEHOLDERS
    from headgate.declarations.project import find_dataset
    from headgate.pipeline.drift_report import drift_report
    from headgate.pipeline.spec_loader import load_dataset

    settings = load_settings()
    path = find_dataset(settings.root, name or active_dataset(settings))
    with OpsStore.open(settings.ops_store_url) as store:
        found = drift_report(settings, store, load_dataset(path, PLACEHOLDERS).value)
    text = _text(found)
    if not text:
        console.done(f"{found.dataset}: every record so far had the declared fields")
    if text or console.format != "text":
        console.data(found, text=text)


def _text(found: DriftReport) -> str:
    parts = [f"contract: {found.contract}"] if found.deviations else []
    parts += [_line(deviation) for deviation in found.deviations]
    parts += [f"column {name}: {rows:,} rows have a value" for name, rows in found.columns.items()]
    if found.lines:
        parts += ["", "# to declare these, under columns: of the manifest", found.lines.rstrip()]
    return "\n".join(parts)


def _line(d: Deviation) -> str:
    seen = d.first_seen if d.batches == 1 else f"{d.first_seen} to {d.last_seen}"
    words = [f"{d.kind} {d.field}: {d.records:,} records", f"→ {d.becomes}", f"({seen})", d.hint]
    return " ".join(word for word in words if word)
