"""What a record of Topic-1 asks the hasher for: which key, at which version, and what it expects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple, cast

from headgate.declarations.spec_types import STRING, SqlType
from headgate.quality.key_path import Step
from headgate.quality.sound import is_like, is_time, sound_fields, time_of
from headgate.quality.spec.reconcile_section import Reconcile
from headgate.quality.spec.rule_set import RuleTable
from headgate.reconcile.hasher.framing import Opened, plainly
from headgate.reconcile.hasher.key_path import key_of, text_of
from headgate.reconcile.reconcile_state import ACTIONS, DELETE

Why = Literal["not_json", "missing_pk", "unknown_action", "wrong_type"]


@dataclass(frozen=True)
class Record:
    """One record as it stands on its topic; `epoch` tells one assignment of a partition from the next."""

    topic: str
    partition: int
    offset: int
    timestamp: datetime
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    epoch: int = 0


class Known(NamedTuple):
    """What was read of a key before."""

    hash: str | None
    version: datetime


@dataclass(frozen=True)
class Asked:
    """A key to look up; `hash` is what on-prem has, `deleted` that it has the row no more.

    `expects` says that the reading should agree with it; `before` that this is the second look, not
    to be made before `due`. No answer may be older than `least`: it would lose to what was said then.
    """

    key: str
    version: datetime
    record: Record
    deleted: bool = False
    hash: str | None = None
    hash_version: int | None = None
    expects: bool = False
    before: Known | None = None
    due: datetime | None = None
    least: datetime | None = None


@dataclass(frozen=True)
class Skipped:
    """A record that the job makes a dead letter of; the hasher leaves it alone."""

    why: Why


@dataclass(frozen=True)
class EventForm:
    """Where in a record the key, the action, the hash and the version stand."""

    pk: str
    path: tuple[Step, ...]
    action: str | None
    hash: str | None
    hash_version: str | None
    event_time: str | None
    types: Mapping[str, SqlType] = field(default_factory=dict[str, SqlType])


def reread_topic(onprem_topic: str) -> str:
    """The topic by which others ask for keys to be read again, as after a repair."""
    return f"{onprem_topic}.reread"


def event_form(table: RuleTable, reconcile: Reconcile, path: tuple[Step, ...]) -> EventForm:
    source = table.sources["onprem"]
    types = {table.pk: STRING, **source.types}
    return EventForm(
        pk=table.pk,
        path=path,
        action=reconcile.action if reconcile.action in source.types else None,
        hash=table.hash.onprem_field if table.hash else None,
        hash_version=reconcile.hash_version,
        event_time=source.event_time,
        types={name: kind for name, kind in types.items() if not path or name != table.pk},
    )


def asked_of(record: Record, form: EventForm, opened: Opened = plainly) -> Asked | Skipped:
    """What an event of Topic-1 asks for; a tombstone asks whether its key is gone.

    What the job refuses asks for nothing: an answer to it would stand alone on Topic-2.
    """
    if record.value is None:
        return _tombstone(record)
    text = opened(record.value)
    data = sound_fields(text) if text is not None else None
    if data is None:
        return Skipped("not_json")
    key = sendable(key_of(data, form.path) if form.path else text_of(data.get(form.pk)))
    if key is None:
        return Skipped("missing_pk")
    action = data.get(form.action) if form.action else None
    if action is not None and action not in ACTIONS:
        return Skipped("unknown_action")
    if not all(is_like(data.get(name), kind) for name, kind in form.types.items()):
        return Skipped("wrong_type")
    version = version_of(data, form.event_time, record)
    return _event(record, data, form, key, version) if version else Skipped("wrong_type")


def _event(
    record: Record, data: Mapping[str, Any], form: EventForm, key: str, version: datetime
) -> Asked:
    return Asked(
        key=key,
        version=version,
        record=record,
        deleted=bool(form.action) and data.get(str(form.action)) == DELETE,
        hash=text_of(data.get(form.hash)) if form.hash else None,
        hash_version=_whole(data.get(form.hash_version)) if form.hash_version else None,
        expects=True,
    )


def _tombstone(record: Record) -> Asked | Skipped:
    key = bare_key(record)
    if key is None:
        return Skipped("missing_pk")
    return Asked(key, record.timestamp, record, deleted=True, expects=True)


def request_of(record: Record) -> Asked | Skipped:
    """A request to read a key again: `{pk, event_ts, reason}`, or the key alone.

    Who asks at a version asks because of what was read then, as that there was no row.
    """
    data = fields_of(record.value or b"{}")
    if data is None:
        return Skipped("not_json")
    key = sendable(text_of(data.get("pk"))) or bare_key(record)
    version = version_of(data, "event_ts", record)
    if key is None:
        return Skipped("missing_pk")
    if version is None:
        return Skipped("not_json")
    asked = Asked(key, version, record, least=_moment(data.get("event_ts")))
    return _second_look(asked, data) if data.get("before") is not None else asked


def _second_look(asked: Asked, data: Mapping[str, Any]) -> Asked | Skipped:
    """A request that a hasher put there for itself, or for the one that goes on after it."""
    before = data["before"]
    said = cast("Mapping[str, Any]", before if isinstance(before, dict) else {})
    read_at, due = _moment(said.get("version")), _moment(data.get("due"))
    if read_at is None or due is None:
        return Skipped("not_json")
    known = Known(text_of(said.get("hash")), read_at)
    deleted = data.get("deleted") is True
    return replace(asked, deleted=deleted, before=known, due=due, least=known.version)


def _moment(text: Any) -> datetime | None:
    return time_of(text) if isinstance(text, str) and is_time(text) else None


def sendable(key: str | None) -> str | None:
    """The key, unless no message can carry it: JSON may spell half of a character."""
    try:
        return key.encode().decode() if key is not None else None
    except UnicodeEncodeError:
        return None


def bare_key(record: Record) -> str | None:
    try:
        return record.key.decode() if record.key is not None else None
    except UnicodeDecodeError:
        return None


def fields_of(value: bytes) -> Mapping[str, Any] | None:
    """The fields of a JSON object, numbers as they are written; None when it is none."""
    try:
        data = json.loads(value.decode(), parse_int=str, parse_float=str)  # NaN passes, as in Spark
    except (ValueError, RecursionError):
        return None
    return cast("Mapping[str, Any]", data) if isinstance(data, dict) else None


def version_of(data: Mapping[str, Any], name: str | None, record: Record) -> datetime | None:
    """The version: the field, else when the record came; None for a text that is no time."""
    text = data.get(name) if name else None
    if text is None:
        return record.timestamp
    if not isinstance(text, str) or not is_time(text):
        return None
    return time_of(text) or record.timestamp  # as the job takes a time that no calendar has


def _whole(value: Any) -> int | None:
    try:
        return None if value is None else int(value)
    except (ValueError, TypeError):
        return None
