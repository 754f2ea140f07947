"""Create, update, turn off and delete filters. Nothing here starts a filter.

One person may write a filter, and take back one that does not run. While a filter runs, a document can only turn
it off (`enabled: false` and no other change), and deleting it takes two people, for a while after it stopped too.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from headgate.errors import ConflictError, DuplicateError
from headgate.filters.control import lifecycle, operations, revisions
from headgate.filters.control.approvals import refuse_removal_under_way
from headgate.filters.control.lifecycle import Action
from headgate.filters.control.revisions import Draft, accept, refuse_stale, take_out, version_of
from headgate.filters.store.control import Change
from headgate.filters.store.model import FilterRecord, FilterVersion, OperationKind, Status


def create(change: Change, by: str, draft: Draft) -> FilterRecord:
    """A new filter in its first version, or the next one of a deleted filter."""
    before = change.filter(draft.id)
    if before is not None and before.status is not Status.DELETED:
        raise DuplicateError(
            f"there is a filter {draft.id} already",
            why=f"{before.author} wrote its version {before.version}; it is {before.status}",
            fix="update that one, or choose another id or name",
        )
    number = before.version + 1 if before else 1
    version = revisions.written(change, draft, number, by, None, "")
    change.audit(by, "create", draft.id, version=number, revision=draft.revision)
    record = FilterRecord(
        id=draft.id,
        version=number,
        revision=draft.revision,
        status=_first_status(draft),
        document=draft.content,
        author=by,
        created_at=change.now,
        updated_at=change.now,
        written_at=change.now,
    )
    return change.save(_accepted_when_off(change, record, version))


def update(
    change: Change,
    record: FilterRecord,
    by: str,
    draft: Draft,
    if_match: str | None,
    deadline: timedelta,
) -> FilterRecord:
    """The next version, waiting for approval; what runs stays as it is, unless it is turned off."""
    refuse_stale(record, if_match)
    before = change.version(record.id, record.version)
    unknown = revisions.unknown_writers(before.authors) if before else ()
    if draft.revision == record.revision and record.status is not Status.REJECTED and not unknown:
        return record
    on = draft.declared.enabled
    after = lifecycle.following(record, Action.UPDATE if on else Action.DISABLE)
    refuse_removal_under_way(record, "update")
    if turns_off(record, draft):
        _refuse_other_changes(change, record, draft)
    elif record.status is Status.PENDING_DELETION:
        raise lifecycle.refused(record, "update", "its deletion waits for a second person")
    version = revisions.written(change, draft, record.version + 1, by, before, "")
    change.void_approvals(record.id, f"edited by {by}")
    action = "update" if on else "disable"
    change.audit(by, action, record.id, version=version.version, revision=draft.revision)
    record = _at_version(change, record, version, after)
    record = _accepted_when_off(change, record, version)
    return change.save(record if on else _turned_off(change, record, by, deadline))


def turns_off(record: FilterRecord, draft: Draft) -> bool:
    """Whether this document stops what runs, as a pause does: whoever may pause may submit it."""
    return record.runs and not draft.declared.enabled


def delete(
    change: Change, record: FilterRecord, by: str, if_match: str | None, window: timedelta
) -> FilterRecord:
    """Gone at once when it does not run and has not run within the window; else two people decide."""
    refuse_stale(record, if_match)
    if record.runs or _ran_within(change, record, window):
        after = lifecycle.following(record, Action.ASK_DELETION)
        change.audit(by, "ask_deletion", record.id, version=record.version)
        asked = replace(record, status=after, former_status=record.status, asked_by=by)
        return change.save(replace(asked, updated_at=change.now))
    after = lifecycle.following(record, Action.DELETE)
    change.void_approvals(record.id, f"deleted by {by}")
    withdraw_all(change, record, by)
    change.audit(by, "delete", record.id, version=record.version)
    return change.save(take_out(change, replace(record, status=after, updated_at=change.now), by))


def _ran_within(change: Change, record: FilterRecord, window: timedelta) -> bool:
    """Whether anything of it was ordered to run, and its target was last busy with it lately."""
    mine = [one for one in change.operations(record.id) if one.at >= record.created_at]
    ordered = any(one.kind is OperationKind.DEPLOY for one in mine)
    return ordered and change.now - max(one.ended_at or change.now for one in mine) < window


def _refuse_other_changes(change: Change, record: FilterRecord, draft: Draft) -> None:
    """Nobody approves a document that turns a filter off: its text must be that of what runs.

    The newest version will not do: it may be one that waits, or was rejected.
    """
    running = version_of(change, record, record.wanted_version or record.version)
    keys = {**running.document, **draft.content}.keys() - {"enabled"}
    other = sorted(k for k in keys if running.document.get(k) != draft.content.get(k))
    if other:
        raise ConflictError(
            f"{record.id} runs: a document that turns it off may change `enabled` only",
            why=f"{', '.join(other)} differ from version {running.version}, which runs",
            fix=f"send version {running.version} with enabled: false, or pause the filter; "
            "send other changes as an update that waits for approval",
        )


def withdraw_all(change: Change, record: FilterRecord, by: str) -> None:
    """A filter that is created again has no way back to what was deleted."""
    numbers = [one.version for one in change.live_versions(record.id)]
    change.withdraw_live(record.id, numbers, f"deleted by {by}")


def _first_status(draft: Draft) -> Status:
    return Status.PENDING_APPROVAL if draft.declared.enabled else Status.DISABLED


def _at_version(
    change: Change, record: FilterRecord, version: FilterVersion, status: Status
) -> FilterRecord:
    return replace(
        record,
        version=version.version,
        revision=version.revision,
        document=version.document,
        author=version.author,
        status=status,
        approved_by=None,
        approved_at=None,
        former_status=None,
        asked_by=None,
        updated_at=change.now,
        written_at=change.now,
    )


def _accepted_when_off(
    change: Change, record: FilterRecord, version: FilterVersion
) -> FilterRecord:
    """A document that turns its filter off needs nobody's approval."""
    if record.status is not Status.DISABLED:
        return record
    return accept(change, record, f"turned off by {version.author}")


def _turned_off(change: Change, record: FilterRecord, by: str, deadline: timedelta) -> FilterRecord:
    """Nothing of it shall run from now on; to turn it on again takes an approval."""
    if not record.runs:
        return record
    running = record.wanted_version
    record = replace(
        record,
        wanted_deployment=None,
        wanted_version=None,
        deployed_version=None,
        deployed_revision=None,
        paused=False,
        deployment_error=None,
        since=None,
    )
    operations.begin(change, record, OperationKind.DISABLE, by, deadline, version=running)
    return record
