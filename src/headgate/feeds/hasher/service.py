"""The hasher: events ask for keys, rows are looked up and hashed, readings go to Topic-2.

At least once: a group's offset passes a record only when what came of it is acknowledged. So a
killed hasher loses nothing; what it had not finished is done again, by itself or by another one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from headgate.errors import ForbiddenError, HeadgateError, RowRefusedError, UnavailableError
from headgate.feeds.hasher.asked import Asked, Record, Skipped
from headgate.feeds.hasher.counts import DEAD_LETTER, PUBLISHED, SKIPPED, Counts
from headgate.feeds.hasher.group import Group
from headgate.feeds.hasher.lookups import Found, Lookups, Lost
from headgate.feeds.hasher.offsets import Offsets, Partition
from headgate.feeds.hasher.plan import HasherPlan
from headgate.feeds.hasher.publisher import Letter, Publisher
from headgate.feeds.hasher.reading import Reading, differs, newest, reading_of
from headgate.feeds.hasher.rereads import Rereads
from headgate.feeds.hasher.table import HashedTable

IDLE_SECONDS, BUSY_SECONDS = 0.1, 0.02
COMMIT_EVERY, LOOK_EVERY, SHAPE_EVERY = 1.0, 0.5, 60.0
# What comes of one record or one row, and of nothing else.
OF_ONE_RECORD = (RowRefusedError, ValueError, TypeError, ArithmeticError)
# What may wait for its answer or its acknowledgement before no more is read; so long without
# room, partitions are paused: a member that does not ask for records holds up the whole group.
QUEUED, FULL_SECONDS = 20, 1.0
SECONDS_TO_FINISH, SECONDS_TO_LEAVE = 30.0, 10.0


class Watcher(Protocol):
    """Sees how far the hasher is, and hears what it has to say."""

    def advance(self, records: int) -> None: ...

    def say(self, words: str) -> None: ...


@dataclass(frozen=True)
class Ends:
    """Where the topics ended when the hasher started; with `--once` it goes so far."""

    offsets: dict[Partition, int]


class Hasher:
    """One run over the events of a table; single-threaded but for the driver's answers."""

    def __init__(
        self,
        plan: HasherPlan,
        table: HashedTable,
        lookups: Lookups,
        publisher: Publisher,
        counts: Counts,
        watcher: Watcher,
        asked: Callable[[Record], Asked | Skipped],
    ) -> None:
        self._plan, self._table, self._lookups, self._publisher = plan, table, lookups, publisher
        self.counts, self._watcher, self._asked = counts, watcher, asked
        self.rereads = Rereads(plan.reread_after, watcher.say)
        self._offsets = Offsets()
        self.group = Group(
            plan.bootstrap, plan.group, plan.topics, self._offsets, self._leaving, watcher.say
        )
        self.settled: Mapping[Partition, int] = {}
        self._next = {"commit": 0.0, "look": 0.0, "shape": time.monotonic() + SHAPE_EVERY}
        self._told_paused = self._told_waiting = False
        self._had_room = time.monotonic()

    def run(self, stopped: Callable[[], bool], ends: Ends | None) -> None:
        """Until stopped, or with `ends` until the group has come so far."""
        try:
            while not stopped() and not self._is_through(ends):
                self._round()
            self._finish(now=ends is not None and not stopped())
        finally:
            self.group.close()

    def _round(self) -> None:
        self._tell_pause()
        self._tell_waiting()
        self._take(QUEUED * self._plan.given.in_flight - self._offsets.under_way)
        for answer in self._lookups.answers(BUSY_SECONDS if self._lookups.outstanding else 0):
            self._settle(answer)
        self._publisher.poll(0 if self._lookups.outstanding else BUSY_SECONDS)
        self._tick(time.monotonic())

    def _take(self, room: int) -> None:
        """Read what there is room for; without any, or without Cassandra, stay in the group only."""
        now = time.monotonic()
        self._had_room = now if room > 0 else self._had_room
        waits = self._lookups.paused or now - self._had_room > FULL_SECONDS
        self.group.pause(waits)
        if room <= 0 and not waits:
            return
        idle = not self._lookups.outstanding and not self._publisher.unacknowledged
        for record in self.group.records(max(room, 1), IDLE_SECONDS if idle else 0):
            self._ask(record)

    def _ask(self, record: Record) -> None:
        """What one record has in it must never end the hasher: the next one would end as well."""
        try:
            asked = self._asked(record)
        except OF_ONE_RECORD as error:
            self._letter(record, Letter("Kafka", "dq_unreadable", words_of(error)))
            return
        if not isinstance(asked, Skipped):
            self._lookups.ask(asked)
            return
        self.counts.skipped[asked.why] += 1
        if self._plan.given.mode == "lookup" and record.topic == self._plan.topic:
            self._done(SKIPPED, [record])  # the job reads it too, and makes the dead letter
        else:
            words = "no key can be found in it" if asked.why == "missing_pk" else "it is no JSON"
            self._letter(record, Letter("Kafka", f"dq_{asked.why}", words))

    def _settle(self, answer: Found | Lost) -> None:
        mine = tuple(asked for asked in answer.asked if self._is_mine(asked))
        if not mine:
            return
        if isinstance(answer, Found):
            self._publish(mine, answer)
        elif answer.failure.kind == "refused":
            raise _refused(answer)
        elif answer.failure.kind == "row":
            self._letters(mine, Letter("Hash", "dq_hash_refused", answer.failure.words))
        else:
            self._lose(mine, answer)

    def _is_mine(self, asked: Asked) -> bool:
        """Whether its partition is still this process's; a second reading may always be sent."""
        record, second = asked.record, asked.before is not None
        return second or self._offsets.has((record.topic, record.partition), record.epoch)

    def _publish(self, mine: tuple[Asked, ...], answer: Found) -> None:
        asked = newest(mine)
        try:
            reading = reading_of(asked, answer.row, self._plan.row_hash, self._table.there)
            value = self._value(reading, asked)
        except OF_ONE_RECORD as error:
            self._letters(mine, Letter("Hash", "dq_hash_refused", words_of(error)))
            return
        records = [one.record for one in mine if one.before is None]
        if not records and asked.before == reading.known:
            return  # nothing new: sent again, it would only count as a duplicate
        self._count(reading, asked, changed=not records, tombstone=value is None)
        self._plan_reread(mine, reading)
        done, topic = partial(self._done, PUBLISHED, records), self._plan.cloud_topic
        if value is None:
            self._publisher.bury(topic, asked.key, reading.version, [asked.record], done)
        else:
            self._publisher.send(topic, asked.key, value, [asked.record], done)

    def _value(self, reading: Reading, asked: Asked) -> bytes | None:
        if self._plan.tombstones and reading.absent and asked.deleted:
            return None
        return self._plan.closed(self._plan.cloud.fields(reading))

    def _count(self, reading: Reading, asked: Asked, *, changed: bool, tombstone: bool) -> None:
        self.counts.readings += 1
        self.counts.tombstones += tombstone
        self.counts.partial += reading.partial
        self.counts.changed += changed
        self.counts.not_found += reading.absent and not asked.deleted

    def _plan_reread(self, mine: Sequence[Asked], reading: Reading) -> None:
        asking = tuple(one for one in mine if one.expects)
        if not asking:
            return
        asked = newest(asking)
        if differs(asked, reading, self._plan.cloud.number):
            self.rereads.plan(asked, reading, time.monotonic())
        else:
            self.rereads.settle(asked.key)

    def _lose(self, mine: tuple[Asked, ...], lost: Lost) -> None:
        self.counts.timeouts += sum(asked.before is None for asked in mine)
        words = f"no answer after {lost.tries} tries: {lost.failure.words}"
        self._letters(mine, Letter("Cassandra", "dq_cassandra_timeout", words))

    def _letters(self, mine: tuple[Asked, ...], letter: Letter) -> None:
        for asked in mine:
            if asked.before is None:  # else its event had a reading, and the job settles it
                self._letter(asked.record, letter)

    def _letter(self, record: Record, letter: Letter) -> None:
        done = partial(self._done, DEAD_LETTER, [record])
        self._publisher.dead_letter(self._plan.letters_topic, record, letter, done)

    def _done(self, outcome: str, records: Sequence[Record]) -> None:
        for record in records:
            self._offsets.done((record.topic, record.partition), record.offset, record.epoch)
        self.counts.records[outcome] += len(records)
        self._watcher.advance(len(records))

    def _tick(self, now: float) -> None:
        for asked in self.rereads.due(now):
            self._read_again(asked)
        if now >= self._next["commit"]:
            self._next["commit"] = now + COMMIT_EVERY
            self.settled = self._offsets.settled()
            self.group.commit()
        if now >= self._next["shape"] and not self._lookups.paused:
            self._next["shape"] = now + SHAPE_EVERY
            self._look_at_shape()

    def _read_again(self, asked: Asked) -> None:
        self.counts.rereads += 1
        self._lookups.ask(asked)

    def _look_at_shape(self) -> None:
        try:
            self._table.renew()
        except UnavailableError as error:
            self._watcher.say(f"the table's columns could not be read: {error.why}")

    def _tell_pause(self) -> None:
        paused = self._lookups.paused
        if paused == self._told_paused:
            return
        self._told_paused = paused
        self.counts.pauses += paused
        waiting = f"{self._lookups.outstanding:,} keys wait, nothing is lost"
        away = f"Cassandra is away ({self._lookups.why_paused}): {waiting}; asking it every second"
        self._watcher.say(away if paused else "Cassandra answers again: going on")

    def _tell_waiting(self) -> None:
        """While Cassandra can be read, but nobody takes what was read."""
        waiting = self._publisher.is_waiting
        if waiting == self._told_waiting:
            return
        self._told_waiting = waiting
        away = f"the broker is away: {self._publisher.unacknowledged:,} readings wait for it"
        self._watcher.say(
            f"{away}, nothing is lost" if waiting else "the broker takes readings again"
        )

    def _is_through(self, ends: Ends | None) -> bool:
        """Whether the whole group has settled all that was there at the start."""
        now = time.monotonic()
        if ends is None or now < self._next["look"]:
            return False
        self._next["look"] = now + LOOK_EVERY
        settled = self._offsets.settled()
        mine = [p for p in ends.offsets if p in self._offsets.partitions]
        if any(settled.get(p, 0) < ends.offsets[p] for p in mine):
            return False
        self.group.commit(wait=True)
        others = [p for p, end in ends.offsets.items() if p not in mine and end > 0]
        found = self.group.committed(others)
        return all(found.get(p, 0) >= ends.offsets[p] for p in others)

    def _finish(self, *, now: bool) -> None:
        """Answer what is under way, then write to the group how far it came."""
        for asked in self.rereads.all_now() if now else ():
            self._read_again(asked)
        limit = time.monotonic() + SECONDS_TO_FINISH
        while self._lookups.outstanding and not self._lookups.paused and time.monotonic() < limit:
            for answer in self._lookups.answers(BUSY_SECONDS):
                self._settle(answer)
        self._publisher.flush()
        self.group.commit(wait=True)

    def _leaving(self) -> None:
        """Another hasher goes on with some partitions: what was sent must be there before it does.

        What is not acknowledged in time is not committed either, so that one does it again.
        """
        with suppress(HeadgateError):
            self._publisher.flush(SECONDS_TO_LEAVE)


def words_of(error: Exception) -> str:
    return (
        error.one_line if isinstance(error, HeadgateError) else f"{type(error).__name__}: {error}"
    )


def _refused(answer: Lost) -> ForbiddenError:
    return ForbiddenError(
        "Cassandra refuses to be read",
        why=answer.failure.words,
        fix="check CASSANDRA_USER and what that user may read",
    )
