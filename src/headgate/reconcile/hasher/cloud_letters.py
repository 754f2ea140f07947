"""Dead letters of the cloud's side: rows that the hasher or the connector could not read or hash."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import orjson

from headgate.core.kafka.engine_topics import Topics
from headgate.core.kafka.reader import Found, Stretch, committed_records
from headgate.core.kafka.topic_writer import TopicWriter
from headgate.reconcile.hasher.asked import (
    Asked,
    Record,
    asked_of,
    bare_key,
    fields_of,
    request_of,
    reread_topic,
)
from headgate.reconcile.hasher.key_path import text_of
from headgate.reconcile.hasher.plan import HasherPlan
from headgate.reconcile.repair.target import zulu

HASHERS = "hasher-"
REASON = "asked again"


@dataclass(frozen=True)
class CloudLetter:
    """One letter without its row; `pk` is None where nobody can tell it."""

    at: datetime
    stage: str
    reason_code: str
    pk: str | None
    job: str
    reason: str
    origin: str
    version: datetime | None = None


def cloud_letters(plan: HasherPlan) -> list[CloudLetter]:
    """The table's letters, oldest first; a connector's belong to no table and are all here."""
    state = Topics(plan.bootstrap).describe(plan.letters_topic)
    if state is None:
        return []
    found = committed_records(plan.bootstrap, Stretch.whole(state), quiet=True, expired="earliest")
    letters = (letter_of(each, plan) for each in found)
    own = (each for each in letters if each.job == plan.job or not each.job.startswith(HASHERS))
    return sorted(own, key=lambda letter: letter.at)


def letter_of(found: Found, plan: HasherPlan) -> CloudLetter:
    told = {name.removeprefix("headgate."): value for name, value in found.headers.items()}
    at = datetime.fromtimestamp(found.millis / 1000, UTC)
    place = [told[name] for name in ("topic", "partition", "offset") if name in told]
    record = Record(told.get("topic", ""), 0, found.offset, at, found.key, found.value)
    asked = _asked(record, plan)
    return CloudLetter(
        at=at,
        stage=told.get("stage", ""),
        reason_code=told.get("reason_code", ""),
        pk=asked.key if asked else _key(record, plan),
        job=told.get("job", ""),
        reason=told.get("reason", ""),
        origin="/".join(place),
        version=asked.version if asked else None,
    )


def _asked(record: Record, plan: HasherPlan) -> Asked | None:
    """What the hasher was asked for, where the letter is a record of its topics."""
    if record.topic == reread_topic(plan.topic):
        asked = request_of(record)
    elif record.topic == plan.topic:
        asked = asked_of(record, plan.events, plan.opened)
    else:
        return None
    return asked if isinstance(asked, Asked) else None


def _key(record: Record, plan: HasherPlan) -> str | None:
    fields = fields_of(record.value) if record.value else None
    return (text_of(fields.get(plan.cloud.pk)) if fields else None) or bare_key(record)


def keys_of(letters: Iterable[CloudLetter]) -> dict[str, datetime | None]:
    """The keys that are known, each with the version that was asked for last."""
    return {each.pk: each.version for each in letters if each.pk is not None}


def ask_again(plan: HasherPlan, keys: Mapping[str, datetime | None]) -> None:
    """Ask the hasher to read keys again: at the version first asked for, else as they are now."""
    topic = reread_topic(plan.topic)
    writer = TopicWriter(plan.bootstrap)
    writer.require([topic])
    values = [
        orjson.dumps({"pk": pk, "reason": REASON, **({"event_ts": zulu(at)} if at else {})})
        for pk, at in keys.items()
    ]
    writer.send(topic, values, [pk.encode() for pk in keys])
    writer.flush()
