"""The audit log: a hash chain of entries, seals of the rows that an entry wrote, verification, and export as a file.

An entry holds the hash of the one before; the head is kept apart, so that entries cut off at the end are missed.
Under `sealed` it holds the hashes of the rows that its change wrote: the last seal of a row is what it must be now.
`AuditLog.change` is one write transaction that refuses to end with something written and no entry.
An export is one line of JSON an entry and a last line with the head.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any, Protocol

import orjson
from sqlalchemy import Connection, Engine, insert, select, update

from headgate.core.ledger.database import writing
from headgate.core.ledger.model import canonical, fingerprint, parse
from headgate.core.ledger.tables import audit, audit_head
from headgate.errors import UsageError

FIRST = "0" * 64
_HEAD_ROW = 1
# The trailer of a commit that says where the audit log ended when the commit was made.
AUDIT_HEAD = "Audit-Head"


@dataclass(frozen=True)
class AuditEntry:
    """One thing that was done. `hash` covers all the rest, and `previous` the whole past."""

    seq: int
    at: datetime
    actor: str
    action: str
    subject: str
    detail: Mapping[str, Any]
    previous: str
    hash: str


@dataclass(frozen=True)
class AuditHead:
    """The end of the chain, kept apart from it: what is cut off at the end is missed too."""

    seq: int
    hash: str


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
# A key's use is noted without an entry.
UNSEALED = ("last_used_at",)
# The one kind of row that is ever deleted; the log seals it without its name then.
GIT_IDENTITY = "git:"


class SealedRow(Protocol):
    """A row whose hash an audit entry holds."""

    @property
    def seal_key(self) -> str:
        """What the row is called among the seals."""
        ...

    def is_mentioned_in(self, entries: Iterable[AuditEntry]) -> bool:
        """Whether one of these entries, all from before there were seals, speaks of the row."""
        ...


def seal_of(row: SealedRow) -> str:
    """The hash of all that a row says."""
    return _seal({name: value for name, value in vars(row).items() if name not in UNSEALED})


def _seal(values: Mapping[str, object]) -> str:
    # The standard library's JSON: a document's whole numbers may be of any size.
    return fingerprint(json.dumps(values, sort_keys=True, default=_plain))


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    if isinstance(value, Mapping):
        return dict(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    raise TypeError(f"{type(value).__name__} is no value of a row")


def differences(rows: Iterable[SealedRow], entries: Sequence[AuditEntry]) -> Iterator[str]:
    """Where the rows are not what the entries say, in words; nothing when they agree."""
    sealed: dict[str, str] = {}
    for entry in entries:
        sealed |= entry.detail.get(FIELD, {})
    before_seals = list(takewhile(lambda entry: FIELD not in entry.detail, entries))
    by_key = {row.seal_key: row for row in rows}
    for key, row in by_key.items():
        if key in sealed and sealed[key] != seal_of(row):
            yield f"{key} is not what the log says that it is"
        elif key not in sealed and not row.is_mentioned_in(before_seals):
            yield f"{key} is there, and no entry of the log speaks of it"
    for key in sealed.keys() - by_key.keys():
        removed = _seal({"identity": key.removeprefix(GIT_IDENTITY), "name": ""})
        if not key.startswith(GIT_IDENTITY) or sealed[key] != removed:
            yield f"{key} is gone, and the log says that it was made"


class AuditedChange:
    """One write transaction; nobody else writes meanwhile.

    It cannot end with something sealed, or counted as written, and no audit entry.
    """

    def __init__(self, db: Connection, now: datetime) -> None:
        self.db = db
        self.now = now
        self._written = 0
        self._audited = 0
        self._seals: dict[str, str] = {}

    def seal(self, row: SealedRow) -> None:
        """Let the next audit entry hold the hash of this row, which `audit verify` compares it with."""
        self._seals[row.seal_key] = seal_of(row)

    def audit(self, actor: str, action: str, subject: str, **detail: Any) -> AuditEntry:
        self._audited += 1
        sealed = {FIELD: self._seals} if self._seals else {}
        self._seals = {}
        return append(self.db, self.now, actor, action, subject, {**detail, **sealed})

    def was_audited(
        self, actor: str, action: str, subject: str, detail: Mapping[str, object]
    ) -> bool:
        """Whether the log has this entry already: for what anybody could repeat without end."""
        return any(
            (one.actor, one.action, dict(one.detail)) == (actor, action, dict(detail))
            for one in of_subject(self.db, subject)
        )

    def refuse_unless_audited(self) -> None:
        if (self._written and not self._audited) or self._seals:
            raise RuntimeError("a change of the control plane has no audit entry")


class AuditLog:
    """Reads the audit log, and writes to it with every change: both are one transaction."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime]) -> None:
        self._engine = engine
        self._clock = clock

    def now(self) -> datetime:
        return self._clock()

    @contextmanager
    def change(self) -> Generator[AuditedChange]:
        """Look, decide and write in one transaction; all of it is undone when anything raises."""
        with writing(self._engine) as db:
            change = AuditedChange(db, self._clock())
            yield change
            change.refuse_unless_audited()

    def audit(self, after: int = 0, limit: int | None = None) -> tuple[AuditEntry, ...]:
        """Entries after this one, in their order."""
        with self._engine.connect() as db:
            return entries(db, after, limit)

    def audit_of(self, subject: str) -> tuple[AuditEntry, ...]:
        with self._engine.connect() as db:
            return of_subject(db, subject)

    def audit_head(self) -> AuditHead:
        with self._engine.connect() as db:
            return read_head(db)

    def audit_chain(self) -> tuple[tuple[AuditEntry, ...], AuditHead]:
        """All entries and the head, as they stood at one moment."""
        with writing(self._engine) as db:
            return entries(db), read_head(db)


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
