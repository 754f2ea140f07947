"""What is done with one record: read it, refuse a wrong dealer's, know a repetition, log, tell the sinks."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from headgate.errors import OperationError
from headgate.filters.consumers.config import Dealer
from headgate.filters.consumers.consumers_event import (
    NoEventError,
    ServiceEvent,
    printable,
    read_event,
)
from headgate.filters.consumers.consumers_sinks import Effects, Sink
from headgate.filters.consumers.delivery import Delivery, Record, delivery_of
from headgate.filters.consumers.seen import Seen

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
