"""Runs a consumer: reads its topic in its group, applies each event to the sinks, commits what they have kept.

Events of another dealer are dropped with a warning; a repeated delivery changes nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from headgate.core.kafka.reader import PARTITION_END, ReceivedMessage, consume, open_consumer
from headgate.errors import OperationError, UnavailableError
from headgate.filters.consumers.config import ConsumerConfig, Dealer
from headgate.filters.consumers.event import (
    Delivery,
    NoEventError,
    Record,
    ServiceEvent,
    delivery_of,
    headers_of,
    printable,
    read_event,
)
from headgate.filters.consumers.sinks import Effects, Seen, Sink, sinks_of

LOG = logging.getLogger("headgate.consumer")


@dataclass
class Counts:
    """What became of the records; the four last sum to the first."""

    received: int = 0
    handled: int = 0
    duplicates: int = 0
    wrong_dealer: int = 0
    unreadable: int = 0


@dataclass
class Handler:
    """One dealer's records, in the order they come."""

    dealer: Dealer
    seen: Seen
    sinks: Sequence[Sink] = ()
    counts: Counts = field(default_factory=Counts)

    def __post_init__(self) -> None:
        self._effects = Effects()
        with self.seen.together() as database:
            for sink in (self._effects, *self.sinks):
                sink.prepare(database)

    def handle(self, records: Sequence[Record]) -> None:
        """All of them, kept together; only then may their offsets be committed."""
        with self.seen.together():
            for record in records:
                self._handle(record)

    def _handle(self, record: Record) -> None:
        self.counts.received += 1
        try:
            event = read_event(record.value)
        except NoEventError as error:
            self.counts.unreadable += 1
            LOG.warning("Dropped %s: %s", record.place, error)
            return
        if event.dealer != self.dealer.id:
            self._drop(event, record)
        elif self.seen.note(delivery := delivery_of(record), event):
            self.counts.handled += 1
            self._log(event)
            self._effects.keep(event, delivery, record, self.seen.database)
            for sink in self.sinks:
                self._tell(sink, event, delivery)
        else:
            self.counts.duplicates += 1

    def _tell(self, sink: Sink, event: ServiceEvent, delivery: Delivery) -> None:
        try:
            sink.apply(event, delivery, self.seen.database)
        except Exception as error:  # a sink is anybody's code
            raise OperationError(
                f"the sink {type(sink).__name__} failed at event {printable(event.id)}",
                why=f"{type(error).__name__}: {error}",
                fix="mend it, then start the consumer again: the event comes again",
            ) from error

    def _drop(self, event: ServiceEvent, record: Record) -> None:
        self.counts.wrong_dealer += 1
        id, place = printable(event.id), record.place
        if event.dealer is None:
            LOG.warning("Received event without a dealer: %s at %s", id, place)
        else:
            dealer = printable(event.dealer)
            LOG.warning("Received event for wrong dealer: %s, %s at %s", dealer, id, place)

    def _log(self, event: ServiceEvent) -> None:
        LOG.info("Service Event for %s: %s", self.dealer.name, printable(event.id))
        LOG.info("  Car ID: %s", event.shown("carId"))
        LOG.info("  Car VIN: %s", event.shown("vin"))
        LOG.info("  Service Type: %s", event.shown("serviceType"))
        LOG.info("  Service Date: %s", event.shown("serviceDate"))
        LOG.info("  Amount: %s", event.shown_amount)
        LOG.info("  Mileage: %s", event.shown("mileageAtService"))


AT_ONCE = 200
WAIT_SECONDS = 0.5
# With --once: how long the broker may take to answer before that is a failure.
PATIENCE_SECONDS = 30.0
REFUSALS = frozenset(
    {
        KafkaError._AUTHENTICATION,  # pyright: ignore[reportPrivateUsage]
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
    }
)
Partition = tuple[str, int]
NOT_THERE = KafkaError.UNKNOWN_TOPIC_OR_PART


@dataclass(frozen=True)
class Consumed:
    """What a consumer did, from its start to its end."""

    dealer: str
    topic: str
    group: str
    received: int
    handled: int
    duplicates: int
    wrong_dealer: int
    unreadable: int


