"""The audit log as a file: one line an entry, and a last line that says where the chain ends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from headgate.core.identity.store_audit import breaks
from headgate.core.ledger.canonical import canonical
from headgate.errors import UsageError
from headgate.filters.git.model import AUDIT_HEAD
from headgate.filters.store.control_model import AuditEntry, AuditHead

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
