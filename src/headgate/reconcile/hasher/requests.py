"""Parses what a record asks the hasher for: the key, its version and what on-prem expects.

Four kinds of records: events (plain or in a schema registry's frame), tombstones, requests to read a key again, and
change data of Cassandra (Debezium). Change data carries only the cells that were written, so the row is looked up;
that also makes repeated and reordered events harmless.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import orjson

from headgate.core.kafka.schema_registry import BYTES, MAGIC, RegistryClient, Schema
from headgate.declarations.types import STRING, SqlType
from headgate.errors import SettingsError
from headgate.quality.record_parser import Number, Step, is_like, is_time, sound_fields, time_of
from headgate.quality.spec.reconcile_section import Reconcile
from headgate.quality.spec.rule_set import RuleTable
from headgate.reconcile.state import ACTIONS, DELETE

if TYPE_CHECKING:
    from headgate.reconcile.hasher.readings import CloudForm


# The JSON text in a value; None when there is none.
Opened = Callable[[bytes], bytes | None]
Closed = Callable[[Mapping[str, object]], bytes]


def plainly(value: bytes) -> bytes | None:
    """A value that is its own text."""
    return value


def behind_the_frame(value: bytes) -> bytes | None:
    """What the job reads of a framed value: all behind the five bytes, whatever schema they name.

    Neither asks a registry; else a schema that only one of them knows would leave a key unanswered.
    """
    is_framed = len(value) >= BYTES and value[0] == MAGIC
    return value[BYTES:] if is_framed else None


def closer(url: str | None, topic: str, form: CloudForm) -> Closed:
    """Puts readings into the frame, under a JSON Schema that is registered before the first."""
    from headgate.core.kafka.codecs import FramedWriter, subject_of

    if url is None:
        raise SettingsError(
            f"readings for {topic} need a schema registry",
            why="the rule set says `framed: true` of it, and SCHEMA_REGISTRY_URL is not set",
            fix="headgate local up --with registry, or set the variable",
        )
    text = orjson.dumps(form.schema()).decode()
    writer = FramedWriter(RegistryClient(url), subject_of(topic), Schema(text, "JSON"))
    return lambda fields: writer.write(dict(fields))


# As the Spark function writes them: Python has small letters in \u001f.
_ESCAPES = {code: f"\\u{code:04X}" for code in range(32)} | str.maketrans(
    {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
)


def key_of(data: Any, steps: Sequence[Step]) -> str | None:
    """The key's text; of several items that match, the JSON list of their keys."""
    found, many = data, False
    for step in steps:
        found, many = _all_taken(found, step) if many else _taken(found, step)
    return _joined(found) if many else text_of(found)


def text_of(value: Any) -> str | None:
    """A JSON value as a STRING field reads it; numbers come as they were written."""
    if value is None or isinstance(value, str):
        return value
    return _json(value)


def _json(value: Any) -> str:
    """Numbers within it too, as they were written."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        pairs = cast("Mapping[str, Any]", value).items()
        return "{" + ",".join(f"{_json(name)}:{_json(item)}" for name, item in pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json, cast("list[Any]", value))) + "]"
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    return json.dumps(value)


def _taken(found: Any, step: Step) -> tuple[Any, bool]:
    found = _field(found, step.name)
    if step.index is not None:
        return _item(found, step.index), False
    return (_chosen(found, step), True) if step.field else (found, False)


def _all_taken(found: Any, step: Step) -> tuple[Any, bool]:
    values = None if found is None else [_field(item, step.name) for item in found]
    if values is None:
        return None, True
    if step.index is not None:
        return [_item(value, step.index) for value in values], True
    if step.field is None:
        return values, True
    if any(not isinstance(value, list) for value in values):
        return None, True
    return _chosen([item for value in values for item in value], step), True


def _field(value: Any, name: str) -> Any:
    return cast("Mapping[str, Any]", value).get(name) if isinstance(value, dict) else None


def _item(value: Any, index: int) -> Any:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return items[index] if index < len(items) else None


def _chosen(value: Any, step: Step) -> list[Any] | None:
    if not isinstance(value, list):
        return None
    items = cast("list[Any]", value)
    if not all(item is None or isinstance(item, dict) for item in items):
        return None  # the SQL reads such a list as none
    return [item for item in items if text_of(_field(item, step.field or "")) == step.text]


def _joined(found: list[Any] | None) -> str | None:
    texts = [text_of(value) for value in found or ()]
    if len(texts) > 1:
        return _json([text and str(text) for text in texts])
    return texts[0] if texts else None


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


def zulu(moment: datetime) -> str:
    """A version as requests carry it: ISO 8601 in UTC."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


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


DELETED = "d"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def changed_of(record: Record, key: Sequence[str]) -> Asked | Skipped:
    """The key that an event changed or deleted; of several columns the JSON list of their texts."""
    data = fields_of(record.value) if record.value is not None else None
    if data is None:
        return Skipped("not_json")
    after = data.get("after")
    cells = cast("Mapping[str, Any]", after if isinstance(after, dict) else {})
    parts = [_cell(cells.get(name)) for name in key]
    if any(part is None for part in parts):
        return Skipped("missing_pk")
    text = sendable(parts[0] if len(parts) == 1 else json.dumps(parts, ensure_ascii=False))
    if text is None:
        return Skipped("missing_pk")
    return Asked(text, _written_at(data, record), record, deleted=data.get("op") == DELETED)


def _cell(cell: Any) -> str | None:
    """A key's cell is wrapped with its deletion time; a plain value is taken as it is."""
    if isinstance(cell, dict) and "value" in cell:
        return text_of(cast("Mapping[str, Any]", cell)["value"])
    return text_of(cell)


def _written_at(data: Mapping[str, Any], record: Record) -> datetime:
    """When it was written to Cassandra; `ts_ms` of the event itself is only when it was sent on."""
    source = data.get("source")
    written = cast("Mapping[str, Any]", source if isinstance(source, dict) else {})
    said = [
        (written.get("ts_us"), timedelta(microseconds=1)),
        (written.get("ts_ms"), timedelta(milliseconds=1)),
        (data.get("ts_ms"), timedelta(milliseconds=1)),
    ]
    times = (_since(value, unit) for value, unit in said)
    return next((found for found in times if found is not None), record.timestamp)


def _since(value: Any, unit: timedelta) -> datetime | None:
    try:
        return EPOCH + int(value) * unit
    except (TypeError, ValueError, OverflowError):
        return None
