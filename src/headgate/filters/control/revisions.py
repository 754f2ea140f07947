"""Versions of a filter inside a change: drafts, authors, SQL bound by an approval, and what is to stand in git.

Whoever wrote on a version since the last approval is one of its authors and may not approve it.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from headgate.core.identity.roles import UNKNOWN_WRITER
from headgate.core.ledger.model import fingerprint
from headgate.errors import NotFoundError, StaleError
from headgate.filters.compile.flink import flink_faults, flink_statements
from headgate.filters.compile.spark_sql import compile_filter
from headgate.filters.control.model import Difference
from headgate.filters.loader import parse_filter
from headgate.filters.spec import Filter, content, revision_of
from headgate.filters.store.control import Change
from headgate.filters.store.model import Decision, FilterRecord, FilterVersion, Status
from headgate.filters.targets.deployment import ENGINE


@dataclass(frozen=True)
class Draft:
    """A document that was read and compiles: ready to become a version."""

    declared: Filter
    content: Mapping[str, Any]
    revision: str
    sql_hash: str
    # Who wrote it before it was submitted, such as in git: none of them may approve it.
    also: frozenset[str] = frozenset()

    @property
    def id(self) -> str:
        return self.declared.id


def drafted(document: Filter | object, also: Collection[str] = ()) -> Draft:
    """All faults of a document at once as DeclarationError, or the draft."""
    declared = document if isinstance(document, Filter) else parse_filter(document)
    sql_hash = compile_filter(declared).sql_hash
    return Draft(declared, content(declared), revision_of(declared), sql_hash, frozenset(also))


def statements_for(declared: Filter, target: str) -> tuple[str, str]:
    """The sink and the insert that this target runs: what a person is shown and approves."""
    return compile_filter(declared).statements if target == ENGINE else flink_statements(declared)


def differences_at(declared: Filter, target: str) -> tuple[str, ...]:
    """Why the filter would mean something else at this target than it is documented to mean."""
    faults = () if target == ENGINE else flink_faults(declared)
    return tuple(fault.sentence() for fault in faults)


def bounds_of(declared: Filter, targets: Iterable[str]) -> dict[str, str]:
    """What an approval is given for, by target that can run it: this content and this text."""
    revision = revision_of(declared)
    return {
        target: fingerprint(f"{revision}\n{_text_hash(declared, target)}")
        for target in targets
        if not differences_at(declared, target)
    }


def _text_hash(declared: Filter, target: str) -> str:
    return hashlib.sha256("\n\n".join(statements_for(declared, target)).encode()).hexdigest()


def document_text(document: Mapping[str, Any]) -> str:
    """The file in git: for people to read, the same bytes for the same content."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def written(
    change: Change, draft: Draft, number: int, author: str, before: FilterVersion | None, note: str
) -> FilterVersion:
    """A new version; whoever wrote on it since the last approval is one of its authors.

    Whoever submits what somebody unknown wrote in git answers for it from then on.
    """
    authors = {author, *draft.also}
    if before is not None and not _was_approved(change, before):
        authors |= set(before.authors) - set(unknown_writers(before.authors))
    return change.add_version(
        FilterVersion(
            filter_id=draft.id,
            version=number,
            revision=draft.revision,
            document=draft.content,
            author=author,
            authors=tuple(sorted(authors)),
            written_at=change.now,
            sql_hash=draft.sql_hash,
            note=note,
        )
    )


def unknown_writers(authors: Iterable[str]) -> tuple[str, ...]:
    """The identities of git among these authors that are nobody's here."""
    return tuple(sorted(one for one in authors if one.startswith(UNKNOWN_WRITER)))


def _was_approved(change: Change, version: FilterVersion) -> bool:
    """Whether a second person said yes to this version, and nobody no."""
    words = (one for one in change.approvals(version.filter_id) if one.version == version.version)
    decisions = {one.decision for one in words}
    return decisions == {Decision.APPROVED}


def difference(before: FilterVersion, after: FilterVersion) -> Difference:
    old, new = (document_text(one.document).splitlines(keepends=True) for one in (before, after))
    lines = difflib.unified_diff(old, new, f"version {before.version}", f"version {after.version}")
    keys = {**before.document, **after.document}
    changed = (key for key in keys if before.document.get(key) != after.document.get(key))
    return Difference(
        before.filter_id, before.version, after.version, tuple(changed), "".join(lines)
    )


ANY = "*"


def found(record: FilterRecord | None, id: str) -> FilterRecord:
    """The record, unless there is none or it was deleted."""
    if record is None or record.status is Status.DELETED:
        raise NotFoundError(f"there is no filter {id}", fix="headgate filters list names them")
    return record


def refuse_stale(record: FilterRecord, if_match: str | None) -> None:
    """StaleError when the caller saw another state of the record than this one."""
    if if_match not in (None, ANY, record.etag):
        raise StaleError(
            f"{record.id} was changed since you read it",
            why=f"its tag is {record.etag}, you name {if_match}",
            fix="read it again, then decide",
        )


def version_of(change: Change, record: FilterRecord, number: int) -> FilterVersion:
    version = change.version(record.id, number)
    if version is None:
        raise NotFoundError(f"{record.id} has no version {number}")
    return version


def accept(change: Change, record: FilterRecord, why: str) -> FilterRecord:
    """This version is to stand in git; the reconciler makes the commit."""
    version = version_of(change, record, record.version)
    message = f"{record.id}: version {version.version}, {why}\n\nRevision: {version.revision}\n"
    change.add_errand(record.id, document_text(version.document), version.author, message)
    return replace(record, accepted_version=record.version)


def take_out(change: Change, record: FilterRecord, by: str) -> FilterRecord:
    """Its file is to go from git; the history stays."""
    if record.accepted_version is not None:
        change.add_errand(record.id, None, by, f"{record.id}: deleted\n")
    return replace(record, accepted_version=None)
