"""`headgate filters explain`: each filter in words, with its SQL and what it has counted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.terminal.cli_console import console, in_one_line

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.core.ledger.ops_store import OpsStore
    from headgate.filters.explain import ExplainedFilter


@click.command()
@click.argument("filters", nargs=-1, metavar="[ID|FILE]...")
def filters_explain(filters: tuple[str, ...]) -> None:
    """Explain filters in words: which events they take and match, and where those go.

    The SQL of the conditions follows, and how many records each deployed revision judged and sent,
    from the ledger in the ops store. Nothing is run and the API is not asked: a file is enough.
    Without an argument all filters of the project are explained.

    \b
    Examples:
      headgate filters explain
      headgate filters explain service-by-dealer-001
      headgate filters explain schemas/v1/filters/service-by-dealer-001.json
      headgate -o json filters explain service-by-dealer-001
    """
    from headgate.config.settings import load_settings
    from headgate.filters.cli.filters_compile import chosen_files
    from headgate.filters.explain import explanation_lines
    from headgate.terminal.project import faults_below

    settings = load_settings()
    with faults_below(settings.root):
        explained = _explain_files(settings, chosen_files(settings, filters))
    texts = ("\n".join(map(in_one_line, explanation_lines(one))) for one in explained)
    console.data({"filters": explained}, text="\n\n".join(texts))


def _explain_files(settings: Settings, files: tuple[Path, ...]) -> list[ExplainedFilter]:
    """With counts where the ops store can be read, else without them and with a warning."""
    from headgate.core.ledger.ops_store import OpsStore
    from headgate.errors import HeadgateError

    try:
        store = OpsStore.open(settings.ops_store_url)
    except HeadgateError as error:
        console.warn(f"there are no counts: {error.what} ({error.why})")
        return [_explain_file(settings, path) for path in files]
    with store:
        return [_explain_file(settings, path, store) for path in files]


def _explain_file(settings: Settings, path: Path, store: OpsStore | None = None) -> ExplainedFilter:
    from headgate.filters.cli.filters_check import load_compiled
    from headgate.filters.explain import explain_filter, read_counts
    from headgate.filters.loader import load_filter
    from headgate.terminal.project import below

    compiled = load_compiled(path)
    counts = read_counts(store, compiled.id, compiled.revision) if store else ()
    return explain_filter(load_filter(path), compiled, below(path, settings.root), counts)
