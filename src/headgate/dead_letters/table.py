"""Dead letters as values, and the reader of their Iceberg table over DuckDB: list, group, fetch one.

Also the values of a redrive: its plan, the outcome of each letter, its report. Nothing is changed here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast

from headgate.core.lake.duckdb_reader import Lake, quoted
from headgate.core.sql.fragments import DEAD_LETTERS_TABLE
from headgate.errors import NotFoundError

Headers = tuple[tuple[str, bytes | None], ...]
Result = Literal["sent", "skipped", "refused"]
FROM_TABLE = "it was a row of a table: there is no topic to send it to"
SENT_BEFORE = "it was sent again before"
SAME_RECORD = "the same record is sent for another of its letters"


@dataclass(frozen=True)
class Facts:
    """What may be told of a dead letter without showing its content."""

    id: str
    job: str
    revision: str
    reason_code: str
    reason: str
    topic: str | None
    partition: int | None
    offset: int | None
    timestamp: datetime | None
    refused_at: datetime
    bytes: int

    @property
    def origin(self) -> str:
        """Where the record stood; empty for a row of a table."""
        return f"{self.topic}/{self.partition}/{self.offset}" if self.topic else ""


@dataclass(frozen=True)
class Letter:
    """A dead letter with the original bytes."""

    facts: Facts
    key: bytes | None
    value: bytes | None
    headers: Headers = ()

    def __repr__(self) -> str:
        return f"Letter({self.facts.id}, {self.facts.bytes} bytes)"


@dataclass(frozen=True)
class Item:
    """One letter to send, and where to."""

    id: str
    topic: str
    origin: str
    job: str
    reason_code: str


@dataclass(frozen=True)
class Outcome:
    """What became of one letter: where it stands now, or why it does not."""

    id: str
    result: Result
    place: str = ""
    why: str = ""


@dataclass(frozen=True)
class RedrivePlan:
    """What would be sent, and what is left alone from the start."""

    items: tuple[Item, ...]
    skipped: tuple[Outcome, ...] = ()
    again: bool = False

    @property
    def topics(self) -> dict[str, int]:
        return dict(Counter(item.topic for item in self.items))

    @property
    def reasons(self) -> dict[str, int]:
        return dict(Counter(f"{item.job} {item.reason_code}" for item in self.items))


@dataclass(frozen=True)
class RedriveReport:
    """How far a redrive is; what is left can be resumed."""

    redrive: str
    planned: int
    sent: int
    refused: Mapping[str, int]
    skipped: Mapping[str, int]
    left: int
    closed: bool
    journal: str = ""


ID_LENGTH = 20
# The same row has the same id for ever; two jobs that refuse one record make two letters.
_ID = f"""substr(sha256(concat_ws('|',
  job, coalesce(kafka_topic, ''), coalesce(kafka_partition::VARCHAR, ''),
  coalesce(kafka_offset::VARCHAR, ''), reason_code, coalesce(reason, ''),
  epoch_us(refused_at)::VARCHAR, if(kafka_topic IS NULL, sha256(kafka_value), ''))), 1, {ID_LENGTH})"""
_FACTS = """id, job, revision, reason_code, reason, kafka_topic, kafka_partition, kafka_offset,
  kafka_timestamp, refused_at,
  coalesce(octet_length(kafka_key), 0) + coalesce(octet_length(kafka_value), 0)"""
_CONTENT = "kafka_key, kafka_value, kafka_headers"


@dataclass(frozen=True)
class Chosen:
    """Which letters; what is not given does not matter."""

    job: str | None = None
    reason: str | None = None
    topic: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    ids: tuple[str, ...] = ()

    @property
    def condition(self) -> str:
        parts = [
            f"{column} = {quoted(value)}"
            for column, value in (
                ("job", self.job),
                ("reason_code", self.reason),
                ("kafka_topic", self.topic),
            )
            if value is not None
        ]
        parts += [f"refused_at >= {_moment(self.since)}"] if self.since else []
        parts += [f"refused_at < {_moment(self.until)}"] if self.until else []
        parts += [f"id IN ({', '.join(map(quoted, self.ids))})"] if self.ids else []
        return " AND ".join(parts) or "TRUE"


@dataclass(frozen=True)
class Group:
    """Letters of one job, reason and topic."""

    job: str
    reason_code: str
    topic: str | None
    letters: int
    redriven: int
    first: datetime
    last: datetime
    example: str
    words: str


class DeadLetters:
    """The dead letters of all jobs, newest first."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def count(self, chosen: Chosen) -> int:
        return cast("int", self._query("count(*)", chosen.condition)[0][0]) if self._there else 0

    def facts(
        self, chosen: Chosen, limit: int, after: str | None = None, *, oldest_first: bool = False
    ) -> list[Facts]:
        """What is known of each, without its content; `after` is the last one already seen."""
        if not self._there:
            return []
        condition = chosen.condition
        if after is not None:
            last = self.letter(after).facts
            condition += f" AND (refused_at, id) < ({_moment(last.refused_at)}, {quoted(last.id)})"
        way = "ASC" if oldest_first else "DESC"
        tail = f"ORDER BY refused_at {way}, id {way} LIMIT {int(limit)}"
        return [_facts(row) for row in self._query(_FACTS, condition, tail)]

    def groups(self, chosen: Chosen, redriven: Sequence[str] = ()) -> list[Group]:
        if not self._there:
            return []
        sent = f"id IN ({', '.join(map(quoted, redriven))})" if redriven else "FALSE"
        columns = f"""job, reason_code, kafka_topic, count(*), count_if({sent}), min(refused_at),
          max(refused_at), arg_max(id, refused_at), arg_max(reason, refused_at)"""
        tail = "GROUP BY job, reason_code, kafka_topic ORDER BY 4 DESC, 1, 2, 3"
        return [_group(row) for row in self._query(columns, chosen.condition, tail)]

    def letter(self, name: str) -> Letter:
        found = self.letters([name])
        if name not in found:
            raise NotFoundError(
                f"there is no dead letter {name[:80]!r}", fix="headgate dlq list shows their ids"
            )
        return found[name]

    def letters(self, names: Sequence[str]) -> dict[str, Letter]:
        """Those of these ids that are there, with the original bytes."""
        if not self._there or not names:
            return {}
        rows = self._query(f"{_FACTS}, {_CONTENT}", Chosen(ids=tuple(names)).condition)
        letters = (Letter(_facts(row), *_content(row[11:])) for row in rows)
        return {letter.facts.id: letter for letter in letters}

    @property
    def _there(self) -> bool:
        return self._lake.exists(DEAD_LETTERS_TABLE)

    def _query(self, columns: str, condition: str, tail: str = "") -> list[tuple[object, ...]]:
        table = f"(SELECT *, {_ID} AS id FROM {self._lake.scan_sql(DEAD_LETTERS_TABLE)})"
        return self._lake.query(f"SELECT {columns} FROM {table} WHERE {condition} {tail}")


