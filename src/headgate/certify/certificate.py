"""The certificate: all accounts, tables and content hashes of one moment, as a file and as text.

`scripts/recheck_certificate.py` checks it again from the tables and the exported ledger, with no import of ours;
what it reads here is fixed by SCHEMA_VERSION.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.app import ACCOUNTS, load
from headgate.certify.account import Evidence, Sums, account, sums
from headgate.certify.evidence import write_certified
from headgate.core.accounting.evidence import (
    AccountKind,
    CertifiedTable,
    Line,
    RuleAccount,
    TableEvidence,
    Verdict,
)
from headgate.core.ledger.model import LedgerRow, canonical, fingerprint
from headgate.core.ledger.ranges import stored_range
from headgate.core.sql.fragments import job_name
from headgate.errors import DifferenceError

if TYPE_CHECKING:
    from headgate.config.settings import Settings

SCHEMA_VERSION = 1
MARKS = {Verdict.PASS: "✓", Verdict.WARN: "!", Verdict.FAIL: "✗"}


@dataclass(frozen=True)
class Account:
    """One dataset's part of the certificate."""

    dataset: str
    topic: str
    sums: Sums
    lines: tuple[Line, ...]
    tables: Mapping[str, TableEvidence]

    @property
    def holds(self) -> bool:
        return all(line.verdict is not Verdict.FAIL for line in self.lines)


@dataclass(frozen=True)
class Certificate:
    """What was found at one moment, for every dataset asked for."""

    made_at: datetime
    version: str
    accounts: tuple[Account, ...]
    ledger: tuple[LedgerRow, ...]
    rules: tuple[RuleAccount, ...] = ()

    @property
    def holds(self) -> bool:
        both = (*self.accounts, *self.rules)
        return bool(both) and all(account.holds for account in both)


def certify(evidence: Iterable[Evidence], made_at: datetime, version: str) -> Certificate:
    """Judge the evidence."""
    given = tuple(evidence)
    ledger = tuple(
        row for e in given for row in (*e.bronze_ledger, *e.silver_ledger, *e.backfill_ledger)
    )
    return Certificate(made_at, version, tuple(_account(e) for e in given), ledger)


def _account(evidence: Evidence) -> Account:
    tables = {
        "bronze": evidence.bronze,
        "dead_letters": evidence.dead_letters,
        "silver": evidence.silver,
    }
    found = {role: table for role, table in tables.items() if table is not None}
    return Account(evidence.dataset, evidence.topic, sums(evidence), account(evidence), found)


def exported(rows: Sequence[LedgerRow]) -> str:
    """The ledger as lines of canonical JSON."""
    return "".join(canonical(ledger_document(row)) + "\n" for row in rows)


def ledger_document(row: LedgerRow) -> dict[str, object]:
    return {
        **vars(row),
        "range": stored_range(row.range),
        "revisions": list(row.revisions),
        "outcomes": dict(row.outcomes),
        "snapshots": dict(row.snapshots),
        "batch_time": row.batch_time.isoformat(),
        "committed_at": row.committed_at.isoformat(),
    }


def document(certificate: Certificate, ledger_file: str) -> dict[str, object]:
    """The certificate as a JSON value, naming the exported ledger beside it by its hash."""
    return {
        "schema_version": SCHEMA_VERSION,
        "made_at": certificate.made_at.isoformat(),
        "made_by": f"headgate {certificate.version}",
        "holds": certificate.holds,
        "ledger": {
            "file": ledger_file,
            "rows": len(certificate.ledger),
            "sha256": fingerprint(exported(certificate.ledger)),
        },
        "datasets": [_dataset(account) for account in certificate.accounts],
        "rules": [_rules(account) for account in certificate.rules],
    }


def _rules(account: RuleAccount) -> dict[str, object]:
    return {
        "table": account.table,
        "holds": account.holds,
        "checks": [vars(line) for line in account.lines],
        "tables": {role: _table(table) for role, table in account.tables.items()},
    }


def _dataset(account: Account) -> dict[str, object]:
    return {
        "dataset": account.dataset,
        "topic": account.topic,
        "holds": account.holds,
        "sums": vars(account.sums),
        "checks": [vars(line) for line in account.lines],
        "tables": {role: _table(table) for role, table in account.tables.items()},
    }


def _table(table: TableEvidence) -> dict[str, object]:
    return {
        "name": table.name,
        "rows": table.rows,
        "where": table.where,
        "content_hash": table.content_hash,
        "columns": list(table.columns),
        "metadata_file": table.metadata_file,
        "snapshot_id": table.snapshot_id,
        "committed_at": table.committed_at.isoformat() if table.committed_at else None,
        "snapshots": len(table.commits),
        "until": table.until.isoformat() if table.until else None,
        "previous": _previous(table.certified) if table.certified else None,
    }


def _previous(table: CertifiedTable) -> dict[str, object]:
    return {
        **vars(table),
        "columns": list(table.columns),
        "made_at": table.made_at.isoformat(),
        "until": table.until.isoformat(),
    }


