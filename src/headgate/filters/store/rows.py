"""Reads and writes rows of filters, versions, approvals, operations and the git outbox, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Connection,
    RowMapping,
    Select,
    func,
    insert,
    select,
    update,
)

from headgate.filters.store.model import (
    Accepted,
    Approval,
    Decision,
    FilterRecord,
    FilterVersion,
    GitErrand,
    LiveVersion,
    Operation,
    OperationKind,
    OperationState,
    Page,
    Status,
    TopicEnd,
)
from headgate.filters.store.tables import (
    approvals,
    filter_versions,
    filters,
    git_errands,
    live_versions,
    operations,
)

SEARCHED = ("id", "name", "description", "consumerId", "outputTopic")

# Filters


def find_filter(db: Connection, id: str) -> FilterRecord | None:
    row = db.execute(select(filters).where(filters.c.id == id)).mappings().one_or_none()
    return _record(row) if row else None


def every_filter(db: Connection) -> tuple[FilterRecord, ...]:
    rows = db.execute(select(filters).order_by(filters.c.id)).mappings()
    return tuple(_record(row) for row in rows)


def save_filter(db: Connection, record: FilterRecord) -> None:
    values = _plain(record)
    values["consumer"] = str(record.document.get("consumerId", ""))
    values["since"] = vars(record.since) if record.since else None
    same = update(filters).where(filters.c.id == record.id)
    if db.execute(same.values(**values)).rowcount == 0:
        db.execute(insert(filters).values(**values))


def page(
    db: Connection,
    statuses: Collection[Status],
    consumer: str | None,
    words: str | None,
    after: str | None,
    limit: int,
) -> Page:
    """Filters by id. Deleted ones only when asked for."""
    query = _chosen(statuses, consumer)
    if words:
        every = (_record(row) for row in db.execute(query.order_by(filters.c.id)).mappings())
        found = [record for record in every if _speaks_of(record, words)]
        rest = [record for record in found if after is None or record.id > after]
        return _paged(rest[: limit + 1], len(found), limit)
    total = db.scalar(select(func.count()).select_from(query.subquery())) or 0
    if after is not None:
        query = query.where(filters.c.id > after)
    rows = db.execute(query.order_by(filters.c.id).limit(limit + 1)).mappings()
    return _paged([_record(row) for row in rows], total, limit)


def _paged(found: Sequence[FilterRecord], total: int, limit: int) -> Page:
    """One record more than asked for tells that there is another page."""
    here = tuple(found[:limit])
    return Page(here, total, here[-1].id if len(found) > limit else None)


def _chosen(statuses: Collection[Status], consumer: str | None) -> Select[tuple[Any, ...]]:
    query = select(filters)
    if statuses:
        query = query.where(filters.c.status.in_(statuses))
    else:
        query = query.where(filters.c.status != Status.DELETED)
    return query if consumer is None else query.where(filters.c.consumer == consumer)


def _speaks_of(record: FilterRecord, words: str) -> bool:
    """In what people call it, not in the names of fields that every document has."""
    told = (str(record.document.get(name, "")) for name in SEARCHED)
    return any(words.casefold() in text.casefold() for text in told)


def _record(row: RowMapping) -> FilterRecord:
    values: dict[str, Any] = {str(name): value for name, value in row.items()}
    del values["consumer"]
    former = values["former_status"]
    values["status"] = Status(values["status"])
    values["former_status"] = Status(former) if former else None
    values["statement_ids"] = tuple(values["statement_ids"])
    values["since"] = TopicEnd(**values["since"]) if values["since"] else None
    return FilterRecord(**values)


# Versions


def add_version(db: Connection, version: FilterVersion) -> None:
    db.execute(insert(filter_versions).values(**_plain(version)))


def versions(db: Connection, filter_id: str) -> tuple[FilterVersion, ...]:
    mine = select(filter_versions).where(filter_versions.c.filter_id == filter_id)
    rows = db.execute(mine.order_by(filter_versions.c.version)).mappings()
    return tuple(_version(row) for row in rows)


def find_version(db: Connection, filter_id: str, number: int) -> FilterVersion | None:
    table = filter_versions
    mine = select(table).where(table.c.filter_id == filter_id, table.c.version == number)
    row = db.execute(mine).mappings().one_or_none()
    return _version(row) if row else None


def submitters(db: Connection) -> frozenset[str]:
    """Everybody who ever submitted a version."""
    return frozenset(db.scalars(select(filter_versions.c.author).distinct()))


def every_version(db: Connection) -> tuple[FilterVersion, ...]:
    order = (filter_versions.c.filter_id, filter_versions.c.version)
    rows = db.execute(select(filter_versions).order_by(*order)).mappings()
    return tuple(_version(row) for row in rows)


def accepted(db: Connection) -> tuple[Accepted, ...]:
    """The contents that must stand in git."""
    table = filter_versions
    same = (table.c.filter_id == filters.c.id) & (table.c.version == filters.c.accepted_version)
    query = select(table).join(filters, same).where(filters.c.status != Status.DELETED)
    rows = db.execute(query.order_by(table.c.filter_id)).mappings()
    found = (_version(row) for row in rows)
    return tuple(
        Accepted(one.filter_id, one.version, one.revision, one.document, one.author)
        for one in found
    )


def _version(row: RowMapping) -> FilterVersion:
    values: dict[str, Any] = {str(name): value for name, value in row.items()}
    values["authors"] = tuple(values["authors"])
    return FilterVersion(**values)


# Live versions


def add_live(db: Connection, live: LiveVersion) -> None:
    db.execute(insert(live_versions).values(**_plain(live)))


def live_of(db: Connection, filter_id: str) -> tuple[LiveVersion, ...]:
    """The versions that went live, the newest first."""
    columns = [live_versions.c[name] for name in ("filter_id", "version", "at", "withdrawn")]
    query = select(*columns).where(live_versions.c.filter_id == filter_id)
    return tuple(LiveVersion(*row) for row in db.execute(query.order_by(live_versions.c.id.desc())))


def withdraw_live(db: Connection, filter_id: str, numbers: Collection[int], by: str) -> None:
    mine = (live_versions.c.filter_id == filter_id, live_versions.c.version.in_(numbers))
    db.execute(update(live_versions).where(*mine).values(withdrawn=by))


# Approvals


def add_approval(db: Connection, approval: Approval) -> None:
    db.execute(insert(approvals).values(**_plain(approval)))


def approvals_of(db: Connection, filter_id: str) -> tuple[Approval, ...]:
    query = select(approvals).where(approvals.c.filter_id == filter_id)
    rows = db.execute(query.order_by(approvals.c.at, approvals.c.id)).mappings()
    return tuple(_approval(row) for row in rows)


def every_approval(db: Connection) -> tuple[Approval, ...]:
    rows = db.execute(select(approvals).order_by(approvals.c.at, approvals.c.id)).mappings()
    return tuple(_approval(row) for row in rows)


def void_approvals(db: Connection, filter_id: str, why: str) -> int:
    """No approval of this filter holds any longer; how many did."""
    sound = (approvals.c.filter_id == filter_id, approvals.c.void == "")
    return db.execute(update(approvals).where(*sound).values(void=why)).rowcount


def _approval(row: RowMapping) -> Approval:
    values: dict[str, Any] = {str(name): value for name, value in row.items()}
    values["decision"] = Decision(values["decision"])
    return Approval(**values)


# Operations


def save_operation(db: Connection, operation: Operation) -> None:
    values = _plain(operation)
    same = update(operations).where(operations.c.id == operation.id)
    if db.execute(same.values(**values)).rowcount == 0:
        db.execute(insert(operations).values(**values))


def find_operation(db: Connection, id: str) -> Operation | None:
    row = db.execute(select(operations).where(operations.c.id == id)).mappings().one_or_none()
    return _operation(row) if row else None


def find_operations(
    db: Connection,
    filter_id: str | None = None,
    states: Collection[OperationState] = (),
    limit: int | None = None,
) -> tuple[Operation, ...]:
    """Operations, the newest first."""
    query = select(operations).order_by(operations.c.at.desc(), operations.c.id).limit(limit)
    if filter_id is not None:
        query = query.where(operations.c.filter_id == filter_id)
    if states:
        query = query.where(operations.c.state.in_(states))
    return tuple(_operation(row) for row in db.execute(query).mappings())


def _operation(row: RowMapping) -> Operation:
    values: dict[str, Any] = {str(name): value for name, value in row.items()}
    values["kind"] = OperationKind(values["kind"])
    values["state"] = OperationState(values["state"])
    values["statement_ids"] = tuple(values["statement_ids"])
    return Operation(**values)


# Git errands


def add_errand(
    db: Connection, filter_id: str, text: str | None, author: str, message: str, at: datetime
) -> None:
    db.execute(
        insert(git_errands).values(
            filter_id=filter_id, text=text, author=author, message=message, at=at, trouble=""
        )
    )


def open_errands(db: Connection) -> tuple[GitErrand, ...]:
    """Commits that are still to be made, in the order they were asked for."""
    query = select(git_errands).where(git_errands.c.commit.is_(None)).order_by(git_errands.c.id)
    return tuple(GitErrand(*row) for row in db.execute(query))


def errands(db: Connection, filter_id: str) -> tuple[GitErrand, ...]:
    query = select(git_errands).where(git_errands.c.filter_id == filter_id)
    return tuple(GitErrand(*row) for row in db.execute(query.order_by(git_errands.c.id)))


def note_errand(db: Connection, id: int, commit: str | None, trouble: str = "") -> None:
    mine = update(git_errands).where(git_errands.c.id == id)
    db.execute(mine.values(commit=commit, trouble=trouble))


# Audit


def filters_differ(db: Connection) -> Iterator[str]:
    """A filter's own row repeats its newest version and who approved it: they must agree."""
    versions = {(one.filter_id, one.version): one for one in every_version(db)}
    approvers = {
        (one.filter_id, one.by) for one in every_approval(db) if one.decision is Decision.APPROVED
    }
    for record in every_filter(db):
        version = versions.get((record.id, record.version))
        if version is None:
            yield f"filter {record.id}: its version {record.version} is not there"
        elif (record.document, record.revision) != (version.document, version.revision):
            yield f"filter {record.id} has another document than its version {record.version}"
        if record.approved_by and (record.id, record.approved_by) not in approvers:
            yield f"filter {record.id}: {record.approved_by} never approved it"


def _plain(value: object) -> dict[str, Any]:
    """A value's fields as columns; tuples are lists in JSON."""
    fields: dict[str, Any] = vars(value)
    return {name: [*part] if isinstance(part, tuple) else part for name, part in fields.items()}