def _moment(moment: datetime) -> str:
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return f"TIMESTAMPTZ {quoted(zoned.isoformat())}"


def _group(row: Sequence[Any]) -> Group:
    job, reason_code, topic, letters, redriven, first, last, example, words = row
    return Group(
        job, reason_code, topic, letters, redriven, _utc(first), _utc(last), example, words or ""
    )


def _facts(row: Sequence[Any]) -> Facts:
    """The columns of _FACTS, and whatever follows them."""
    id, job, revision, code, reason, topic, partition, offset, at, refused_at, size = row[:11]
    return Facts(
        id=id,
        job=job,
        revision=revision or "",
        reason_code=code or "",
        reason=reason or "",
        topic=topic,
        partition=partition,
        offset=offset,
        timestamp=_utc(at) if at is not None else None,
        refused_at=_utc(refused_at),
        bytes=size,
    )


def _utc(moment: object) -> datetime:
    found = cast("datetime", moment)
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def _content(row: Sequence[object]) -> tuple[bytes | None, bytes | None, Headers]:
    key, value, headers = row
    return _bytes(key), _bytes(value), _headers(headers)


def _bytes(value: object) -> bytes | None:
    return None if value is None else bytes(cast("bytes", value))


def _headers(value: object) -> Headers:
    found = cast("Sequence[Mapping[str, object]]", value or ())
    return tuple((str(header["key"]), _bytes(header["value"])) for header in found)