def account_kinds() -> tuple[AccountKind, ...]:
    """The kinds of accounts beside those of datasets, in the order of a certificate."""
    return tuple(load(entry) for entry in ACCOUNTS)


def run_certification(
    settings: Settings, names: Sequence[str] = (), *, however_many: bool = False
) -> Certificate:
    """Certify these datasets, or all that have a ledger; count `however_many` records again."""
    from headgate import __version__
    from headgate.certify.evidence import BRONZE, gather, subjects_in
    from headgate.core.lake.duckdb_reader import Lake
    from headgate.core.ledger.ops_store import OpsStore, utc_now

    with OpsStore.open(settings.ops_store_url) as store, Lake.open(settings) as lake:
        wanted = tuple(names) or subjects_in(store, BRONZE)
        kinds = () if names else account_kinds()
        subjects = [(kind, name) for kind in kinds for name in subjects_in(store, kind.job_kind)]
        if not wanted and not subjects:
            raise DifferenceError(
                "there is nothing to certify",
                why="the ledger is empty",
                fix="headgate job run bronze, then headgate job run silver",
            )
        found = [gather(settings, store, lake, n, however_many=however_many) for n in wanted]
        rules = tuple(kind.account(settings, store, lake, name) for kind, name in subjects)
        certificate = certify(found, utc_now(), __version__)
        for account in certificate.accounts:
            if account.holds:
                write_certified(store, account.dataset, account.tables, certificate.made_at)
        ledger = _with_other_jobs(certificate.ledger, wanted, store.ledger())
        return replace(certificate, rules=rules, ledger=ledger)


def _with_other_jobs(
    ledger: Sequence[LedgerRow], datasets: Iterable[str], rows: Iterable[LedgerRow]
) -> tuple[LedgerRow, ...]:
    """The certified rows and those of all other jobs, whose commits stand in shared tables."""
    own = {job_name(kind, name) for kind in ("bronze", "silver", "backfill") for name in datasets}
    return (*ledger, *(row for row in rows if row.job not in own))


def left_out(certificate: Certificate) -> tuple[str, ...]:
    """What else the ledger has, and the certificate no account of."""
    told = {account.dataset for account in certificate.accounts}
    titles = {"bronze": "dataset {}", **{kind.job_kind: kind.title for kind in account_kinds()}}
    jobs = {row.job.partition("-")[::2] for row in certificate.ledger}
    return tuple(
        titles[kind].format(subject)
        for kind, subject in sorted(jobs)
        if kind in titles and not (kind == "bronze" and subject in told)
    )


def default_file(settings: Settings, certificate: Certificate) -> Path:
    return settings.home / "certificates" / f"{certificate.made_at:%Y%m%dT%H%M%SZ}.json"


def broken(certificate: Certificate) -> tuple[str, ...]:
    """A sentence for each line that does not hold."""
    named = [
        *((account.dataset, account.lines) for account in certificate.accounts),
        *((account.title, account.lines) for account in certificate.rules),
    ]
    return tuple(
        f"{name}: {_sentence(line)}"
        for name, lines in named
        for line in lines
        if line.verdict is Verdict.FAIL
    )


def write(certificate: Certificate, file: Path) -> Path:
    """Write the certificate and, beside it, the ledger it sums."""
    file.parent.mkdir(parents=True, exist_ok=True)
    ledger_file = file.with_suffix(".ledger.jsonl")
    ledger_file.write_text(exported(certificate.ledger), encoding="utf-8")
    file.write_text(canonical(document(certificate, ledger_file.name)) + "\n", encoding="utf-8")
    return file


def text(certificate: Certificate) -> str:
    """The certificate for a person."""
    made_at = certificate.made_at
    parts = [_text(a.dataset, a.lines, a.tables, made_at) for a in certificate.accounts]
    parts += [_text(a.title, a.lines, a.tables, made_at) for a in certificate.rules]
    return "\n\n".join([*parts, _conclusion(certificate)])


def _conclusion(certificate: Certificate) -> str:
    both = (*certificate.accounts, *certificate.rules)
    lines = [line for account in both for line in account.lines]
    if not certificate.holds:
        return "It does not add up."
    if any(line.verdict is Verdict.WARN for line in lines):
        return "Every record that was read is accounted for; mind the lines with !."
    return "Every record is accounted for."


def _text(
    name: str, lines: Sequence[Line], tables: Mapping[str, TableEvidence], made_at: datetime
) -> str:
    title = f"Certificate of {name}, {made_at:%Y-%m-%d %H:%M:%S} UTC"
    told = [f"  {MARKS[line.verdict]} {_sentence(line)}" for line in lines]
    listed = [
        f"    {table.name:<28} {table.rows:>12,} rows   {_state(table)}"
        for table in tables.values()
    ]
    return "\n".join(
        [title, "─" * len(title), *told, *(["", "  tables", *listed] if listed else [])]
    )


def _state(table: TableEvidence) -> str:
    if table.snapshot_id is None:
        return "empty"
    return f"snapshot {table.snapshot_id}   content {table.content_hash}"


def _sentence(line: Line) -> str:
    return f"{line.words} ({line.detail})" if line.detail else line.words
