"""Looking up and keeping records inside a change."""

from __future__ import annotations

from dataclasses import replace

from headgate.errors import NotFoundError, StaleError
from headgate.filters.control.control_revisions import document_text
from headgate.filters.store.control import Change
from headgate.filters.store.control_model import FilterRecord, FilterVersion, Status

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
