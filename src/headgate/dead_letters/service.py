"""The Kafka side of a redrive, and the redrive as commands and API use it.

`RedriveTopics` sends dead letters to their topics and finds those that arrived; `Redriving` plans a redrive and
carries it out. Every record sent carries a header with the id of its dead letter and the number of the attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime

from confluent_kafka import KafkaError, KafkaException, Message

from headgate.config.settings import Settings
from headgate.core.kafka.producer import RecordHeaders, enqueue, open_producer
from headgate.core.kafka.reader import Stretch, committed_records
from headgate.core.kafka.topics import Topics, is_away, kafka_error
from headgate.core.lake.duckdb_reader import Lake
from headgate.core.runtime.journal import Watcher
from headgate.dead_letters.redrive import (
    Edges,
    RedriveJournal,
    journals,
    new_journal,
    planning,
    redrive_plan,
    run_redrive,
    sent_before,
)
from headgate.dead_letters.table import (
    Chosen,
    DeadLetters,
    Facts,
    Headers,
    Letter,
    Outcome,
    RedrivePlan,
    RedriveReport,
)
from headgate.declarations.names import ReservedTopics, reason_against_events
from headgate.errors import ConflictError, UnavailableError, UsageError

LETTER = "headgate.redrive.letter"
ORIGIN = "headgate.redrive.origin"
REDRIVE = "headgate.redrive"
ATTEMPT = "headgate.redrive.attempt"
OURS = frozenset({LETTER, ORIGIN, REDRIVE, ATTEMPT})
SECONDS, LINGER_MS = 30.0, 20


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
        self._producer = open_producer(bootstrap, seconds, LINGER_MS)

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
            elif not is_away(error):
                outcomes[name] = Outcome(name, "refused", why=error.str())

        headers: RecordHeaders = [*headers_of(letter, redrive)]
        try:
            enqueue(self._producer, topic, letter.value, letter.key, note, headers=headers)
        except KafkaException as error:
            outcomes[name] = Outcome(name, "refused", why=kafka_error(error).str())
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


MOST = 10_000
PER_SECOND = 100


class Silent:
    """Watches without a word."""

    def update(self, done: int) -> None: ...


@dataclass(frozen=True)
class Redriving:
    """The letters, and the journals under HEADGATE_HOME."""

    settings: Settings
    letters: DeadLetters
    silent: Silent = field(default_factory=Silent)

    def redriven(self) -> dict[str, str]:
        """By letter: where it stands since it was sent again."""
        return {
            outcome.id: outcome.place
            for journal in journals(self.settings.home)
            for outcome in journal.outcomes.values()
            if outcome.result == "sent"
        }

    def plan(
        self, chosen: Chosen, limit: int = MOST, to: str | None = None, *, again: bool = False
    ) -> RedrivePlan:
        """What would be sent, oldest first; what was sent before only with `again`."""
        if to is not None:
            self._refuse_inner_topic(to)
        sent: frozenset[str] = frozenset() if again else sent_before(self.settings.home)
        plan = redrive_plan(self._waiting(chosen, limit, sent), sent, to)
        return replace(plan, again=again)

    def _refuse_inner_topic(self, topic: str) -> None:
        """No records into what Kafka and Connect keep their own state in, nor back to dead letters."""
        if reason := reason_against_events(topic, ReservedTopics.of(self.settings).inner):
            raise UsageError(
                f"{topic} is no topic for events",
                why=reason,
                fix="name the topic that a job reads",
            )

    def _waiting(self, chosen: Chosen, limit: int, sent: frozenset[str]) -> list[Facts]:
        """The oldest that were not sent yet; those that were are told only if asked for by id."""
        found = self.letters.facts(chosen, limit + len(sent), oldest_first=True)
        if chosen.ids:
            return found[:limit]
        waiting = [one for one in found if one.id not in sent]
        return waiting[:limit]

    def begin(self, plan: RedrivePlan, by: str, now: datetime) -> RedriveJournal:
        """The plan on disk, refused when the world has moved: a letter of it was sent meanwhile."""
        with planning(self.settings.home):
            taken = sent_before(self.settings.home) & {item.id for item in plan.items}
            if taken and not plan.again:
                raise ConflictError(
                    f"{len(taken):,} of these letters were sent again in the meantime",
                    fix="make the plan again",
                )
            return new_journal(self.settings.home, plan, by, now)

    def carry_out(
        self,
        journal: RedriveJournal,
        per_second: int,
        watcher: Watcher | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> RedriveReport:
        target = RedriveTopics(self.settings.need("bootstrap_servers"))
        edges = Edges(self.letters.letters, target, stopped)
        return run_redrive(journal, edges, per_second, watcher or self.silent)


@contextmanager
def open_redriving(settings: Settings) -> Generator[Redriving]:
    with Lake.open(settings) as lake:
        yield Redriving(settings, DeadLetters(lake))