class DealerConsumer:
    """One member of the dealer's group."""

    def __init__(
        self,
        config: ConsumerConfig,
        bootstrap: str,
        seen: Seen,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._config, self._bootstrap = config, bootstrap
        self._patience = patience
        self._troubles: dict[int, str] = {}
        self._refusal: KafkaError | None = None
        self._handler = Handler(config.dealer, seen, sinks_of(config.sinks))
        self._at_end: set[Partition] = set()
        self._assigned: set[Partition] = set()
        self._missing = False
        own = {**settings(config), "error_cb": self._note_trouble}
        self._consumer = open_consumer(bootstrap, config.group, own)
        self._consumer.subscribe(
            [config.topic], on_assign=self._gain, on_revoke=self._lose, on_lost=self._lose
        )

    def run(self, stop: Callable[[], bool], once: bool = False) -> Consumed:
        """Until it is told to stop, or at the topic's end.

        With `once` a broker that does not answer for `patience` seconds is UnavailableError; without,
        it is waited for, and said once. Credentials that it refuses are OperationError at once.
        """
        until = time.monotonic() + self._patience
        try:
            while not stop() and not (once and self._is_done()):
                self._step()
                self._refuse_refusal()
                if self._assigned:
                    until = time.monotonic() + self._patience
                elif once and time.monotonic() > until:
                    raise self._away()
        finally:
            self._consumer.close()
        return self._consumed(self._handler.counts)

    def _step(self) -> None:
        records = list(self._records(consume(self._consumer, AT_ONCE, WAIT_SECONDS)))
        if records:
            self._handler.handle(records)
            self._commit(records)

    def _records(self, messages: list[ReceivedMessage]) -> Iterator[Record]:
        for message in messages:
            error = message.error()
            if error is not None:
                self._note(error, (message.topic(), message.partition()))
                continue
            self._at_end.discard((message.topic(), message.partition()))
            where = (message.topic(), message.partition(), message.offset())
            yield Record(*where, message.value(), headers_of(message.headers()))

    def _note(self, error: KafkaError, partition: Partition) -> None:
        """The client comes back to a broker that was away by itself."""
        if error.code() == PARTITION_END:
            self._at_end.add(partition)
        elif error.code() == NOT_THERE and not self._missing:
            self._missing = True
            LOG.warning("There is no topic %s yet; waiting for it", self._config.topic)
        elif error.fatal():
            raise OperationError(
                f"the group {self._config.group} cannot go on",
                why=error.str(),
                fix="start the consumer again; it goes on where the group stands",
            )
        elif error.code() != NOT_THERE:
            self._note_trouble(error)

    def _note_trouble(self, error: KafkaError) -> None:
        """Say each kind of trouble once, until the broker has answered again."""
        if error.code() in REFUSALS:
            self._refusal = error
        elif error.code() not in self._troubles:
            LOG.warning("The broker at %s: %s; trying again", self._bootstrap, error.str())
        self._troubles[error.code()] = error.str()

    def _refuse_refusal(self) -> None:
        if self._refusal is not None:
            raise OperationError(
                f"the broker at {self._bootstrap} refuses the group {self._config.group}",
                why=self._refusal.str(),
                fix="check the key and secret of the consumer, and what they may read",
            )

    def _away(self) -> UnavailableError:
        return UnavailableError(
            f"the group {self._config.group} got no partition of {self._config.topic} "
            f"within {self._patience:g} s",
            why="; ".join(self._troubles.values()) or f"{self._bootstrap} did not answer",
            fix="start the broker and create the topic, or check BOOTSTRAP_SERVERS",
        )

    def _commit(self, records: list[Record]) -> None:
        """What is not committed comes again, and is known then."""
        ends = {(r.topic, r.partition): r.offset + 1 for r in records}
        offsets = [TopicPartition(*partition, offset) for partition, offset in ends.items()]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            LOG.warning("Offsets were not committed, records may come again: %s", error)

    def _is_done(self) -> bool:
        return bool(self._assigned) and self._assigned <= self._at_end

    def _gain(self, _consumer: object, partitions: list[TopicPartition]) -> None:
        self._missing = False
        self._troubles.clear()
        self._assigned |= {(p.topic, p.partition) for p in partitions}
        numbers = sorted(number for _, number in self._assigned)
        LOG.info("Group %s: %s %s", self._config.group, self._config.topic, numbers)

    def _lose(self, _consumer: object, partitions: list[TopicPartition]) -> None:
        self._assigned -= {(p.topic, p.partition) for p in partitions}

    def _consumed(self, counts: Counts) -> Consumed:
        config = self._config
        return Consumed(config.dealer.id, config.topic, config.group, **vars(counts))


def settings(config: ConsumerConfig) -> dict[str, str | int]:
    """What this client is told beside what every member of a group is."""
    # A topic that is made after the start is found within this time.
    soon: dict[str, str | int] = {"topic.metadata.refresh.interval.ms": 2_000}
    if config.login is None:
        return soon
    return {
        **soon,
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": config.login.key,
        "sasl.password": config.login.secret,
    }
