"""The hasher's loop: records name keys, rows are looked up and hashed, readings go to the cloud's topic.

At least once: an offset is committed only when what its record led to is acknowledged. So a killed hasher loses
nothing; what it had not finished is done again, by itself or by another member of the group. A second reading is
requested by a record of its own, which waits on a topic until it is due; a run that ends at the end of the topic
cannot wait for it, and keeps the offset of the event uncommitted instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Protocol

from headgate.errors import ForbiddenError, HeadgateError, RowRefusedError, UnavailableError
from headgate.reconcile.hasher.consumer import Group, Offsets, Partition
from headgate.reconcile.hasher.lookups import Found, Lookups, Lost
from headgate.reconcile.hasher.metrics import DEAD_LETTER, LOOKED, PUBLISHED, SKIPPED, Counts
from headgate.reconcile.hasher.plan import HasherPlan
from headgate.reconcile.hasher.publisher import Done, Letter, Publisher, after_both
from headgate.reconcile.hasher.readings import (
    Reading,
    Rereads,
    differs,
    newest,
    reading_of,
    request_for,
)
from headgate.reconcile.hasher.requests import Asked, Record, Skipped, plainly, reread_topic
from headgate.reconcile.hasher.table import HashedTable

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
        self.rereads = Rereads(plan.reread_after, watcher.say, let_go=self._looked)
        self._offsets = Offsets()
        self.group = Group(
            plan.bootstrap, plan.group, plan.topics, self._offsets, self._leaving, watcher.say
        )
        self.reached: Mapping[Partition, int] = {}
        self._epochs: Mapping[Partition, int] = {}
        self._next = {"commit": 0.0, "look": 0.0, "shape": time.monotonic() + SHAPE_EVERY}
        self._told_paused = self._told_waiting = self._told_unreadable = False
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
        if isinstance(asked, Skipped):
            self._skip(record, asked)
        elif asked.due is not None:
            self._keep(asked, asked.due)
        else:
            self._lookups.ask(asked)

    def _skip(self, record: Record, skipped: Skipped) -> None:
        self.counts.skipped[skipped.why] += 1
        if self._plan.given.mode == "lookup" and record.topic == self._plan.topic:
            self._tell_unreadable(skipped)
            self._done(SKIPPED, [record])  # the job reads it too, and makes the dead letter
        else:
            words = "no key can be found in it" if skipped.why == "missing_pk" else "it is no JSON"
            self._letter(record, Letter("Kafka", f"dq_{skipped.why}", words))

    def _keep(self, look: Asked, due: datetime) -> None:
        """A second look that waits for its time, and its record with it."""
        self._offsets.hold(*_place(look.record))
        self._offsets.done(*_place(look.record))
        left = (due - datetime.now(UTC)).total_seconds()
        self.rereads.keep(look, time.monotonic(), left)

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
        """Whether its partition is still this process's; else another one answers its record."""
        partition, _, epoch = _place(asked.record)
        return self._offsets.has(partition, epoch)

    def _publish(self, mine: tuple[Asked, ...], answer: Found) -> None:
        asked = self._newest(mine)
        try:
            reading = reading_of(asked, answer.row, self._plan.row_hash, self._table.there)
            value = self._value(reading, asked)
        except OF_ONE_RECORD as error:
            self._letters(mine, Letter("Hash", "dq_hash_refused", words_of(error)))
            return
        records = [one.record for one in mine if one.before is None]
        if not records and asked.before == reading.known:
            self._answered(mine)  # nothing new: sent again, it would only count as a duplicate
            return
        self._count(reading, asked, changed=not records, tombstone=value is None)
        done = self._plan_look(mine, reading, partial(self._answered, mine))
        topic = self._plan.cloud_topic
        if value is None:
            self._publisher.bury(topic, asked.key, reading.version, [asked.record], done)
        else:
            self._publisher.send(topic, asked.key, value, [asked.record], done)

    def _newest(self, mine: tuple[Asked, ...]) -> Asked:
        """Who asked for the newest version; the answer is not older than what was last said."""
        asked = newest(mine)
        waiting = self.rereads.known(asked.key)
        said = [one.least for one in mine] + [waiting.version if waiting else None]
        return replace(asked, least=max((moment for moment in said if moment), default=None))

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

    def _plan_look(self, mine: Sequence[Asked], reading: Reading, done: Done) -> Done:
        """Have the key read once more if it differs; what is to be called as the reading is sent."""
        asking = tuple(one for one in mine if one.expects)
        asked = newest(asking) if asking else None
        if asked is None:
            return done
        if not differs(asked, reading, self._plan.cloud.number):
            self.rereads.settle(asked.key)
        elif self._plan.given.once:
            self._offsets.hold(*_place(asked.record))
            self.rereads.plan(asked, reading, time.monotonic())
        elif not self.rereads.has_room(asked.key):
            self.rereads.leave_out()
        else:
            done = after_both(done)
            due = datetime.now(UTC) + timedelta(seconds=self.rereads.delay)
            request, topic = request_for(asked, reading, due), reread_topic(self._plan.topic)
            self._publisher.send(topic, asked.key, request, [asked.record], done)
        return done

    def _lose(self, mine: tuple[Asked, ...], lost: Lost) -> None:
        self.counts.timeouts += sum(asked.before is None for asked in mine)
        words = f"no answer after {lost.tries} tries: {lost.failure.words}"
        self._letters(mine, Letter("Cassandra", "dq_cassandra_timeout", words))

    def _letters(self, mine: tuple[Asked, ...], letter: Letter) -> None:
        for asked in mine:
            if asked.before is None:
                self._letter(asked.record, letter)
            else:  # its event had a reading, and the job settles it
                self._looked(asked)

    def _letter(self, record: Record, letter: Letter) -> None:
        done = partial(self._done, DEAD_LETTER, [record])
        self._publisher.dead_letter(self._plan.letters_topic, record, letter, done)

    def _answered(self, mine: Sequence[Asked]) -> None:
        self._done(PUBLISHED, [one.record for one in mine if one.before is None])
        for one in mine:
            if one.before is not None:
                self._looked(one)

    def _looked(self, look: Asked) -> None:
        """A second look was made, or will not be: its record waits for it no more."""
        self._offsets.release(*_place(look.record))
        if look.due is not None:
            self._count_done(LOOKED, 1)

    def _done(self, outcome: str, records: Sequence[Record]) -> None:
        for record in records:
            self._offsets.done(*_place(record))
        self._count_done(outcome, len(records))

    def _count_done(self, outcome: str, records: int) -> None:
        self.counts.records[outcome] += records
        self._watcher.advance(records)

    def _tick(self, now: float) -> None:
        self._leave_to_others()
        for asked in self.rereads.due(now):
            self._read_again(asked)
        if now >= self._next["commit"]:
            self._next["commit"] = now + COMMIT_EVERY
            self.reached = self._offsets.reached()
            self.group.commit()
        if now >= self._next["shape"] and not self._lookups.paused:
            self._next["shape"] = now + SHAPE_EVERY
            self._look_at_shape()

    def _leave_to_others(self) -> None:
        """Second looks of partitions that were given away are theirs who have the requests now."""
        epochs = self._offsets.epochs
        if epochs != self._epochs:
            self._epochs = epochs
            self.rereads.forget(lambda look: not self._is_mine(look))

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

    def _tell_unreadable(self, skipped: Skipped) -> None:
        """Said once of a framed topic: values in another language than JSON look all the same."""
        if skipped.why != "not_json" or self._plan.opened is plainly or self._told_unreadable:
            return
        self._told_unreadable = True
        self._watcher.say(
            f"a value of {self._plan.topic} has no JSON behind a registry's frame: the job makes a"
            " dead letter of it, here it is skipped and counted. Avro is not read from this topic"
        )

    def _is_through(self, ends: Ends | None) -> bool:
        """Whether the whole group has settled all that was there at the start."""
        now = time.monotonic()
        if ends is None or now < self._next["look"]:
            return False
        self._next["look"] = now + LOOK_EVERY
        mine = {p: end for p, end in ends.offsets.items() if p in self._offsets.partitions}
        if not _is_past(self._offsets.reached(), mine):
            return False
        for asked in self.rereads.all_now():  # there will be no later
            self._read_again(asked)
            self._next["look"] = now + IDLE_SECONDS
        if not _is_past(self._offsets.settled(), mine):
            return False
        self.group.commit(wait=True)
        others = [p for p, end in ends.offsets.items() if p not in mine and end > 0]
        if mine:  # a request that another hasher has may wait for its time there
            others = [p for p in others if p[0] == self._plan.topic]
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


def _place(record: Record) -> tuple[Partition, int, int]:
    return (record.topic, record.partition), record.offset, record.epoch


def _is_past(offsets: Mapping[Partition, int], ends: Mapping[Partition, int]) -> bool:
    return all(offsets.get(partition, 0) >= end for partition, end in ends.items())


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
