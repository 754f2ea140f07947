"""Letters into topics, each with a header that names it; and finding those that arrived."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol, cast

from confluent_kafka import KafkaError, KafkaException, Message

from headgate.core.kafka.engine_topics import Topics
from headgate.core.kafka.producing import producer
from headgate.core.kafka.reader import Stretch, committed_records
from headgate.dead_letters.model import Headers, Letter, Outcome
from headgate.errors import UnavailableError

LETTER = "headgate.redrive.letter"
ORIGIN = "headgate.redrive.origin"
REDRIVE = "headgate.redrive"
ATTEMPT = "headgate.redrive.attempt"
OURS = frozenset({LETTER, ORIGIN, REDRIVE, ATTEMPT})
SECONDS, LINGER_MS = 30.0, 20


class _Producer(Protocol):
    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        *,
        headers: list[tuple[str, bytes | None]],
        on_delivery: Callable[[KafkaError | None, Message], None],
    ) -> None: ...

    def poll(self, timeout: float) -> int: ...

    def flush(self, timeout: float) -> int: ...


def headers_of(letter: Letter, redrive: str) -> Headers:
    """The record's own headers, and which letter it is, for the how-manieth time."""
    own = tuple(header for header in letter.headers if header[0] not in OURS)
    facts = {
        REDRIVE: redrive,
        LETTER: letter.facts.id,
        ORIGIN: letter.facts.origin,
        ATTEMPT: str(attempts(letter.headers) + 1),
    }
    return (*own, *((name, fact.encode()) for name, fact in facts.items()))


def attempts(headers: Headers) -> int:
    """How often this record was sent again before it was refused."""
    told = next((value for name, value in headers if name == ATTEMPT), None) or b"0"
    return int(told) if told.isdigit() else 0


class RedriveTopics:
    """Sends letters and looks for them; one producer."""

    def __init__(self, bootstrap: str, seconds: float = SECONDS) -> None:
        self._bootstrap, self._seconds = bootstrap, seconds
        self._producer = cast("_Producer", producer(bootstrap, seconds, LINGER_MS))

    def ends(self, topics: Collection[str]) -> dict[str, dict[str, int]]:
        """Where each topic ends now; one that is not there has no end."""
        admin = Topics(self._bootstrap)
        admin.need()
        states = {topic: admin.describe(topic) for topic in topics}
        return {
            topic: {str(partition): end for partition, end in state.end.items()}
            for topic, state in states.items()
            if state is not None
        }

    def send(self, letters: Sequence[tuple[Letter, str]], redrive: str) -> list[Outcome]:
        """Send each to its topic; what the broker refuses says why, what it did not answer is not told."""
        outcomes: dict[str, Outcome] = {}
        for letter, topic in letters:
            self._queue(letter, topic, redrive, outcomes)
        self._producer.flush(self._seconds + 1)
        if not outcomes and letters:
            raise UnavailableError(
                f"the broker at {self._bootstrap} answered to none of {len(letters)} letters",
                fix="start it; the redrive goes on with --resume",
            )
        return list(outcomes.values())

    def _queue(
        self, letter: Letter, topic: str, redrive: str, outcomes: dict[str, Outcome]
    ) -> None:
        name = letter.facts.id

        def note(error: KafkaError | None, message: Message) -> None:
            if error is None:
                place = f"{topic}/{message.partition()}/{message.offset()}"
                outcomes[name] = Outcome(name, "sent", place)
            elif not error.retriable() and error.name() not in ("_MSG_TIMED_OUT", "_TIMED_OUT"):
                outcomes[name] = Outcome(name, "refused", why=error.str())

        own = list(headers_of(letter, redrive))
        try:
            self._producer.produce(topic, letter.value, letter.key, headers=own, on_delivery=note)
        except KafkaException as error:
            outcomes[name] = Outcome(name, "refused", why=cast("KafkaError", error.args[0]).str())
        except BufferError:
            self._producer.flush(self._seconds)
            self._queue(letter, topic, redrive, outcomes)
        self._producer.poll(0)

    def arrived(
        self, ids: Collection[str], since: Mapping[str, Mapping[str, int]]
    ) -> dict[str, str]:
        """Where letters of these ids stand behind these ends of their topics."""
        now, wanted, found = self.ends(since), frozenset(ids), dict[str, str]()
        for topic, ends in since.items():
            begin = {int(p): end for p, end in ends.items()}
            behind = {int(p): end for p, end in now.get(topic, {}).items() if int(p) in begin}
            # What has expired meanwhile is not there; the rest is looked through all the same.
            for record in committed_records(
                self._bootstrap, Stretch(topic, begin, behind), quiet=True, expired="earliest"
            ):
                name = record.headers.get(LETTER, "")
                if name in wanted:
                    found[name] = f"{topic}/{record.partition}/{record.offset}"
        return found
