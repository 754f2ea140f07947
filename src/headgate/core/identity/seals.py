"""Seals: hashes of rows that the audit log holds, so that a row changed behind its back is found.

An entry of the audit log has under `sealed` the hash of every version, approval, key and git identity
that its change wrote. The last seal of a row is the one that the row must have now.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any

from sqlalchemy import Connection, select

from headgate.core.ledger.canonical import fingerprint
from headgate.filters.store import rows as control_rows
from headgate.filters.store.control_model import (
    ApiKey,
    Approval,
    AuditEntry,
    Decision,
    FilterVersion,
    OwnedGitIdentity,
)
from headgate.filters.store.control_tables import api_keys, git_identities

FIELD = "sealed"
Sealed = FilterVersion | Approval | ApiKey | OwnedGitIdentity
# A key's use is noted without an entry.
UNSEALED = ("last_used_at",)


def key_of(row: Sealed) -> str:
    """What a row is called among the seals."""
    match row:
        case FilterVersion():
            return f"version:{row.filter_id}:{row.version}"
        case Approval():
            return f"approval:{row.id}"
        case ApiKey():
            return f"key:{row.id}"
        case OwnedGitIdentity():
            return f"git:{row.identity}"


def seal_of(row: Sealed) -> str:
    """The hash of all that a row says."""
    values = {name: value for name, value in vars(row).items() if name not in UNSEALED}
    # The standard library's JSON: a document's whole numbers may be of any size.
    return fingerprint(json.dumps(values, sort_keys=True, default=_plain))


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    if isinstance(value, Mapping):
        return dict(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    raise TypeError(f"{type(value).__name__} is no value of a row")


def differences(db: Connection, entries: Sequence[AuditEntry]) -> tuple[str, ...]:
    """Where the rows are not what the entries say, in words; nothing when they agree."""
    return (*_rows_differ(db, entries), *_filters_differ(db))


def _rows_differ(db: Connection, entries: Sequence[AuditEntry]) -> Iterator[str]:
    sealed: dict[str, str] = {}
    for entry in entries:
        sealed |= entry.detail.get(FIELD, {})
    before_seals = list(takewhile(lambda entry: FIELD not in entry.detail, entries))
    rows = {key_of(row): row for row in _rows(db)}
    for key, row in rows.items():
        if key in sealed and sealed[key] != seal_of(row):
            yield f"{key} is not what the log says that it is"
        elif key not in sealed and not _is_mentioned(row, before_seals):
            yield f"{key} is there, and no entry of the log speaks of it"
    for key in sealed.keys() - rows.keys():
        identity = OwnedGitIdentity(key.removeprefix("git:"), "")
        if not key.startswith("git:") or sealed[key] != seal_of(identity):
            yield f"{key} is gone, and the log says that it was made"


def _rows(db: Connection) -> Iterator[Sealed]:
    yield from control_rows.every_version(db)
    yield from control_rows.every_approval(db)
    for row in db.execute(select(api_keys)).mappings():
        values: dict[str, Any] = {str(name): value for name, value in row.items()}
        yield ApiKey(**values)
    yield from (OwnedGitIdentity(*row) for row in db.execute(select(git_identities)))


def _is_mentioned(row: Sealed, entries: Sequence[AuditEntry]) -> bool:
    """Whether an entry from before there were seals speaks of a row."""
    match row:
        case FilterVersion():
            return any(_is_about(one, row.filter_id, row.version) for one in entries)
        case Approval():
            decisions = (one for one in entries if one.action.startswith(("approve", "reject")))
            mine = (one for one in decisions if one.actor == row.by)
            return any(_is_about(one, row.filter_id, row.version) for one in mine)
        case ApiKey():
            made = (one for one in entries if one.subject == key_of(row))
            return any(one.detail.get("name") == row.name for one in made)
        case OwnedGitIdentity():
            return False


def _is_about(entry: AuditEntry, filter_id: str, version: int) -> bool:
    return entry.subject == filter_id and entry.detail.get("version") == version


def _filters_differ(db: Connection) -> Iterator[str]:
    """A filter's own row repeats its newest version and who approved it: they must agree."""
    versions = {(one.filter_id, one.version): one for one in control_rows.every_version(db)}
    approvers = {
        (one.filter_id, one.by)
        for one in control_rows.every_approval(db)
        if one.decision is Decision.APPROVED
    }
    for record in control_rows.every_filter(db):
        version = versions.get((record.id, record.version))
        if version is None:
            yield f"filter {record.id}: its version {record.version} is not there"
        elif (record.document, record.revision) != (version.document, version.revision):
            yield f"filter {record.id} has another document than its version {record.version}"
        if record.approved_by and (record.id, record.approved_by) not in approvers:
            yield f"filter {record.id}: {record.approved_by} never approved it"
