"""Masks a dead letter for display: sensitive values are masked, and content that cannot be read is masked whole."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, cast

from headgate.app import SENSITIVE, load
from headgate.config.reference import MASK
from headgate.config.settings import Settings
from headgate.core.identity.masking import is_tagged
from headgate.core.kafka.schema_registry import UnreadableError, unframed
from headgate.dead_letters.service import attempts
from headgate.dead_letters.table import Facts, Letter
from headgate.errors import HeadgateError
from headgate.hashing.contract import contract_files, load_contract

# Whether a field of this name is masked.
Hides = Callable[[str], bool]
ROUTED = ("router-", "replay-")


@dataclass(frozen=True)
class ShownLetter:
    """One letter: its facts, and as much of its content as may be shown."""

    facts: Facts
    key: str | None
    value: object
    headers: Mapping[str, str | None]
    masked: bool
    attempts: int
    redriven: str = ""


@dataclass(frozen=True)
class ListedLetter:
    """One line of a list; nothing of its content."""

    id: str
    refused_at: datetime
    job: str
    reason_code: str
    topic: str | None
    partition: int | None
    offset: int | None
    bytes: int
    redriven: bool
    reason: str


class SensitiveNames(Protocol):
    """Names of columns that a capability's declarations tag, and topics with such a column as key."""

    @property
    def columns(self) -> frozenset[str]: ...
    @property
    def keyed_topics(self) -> frozenset[str]: ...


@dataclass(frozen=True)
class Hidden:
    """Names that nobody may see: tagged in a rule set or a hash contract. Keys may be tagged too.

    Where a declaration cannot be read, nobody knows what it tags: then `everything` is hidden.
    """

    names: frozenset[str]
    keys: frozenset[str] = frozenset()
    everything: bool = False


def hidden_names(settings: Settings) -> Hidden:
    """Every tagged column of this project."""
    try:
        contracts = [load_contract(file).value for file in contract_files(settings.root)]
        tagged: list[SensitiveNames] = [load(entry)(settings) for entry in SENSITIVE]
    except HeadgateError:
        return Hidden(frozenset(), everything=True)
    hashed = frozenset(f.name for contract in contracts for f in contract.fields if f.sensitive)
    return Hidden(
        hashed.union(*(names.columns for names in tagged)),
        frozenset[str]().union(*(names.keyed_topics for names in tagged)),
    )


def listed(facts: Facts, *, redriven: bool) -> ListedLetter:
    return ListedLetter(
        id=facts.id,
        refused_at=facts.refused_at,
        job=facts.job,
        reason_code=facts.reason_code,
        topic=facts.topic,
        partition=facts.partition,
        offset=facts.offset,
        bytes=facts.bytes,
        redriven=redriven,
        reason=facts.reason,
    )


def shown(letter: Letter, hidden: Hidden, *, reveal: bool, redriven: str = "") -> ShownLetter:
    """The letter with its tagged values masked; with `reveal` as it is."""
    tagged = hidden.everything or (letter.facts.topic or "") in hidden.keys
    key_hidden = tagged and not reveal
    hides = _hides(letter.facts.job, hidden)
    return ShownLetter(
        facts=letter.facts,
        key=None if letter.key is None else MASK if key_hidden else _text(letter.key),
        value=_value(letter.value, hidden, hides, reveal=reveal),
        headers={n: None if v is None else _header(n, v, reveal) for n, v in letter.headers},
        masked=not reveal,
        attempts=attempts(letter.headers),
        redriven=redriven,
    )


def _hides(job: str, hidden: Hidden) -> Hides:
    """Events have no columns of their own to tag: their fields go by their names, as in previews."""
    if job.startswith(ROUTED):
        return lambda name: name in hidden.names or is_tagged(name)
    return hidden.names.__contains__


def _header(name: str, value: bytes, reveal: bool) -> str:
    """Ours say where it came from; those of others may say anything."""
    return (
        _text(value) if reveal or name.startswith("headgate.") else f"{MASK} ({len(value)} bytes)"
    )


def _value(value: bytes | None, hidden: Hidden, hides: Hides, *, reveal: bool) -> object:
    if value is None:
        return None
    body = _unframed(value)
    if reveal:
        return _json(body, _text(value))
    found = _json(body, _UNREADABLE)
    if hidden.everything:
        return f"{MASK} ({len(value):,} bytes; a declaration cannot be read, so all may be tagged)"
    if found is _UNREADABLE:
        # Nobody can say which part of it is tagged.
        return f"{MASK} ({len(value):,} bytes that are no JSON)"
    return masked(found, hides)


_UNREADABLE = object()


def _unframed(value: bytes) -> bytes:
    try:
        return unframed(value).payload
    except UnreadableError:
        return value


def _json(data: bytes, otherwise: object) -> object:
    try:
        return cast("object", json.loads(data))
    except (ValueError, RecursionError):
        return otherwise


def masked(value: object, hides: Hides) -> object:
    """The same structure, tagged fields masked, also inside a text that is JSON itself."""
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        return {k: MASK if hides(k) and v is not None else masked(v, hides) for k, v in fields.items()}  # fmt: skip
    if isinstance(value, list):
        return [masked(item, hides) for item in cast("list[object]", value)]
    if isinstance(value, str) and value[:1] in ("{", "["):
        inner = _json(value.encode(errors="replace"), _UNREADABLE)
        if inner is not _UNREADABLE:
            return json.dumps(masked(inner, hides), ensure_ascii=False)
        return f"{MASK} ({len(value):,} characters that are no JSON)"
    return value


def _text(data: bytes) -> str:
    """Text where it is text; else base64, which says of itself that it is."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(data).decode()
