"""Polling: rows whose version is newer than the last look, for tables that nobody sends events of.

Each scan asks range by range for rows changed since, with an overlap: a row that was written late,
or by a clock that was behind, is not missed. What was sent already in the overlap is not sent
again while this process lives. How far it came stands in a file, written after the readings are
acknowledged: a kill repeats some readings and loses none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson

from headgate.errors import OperationError, UnavailableError, UsageError
from headgate.feeds.cassandra import Cassandra, quoted
from headgate.feeds.cassandra_rows import Row, RowForm
from headgate.feeds.cassandra_values import LAST, key_text, row_json
from headgate.feeds.hasher.asked import Known, Record
from headgate.feeds.hasher.counts import DEAD_LETTER, PUBLISHED, Counts
from headgate.feeds.hasher.plan import HasherPlan
from headgate.feeds.hasher.publisher import Letter, Publisher
from headgate.feeds.hasher.reading import Reading, written
from headgate.feeds.hasher.service import OF_ONE_RECORD, Watcher, words_of
from headgate.feeds.hasher.table import HashedTable
from headgate.feeds.whole_file import whole_file

OVERLAP = timedelta(seconds=60)
FIRST = datetime(1970, 1, 1, tzinfo=UTC)
LEAST_TOKEN, MOST_TOKEN = -(1 << 63), (1 << 63) - 1
RANGES = 16
LOOK_SECONDS, PAUSE_SECONDS = 0.1, 1.0
REMEMBERED = 100_000
BLIND = (
    "a scan does not see deletes: run a hasher on Topic-1 beside it, or keys that are deleted"
    " on both sides become ZOMBIE"
)


@dataclass(frozen=True)
class Scanned:
    """How far one scan came."""

    rows: int
    newest: datetime


class Poller:
    """Scans a table again and again; each row it finds new is a reading."""

    def __init__(
        self,
        plan: HasherPlan,
        cassandra: Cassandra,
        table: HashedTable,
        publisher: Publisher,
        counts: Counts,
        watcher: Watcher,
    ) -> None:
        self._plan, self._cassandra, self._table = plan, cassandra, table
        self._publisher, self._counts, self._watcher = publisher, counts, watcher
        self._sent: dict[str, Known] = {}
        self._away, self._id, self._most = False, table.shape.table_id, REMEMBERED
        watcher.say(BLIND)
        if plan.version is None or plan.version not in table.shape.columns:
            raise UsageError(
                f"{plan.cassandra_table} cannot be polled",
                why="a scan asks for rows that changed since, and no column says when",
                fix="name it under `rows: {cloud: {version: last_updated}}`, or use --mode cdc",
            )

    def run(self, stopped: Callable[[], bool]) -> None:
        """One scan after the other until stopped; with `--once` a single one."""
        while not stopped():
            through = self._scan_safely(stopped)
            if self._plan.given.once and through:
                return
            self._wait(stopped, self._plan.given.every if through else PAUSE_SECONDS)

    def _scan_safely(self, stopped: Callable[[], bool]) -> bool:
        """Whether the scan came to its end; one that broke off is made again."""
        try:
            self.scan(stopped)
        except UnavailableError as error:
            if self._plan.given.once or not error.what.startswith("Cassandra"):
                raise
            if not self._away:
                self._counts.pauses += 1
                self._watcher.say(f"Cassandra is away ({error.why}): the scan is made again")
            self._away = True
            return False
        if self._away:
            self._watcher.say("Cassandra answers again: going on")
        self._away = False
        return True

    def scan(self, stopped: Callable[[], bool] = lambda: False) -> Scanned:
        """Send the rows that are new since the last scan; then note how far it came."""
        with suppress(UnavailableError):
            self._table.renew()
        before, begun = read_state(self._plan.state_file, self._id), datetime.now(UTC)
        since = before - OVERLAP if before > FIRST else FIRST
        rows, newest = 0, before
        for key, row in self._changed(since):
            if stopped():
                break
            rows += self._send(key, row)
            # A row from the future must not hide what is written until then.
            newest = max(newest, min(row.version or newest, begun))
            if rows % 500 == 0:
                self._publisher.poll()
            if len(self._sent) > self._most:
                self._forget(newest)
        self._publisher.flush()
        if not stopped():  # ranges not scanned may have older rows
            write_state(self._plan.state_file, newest, self._id)
            self._forget(newest)
        return Scanned(rows, newest)

    def _changed(self, since: datetime) -> Iterator[tuple[str, Row]]:
        shape, form = self._table.shape, self._form()
        keys = ", ".join(quoted(name) for name in shape.primary_key)
        tokens = f"token({', '.join(quoted(name) for name in shape.partition_key)})"
        cql = (
            f"SELECT {keys}, {form.selection} FROM {shape.quoted}"
            f" WHERE {tokens} >= ? AND {tokens} <= ?"
            f" AND {quoted(str(self._plan.version))} >= ? ALLOW FILTERING"
        )
        width = len(shape.primary_key)
        for least, most in token_ranges(RANGES):
            for answer in self._cassandra.stream(cql, (least, most, since)):
                values = tuple(answer.values())
                key = key_text(values[:width])
                try:
                    yield key, form.made(values[width:])
                except OF_ONE_RECORD as error:
                    self._letter(key, {}, LAST, error)

    def _form(self) -> RowForm:
        return RowForm(self._table.shape, self._plan.fields, self._plan.version)

    def _send(self, key: str, row: Row) -> int:
        """How many readings it makes; what one row has in it must never end the scan."""
        partial = any(row.values.get(name) is None for name in self._table.there)
        try:
            at = row.cloud_ts or datetime.now(UTC)
            reading = Reading(key, self._plan.row_hash(row.values), at, partial)
            value = self._plan.closed(self._plan.cloud.fields(reading))
        except OF_ONE_RECORD as error:
            self._letter(key, row.values, row.version or row.written or FIRST, error)
            return 0
        if self._sent.get(key) == reading.known:
            return 0
        self._sent[key] = reading.known
        self._counts.readings += 1
        self._counts.partial += partial
        self._publisher.send(self._plan.cloud_topic, key, value, (), self._done)
        return 1

    def _letter(
        self, key: str, values: Mapping[str, object], at: datetime, error: Exception
    ) -> None:
        """There is no message whose bytes a dead letter could have: the row as JSON stands for them."""
        known = Known(None, at)
        if self._sent.get(key) == known:
            return
        self._sent[key] = known
        body = row_json({"pk": key, **values})
        record = Record(self._plan.cassandra_table, 0, 0, datetime.now(UTC), key.encode(), body)
        letter = Letter("Hash", "dq_hash_refused", words_of(error))
        self._publisher.dead_letter(self._plan.letters_topic, record, letter, self._refused)

    def _refused(self) -> None:
        self._counts.records[DEAD_LETTER] += 1

    def _done(self) -> None:
        self._counts.records[PUBLISHED] += 1
        self._watcher.advance(1)

    def _forget(self, newest: datetime) -> None:
        """Only what the next scan's overlap can find again must be known."""
        since = newest - OVERLAP
        self._sent = {key: known for key, known in self._sent.items() if known.version >= since}
        self._most = max(REMEMBERED, 2 * len(self._sent))

    def _wait(self, stopped: Callable[[], bool], seconds: float) -> None:
        until = time.monotonic() + seconds
        while not stopped() and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)


def token_ranges(parts: int) -> Sequence[tuple[int, int]]:
    """All tokens in so many ranges without gap or overlap, so that no query reads the whole table."""
    width = (1 << 64) // parts
    starts = [LEAST_TOKEN + width * at for at in range(parts)]
    return [(a, b - 1) for a, b in zip(starts, [*starts[1:], MOST_TOKEN + 1], strict=True)]


def read_state(file: Path, table_id: str) -> datetime:
    """The newest version that was sent; the epoch when nothing was of this table.

    A table that was made anew has another id: what was sent of the old one says nothing of it.
    """
    try:
        found = orjson.loads(file.read_bytes())
        same = found["table_id"] == table_id
        return datetime.fromisoformat(found["newest"]) if same else FIRST
    except FileNotFoundError:
        return FIRST
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OperationError(
            f"{file} cannot be read",
            why=str(error),
            fix="remove it to scan the whole table again; readings that come twice do no harm",
        ) from error


def write_state(file: Path, newest: datetime, table_id: str) -> None:
    with whole_file(file) as part:
        state = {"newest": written(newest), "table_id": table_id}
        part.write_bytes(orjson.dumps(state) + b"\n")
