"""Writes the hasher's readings and dead letters, in order and acknowledged by all replicas; reads dead letters back.

Dead letters are rows of the cloud that the hasher or the connector could not read or hash; `ask_again` requests
these keys once more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count

import orjson
from confluent_kafka import KafkaError, KafkaException, Message

from headgate.core.kafka.producer import NOW, RecordHeaders, TopicWriter, enqueue, open_producer
from headgate.core.kafka.reader import Found, Stretch, committed_records
from headgate.core.kafka.topics import Topics, advise_when_away, is_away, kafka_error
from headgate.errors import OperationError, UnavailableError
from headgate.reconcile.hasher.plan import HasherPlan
from headgate.reconcile.hasher.requests import (
    Asked,
    Record,
    asked_of,
    bare_key,
    fields_of,
    request_of,
    reread_topic,
    text_of,
    zulu,
)

# A broker that restarts comes back within it; what is queued then arrives, once and in order.
SECONDS_TO_DELIVER, LINGER_MS = 300.0, 10
NOBODY, MOMENT = "_ALL_BROKERS_DOWN", 1.0
# Below the usual limit of 1 MiB for a message, with room for our own headers.
LARGEST = 900_000
EPOCH, ONE_MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)
Done = Callable[[], None]


def size_of(record: Record) -> int:
    """Bytes of key, value and headers."""
    headers = sum(len(name) + len(value or b"") + 10 for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers


def stamp_of(deleted_at: datetime, now: datetime) -> int:
    """The milliseconds of a tombstone: not before what it deletes, and a broker takes none after now."""
    since = min(deleted_at, now) - EPOCH
    return max(-(-since // ONE_MILLISECOND), 1)


def after_both(done: Done) -> Done:
    """To be called for two records: `done` is called for the second."""
    calls = count(1)

    def acknowledged() -> None:
        if next(calls) == 2:
            done()

    return acknowledged


@dataclass(frozen=True)
class Letter:
    """Why a record got no reading."""

    stage: str
    code: str
    words: str


class Publisher:
    """One producer. A record that could not be delivered is raised at the next call."""

    def __init__(self, bootstrap: str, job: str, seconds: float = SECONDS_TO_DELIVER) -> None:
        self._bootstrap, self._job, self._seconds = bootstrap, job, seconds
        self._producer = open_producer(bootstrap, seconds, LINGER_MS, {"error_cb": self._heard})
        self._failure: KafkaError | None = None
        self._away_since: float | None = None

    @property
    def unacknowledged(self) -> int:
        return len(self._producer)

    @property
    def is_waiting(self) -> bool:
        """Whether records wait for a broker that is away, and not only for a moment."""
        since = self._away_since
        return since is not None and self.unacknowledged > 0 and time.monotonic() - since > MOMENT

    def send(
        self, topic: str, key: str, value: bytes | None, origin: Sequence[Record], done: Done
    ) -> None:
        """Queue a reading; `done` is called once it is acknowledged."""
        self._queue(topic, value, key.encode(), self._headers(origin), done)

    def bury(
        self, topic: str, key: str, deleted_at: datetime, origin: Sequence[Record], done: Done
    ) -> None:
        """Queue a tombstone; the record's time is all the version that it can have."""
        stamp = stamp_of(deleted_at, datetime.now(UTC))
        self._queue(topic, None, key.encode(), self._headers(origin), done, stamp)

    def dead_letter(self, topic: str, record: Record, letter: Letter, done: Done) -> None:
        """Queue a dead letter: the original bytes, and in headers where it was and why."""
        facts = {
            "headgate.stage": letter.stage,
            "headgate.reason_code": letter.code,
            "headgate.reason": letter.words,
            "headgate.refused_at": datetime.now(UTC).isoformat(),
        }
        value, own = record.value, [*record.headers]
        if size_of(record) > LARGEST:  # with our headers a broker might not take it
            value, own = None, []
            facts["headgate.reference"] = f"{record.topic}/{record.partition}/{record.offset}"
        headers = [*own, *self._origin(record)]
        headers += [(name, fact.encode()) for name, fact in facts.items()]
        self._queue(topic, value, record.key, headers, done)

    def poll(self, timeout: float = 0) -> None:
        """Hear what was acknowledged, waiting so long for the first if anything is under way."""
        self._producer.poll(timeout if len(self._producer) else 0)
        self._raise_failure()

    def flush(self, seconds: float | None = None) -> None:
        """Wait until everything queued is acknowledged."""
        left = self._producer.flush(self._seconds + 1 if seconds is None else seconds)
        self._raise_failure()
        if left:
            raise self._away("it did not acknowledge all records in time")

    def _origin(self, record: Record) -> RecordHeaders:
        facts = {
            "headgate.topic": record.topic,
            "headgate.partition": str(record.partition),
            "headgate.offset": str(record.offset),
            "headgate.timestamp": record.timestamp.isoformat(),
        }
        return [*((n, fact.encode()) for n, fact in facts.items()), *self._job_header()]

    def _headers(self, origin: Sequence[Record]) -> RecordHeaders:
        return self._origin(origin[-1]) if origin else self._job_header()

    def _job_header(self) -> RecordHeaders:
        return [("headgate.job", self._job.encode())]

    def _queue(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: RecordHeaders,
        done: Done,
        stamp: int = NOW,
    ) -> None:
        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is None:
                self._away_since = None
                done()
            else:
                self._failure = self._failure or error

        try:
            enqueue(
                self._producer,
                topic,
                value,
                key,
                delivered,
                headers=headers,
                timestamp=stamp,
                on_full=self._raise_failure,
            )
        except KafkaException as error:
            raise self._refused(kafka_error(error)) from error

    def _heard(self, error: KafkaError) -> None:
        if error.name() == NOBODY and self._away_since is None:
            self._away_since = time.monotonic()

    def _raise_failure(self) -> None:
        if self._failure is None:
            return
        if is_away(self._failure):
            raise self._away(self._failure.str())
        raise self._refused(self._failure)

    def _away(self, why: str) -> UnavailableError:
        return UnavailableError(
            f"the broker at {self._bootstrap} is away",
            why=f"{why}; the group's offsets stand before what it did not take",
            fix=f"{advise_when_away(self._bootstrap)}, then start the hasher again",
        )

    def _refused(self, error: KafkaError) -> OperationError:
        return OperationError(
            f"the broker at {self._bootstrap} refused a record",
            why=error.str(),
            fix="check the topics' settings, as max.message.bytes, and the broker's log",
        )


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
