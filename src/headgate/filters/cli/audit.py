"""`headgate audit list`, `verify`, `export`: the audit log, checked against its rows and against heads kept in git."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.terminal.console import console

if TYPE_CHECKING:
    from headgate.core.identity.audit import AuditEntry, Verdict
    from headgate.core.ledger.ops_store import OpsStore


@click.group()
def group() -> None:
    """Read, check and export the audit log of the control plane."""


@group.command("list")
@click.option("--filter", "subject", help="Only what was done to this filter.")
@click.option(
    "--limit", type=click.IntRange(1), default=50, show_default=True, help="Newest entries."
)
def list_(subject: str | None, limit: int) -> None:
    """Print the newest entries, the newest last.

    \b
    Examples:
      headgate audit list
      headgate -o json audit list --filter service-by-dealer-001 --limit 5
    """
    from headgate.core.identity.audit import AuditLog

    with _store() as store:
        log = store.part(AuditLog)
        last = log.audit_head().seq
        found = log.audit_of(subject)[-limit:] if subject else log.audit(max(last - limit, 0))
    console.data([_shown(entry) for entry in found])


@group.command()
@click.option("--file", type=click.Path(path_type=Path, exists=True), help="An exported log.")
@click.option("--head", help="A head that was written down earlier: <number>:<hash>.")
def verify(file: Path | None, head: str | None) -> None:
    """Check the chain, what it says of keys, versions and approvals, and the heads in git.

    Exit code 5 when anything was changed.

    \b
    Examples:
      headgate audit verify
      headgate audit verify --file audit.jsonl
      headgate audit verify --head 17:5f0c…
    """
    from dataclasses import replace

    from headgate.config.settings import load_settings
    from headgate.core.identity.audit import read_export, read_head_text, verified
    from headgate.filters.git.store import open_git
    from headgate.filters.store.control import ControlStore

    expected = read_head_text(head) if head else None
    if file is not None:
        with file.open(encoding="utf-8") as lines:
            verdict = verified(*read_export(lines), expected)
    else:
        # Git first: a commit that is made meanwhile has a head that is already in the log.
        in_git = open_git(load_settings()).audit_heads()
        with _store() as store:
            entries, last, differences = store.part(ControlStore).audit_state()
        verdict = verified(entries, last, expected, in_git)
        verdict = replace(verdict, breaks=(*verdict.breaks, *differences))
    _refuse_unless_sound(verdict)
    lines_out = [f"{verdict.entries:,} entries, none changed, dropped, swapped or cut off"]
    if file is None:
        lines_out += [
            "keys, versions, approvals and git identities are what they say",
            f"{verdict.heads_in_git:,} commits in git have heads of this log",
        ]
    console.data(verdict, text="\n".join([*lines_out, f"head {verdict.head}"]))


@group.command()
@click.option("--out", type=click.Path(path_type=Path), help="A file instead of stdout.")
def export(out: Path | None) -> None:
    """Write the whole log as lines of JSON, the last one saying where the chain ends.

    \b
    Example:
      headgate audit export --out audit.jsonl
    """
    from headgate.core.identity.audit import AuditLog, exported

    with _store() as store:
        entries, head = store.part(AuditLog).audit_chain()
    if out is None:
        for line in exported(entries, head):
            click.echo(line, nl=False)
    else:
        out.write_text("".join(exported(entries, head)), encoding="utf-8")
        console.done(f"{len(entries):,} entries written to {out}")


def _refuse_unless_sound(verdict: Verdict) -> None:
    from headgate.errors import DifferenceError

    if not verdict.is_sound:
        raise DifferenceError(
            "the audit log is not what was written",
            why="\n".join(verdict.breaks[:20]),
            fix="compare it with an export and with the heads that were written down",
        )


def _shown(entry: AuditEntry) -> dict[str, object]:
    return {
        "seq": entry.seq,
        "at": entry.at,
        "actor": entry.actor,
        "action": entry.action,
        "subject": entry.subject,
        "detail": {name: value for name, value in entry.detail.items() if name != "sealed"},
    }


def _store() -> OpsStore:
    from headgate.config.settings import load_settings
    from headgate.core.ledger.ops_store import OpsStore

    return OpsStore.open(load_settings().ops_store_url)
