"""The audit log: a hash chain of entries, seals of the rows that an entry wrote, verification, and export as a file.

An entry holds the hash of the one before; the head is kept apart, so that entries cut off at the end are missed.
Under `sealed` it holds the hashes of the rows that its change wrote: the last seal of a row is what it must be now.
An export is one line of JSON an entry and a last line with the head.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any

import orjson
from sqlalchemy import Connection, insert, select, update

from headgate.core.ledger.model import canonical, fingerprint, parse
from headgate.errors import UsageError
from headgate.filters.git.repository import AUDIT_HEAD
from headgate.filters.store import rows as control_rows
from headgate.filters.store.model import (
    ApiKey,
    Approval,
    AuditEntry,
    AuditHead,
    Decision,
    FilterVersion,
    OwnedGitIdentity,
)
from headgate.filters.store.tables import api_keys, audit, audit_head, git_identities

FIRST = "0" * 64
_HEAD_ROW = 1


def append(
    db: Connection,
    at: datetime,
    actor: str,
    action: str,
    subject: str,
    detail: Mapping[str, Any],
) -> AuditEntry:
    """The next entry of the chain, written in the caller's transaction."""
    head = read_head(db)
    # What is hashed is what a reader will get back: plain JSON.
    plain = parse(canonical(detail))
    entry = AuditEntry(head.seq + 1, at, actor, action, subject, plain, head.hash, "")
    entry = replace(entry, hash=entry_hash(entry))
    db.execute(insert(audit).values(**vars(entry)))
    _move_head(db, head, entry)
    return entry


def entry_hash(entry: AuditEntry) -> str:
    values = {**vars(entry), "at": entry.at.astimezone(UTC).isoformat(timespec="microseconds")}
    del values["hash"]
    return fingerprint(canonical(values))


def read_head(db: Connection) -> AuditHead:
    row = db.execute(select(audit_head.c.seq, audit_head.c.hash)).first()
    return AuditHead(row.seq, row.hash) if row else AuditHead(0, FIRST)


def entries(db: Connection, after: int = 0, limit: int | None = None) -> tuple[AuditEntry, ...]:
    query = select(audit).where(audit.c.seq > after).order_by(audit.c.seq).limit(limit)
    return tuple(AuditEntry(*row) for row in db.execute(query))


def of_subject(db: Connection, subject: str) -> tuple[AuditEntry, ...]:
    query = select(audit).where(audit.c.subject == subject).order_by(audit.c.seq)
    return tuple(AuditEntry(*row) for row in db.execute(query))


def breaks(found: Iterable[AuditEntry], head: AuditHead) -> tuple[str, ...]:
    """What is wrong with a whole chain, in words; nothing when it is sound."""
    return tuple(_breaks(found, head))


def _breaks(found: Iterable[AuditEntry], head: AuditHead) -> Iterable[str]:
    seq, hash_ = 0, FIRST
    for entry in found:
        if entry.seq != seq + 1:
            yield f"entry {seq + 1} is not there: {entry.seq} follows {seq}"
        if entry.previous != hash_:
            yield f"entry {entry.seq} does not follow the one before it"
        if entry.hash != entry_hash(entry):
            yield f"entry {entry.seq} was changed"
        seq, hash_ = entry.seq, entry.hash
    if (seq, hash_) != (head.seq, head.hash):
        yield f"the log ends with entry {seq}, its head says {head.seq}"


def _move_head(db: Connection, head: AuditHead, entry: AuditEntry) -> None:
    place = {"seq": entry.seq, "hash": entry.hash}
    if head.seq:
        db.execute(update(audit_head).values(**place))
    else:
        db.execute(insert(audit_head).values(id=_HEAD_ROW, **place))


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


HEAD = "head"
HEAD_TEXT = re.compile(r"[0-9]{1,18}:[0-9a-f]{64}")


@dataclass(frozen=True)
class Verdict:
    """Whether a chain is sound. `head` is what to keep elsewhere, to compare a later chain with.

    `heads_in_git` counts the commits whose trailer the chain was compared with.
    """

    entries: int
    head: str
    breaks: tuple[str, ...]
    heads_in_git: int = 0

    @property
    def is_sound(self) -> bool:
        return not self.breaks


def verified(
    entries: Sequence[AuditEntry],
    head: AuditHead,
    expected: AuditHead | None = None,
    in_git: Mapping[str, str] | None = None,
) -> Verdict:
    """What is wrong with the chain; also against a head that was written down earlier.

    `in_git` has the heads that git knows, by commit: who owns the database does not own them.
    """
    found = list(breaks(entries, head))
    if expected is not None and not _has(entries, expected):
        found.append(f"entry {expected.seq} is not the one that was written down: {expected.hash}")
    found += [
        f"commit {commit[:12]} says that the log had {text[:40]}…, and it has not"
        for commit, text in (in_git or {}).items()
        if not (HEAD_TEXT.fullmatch(text) and _has(entries, read_head_text(text)))
    ]
    return Verdict(len(entries), head_text(head), tuple(found), len(in_git or {}))


def head_trailer(head: AuditHead) -> str:
    """The last line of a commit's message: where the log ended when the commit was made."""
    return f"{AUDIT_HEAD}: {head_text(head)}\n"


def head_text(head: AuditHead) -> str:
    """`17:ab12…`: the number of the last entry and its hash."""
    return f"{head.seq}:{head.hash}"


def read_head_text(text: str) -> AuditHead:
    if not HEAD_TEXT.fullmatch(text):
        raise UsageError(
            f"{text!r} is no head of an audit log", fix="it looks like 17:<64 hex digits>"
        )
    seq, _, hash_ = text.partition(":")
    return AuditHead(int(seq), hash_)


def exported(entries: Iterable[AuditEntry], head: AuditHead) -> Iterator[str]:
    """Lines of canonical JSON, as `headgate audit verify --file` reads them."""
    for entry in entries:
        yield canonical({**vars(entry), "at": _text(entry.at)}) + "\n"
    yield canonical({HEAD: {"seq": head.seq, "hash": head.hash}}) + "\n"


def read_export(lines: Iterable[str]) -> tuple[tuple[AuditEntry, ...], AuditHead]:
    """The chain of an exported file; one without its last line ends nowhere."""
    entries: list[AuditEntry] = []
    head = AuditHead(0, "")
    for number, line in enumerate(lines, 1):
        try:
            value: dict[str, Any] = orjson.loads(line)
            if HEAD in value:
                head = AuditHead(**value[HEAD])
            else:
                value["at"] = datetime.fromisoformat(value["at"])
                entries.append(AuditEntry(**value))
        except (ValueError, TypeError, KeyError) as error:
            raise UsageError(f"line {number} is no entry of an audit log", why=str(error)) from None
    return tuple(entries), head


def _has(entries: Sequence[AuditEntry], expected: AuditHead) -> bool:
    if expected.seq == 0:
        return True
    inside = expected.seq <= len(entries)
    return inside and entries[expected.seq - 1].hash == expected.hash


def _text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds")
