"""How far a job is behind its topics: in records, and in seconds by the oldest record it has not read.

Asks the broker, the ledger and the dead-letter table; no Spark. `measured` is pure. A pair's partitions
are named with their side: `onprem:0`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from headgate.core.engine.job_kind import find_kafka_options
from headgate.core.ledger.model import ACTIVE
from headgate.core.ledger.ranges import TopicRange, topic_ranges
from headgate.core.sql.fragments import DEAD_LETTERS_TABLE, job_name
from headgate.errors import DifferenceError, HeadgateError, UnavailableError

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.core.engine.job_kind import JobKind
    from headgate.core.kafka.topics import TopicState
    from headgate.core.ledger.ops_store import OpsStore

READ_SECONDS = 10.0


@dataclass(frozen=True)
class PartitionLag:
    """One partition: the topic's first offset, where the job goes on, and the topic's end.

    Of a pair of topics it is named with its side: `onprem:0`.
    """

    partition: int | str
    start: int
    committed: int
    end: int
    lag: int
    seconds: float | None
    expired: int


@dataclass(frozen=True)
class Lag:
    """How far a job is behind, by partition."""

    job: str
    topic: str
    partitions: tuple[PartitionLag, ...]

    @property
    def records(self) -> int:
        return sum(partition.lag for partition in self.partitions)

    @property
    def sides(self) -> tuple[str, ...]:
        """In the order of the topics; the only topic has no side."""
        named = (str(p.partition).rpartition(":")[0] for p in self.partitions)
        return tuple(dict.fromkeys(named))

    def of_side(self, side: str) -> tuple[PartitionLag, ...]:
        return tuple(p for p in self.partitions if str(p.partition).rpartition(":")[0] == side)

    @property
    def expired(self) -> int:
        return sum(partition.expired for partition in self.partitions)

    @property
    def seconds(self) -> float | None:
        """The age of the oldest record that is not read; None when there is none."""
        return max((p.seconds for p in self.partitions if p.seconds is not None), default=None)

    @property
    def words(self) -> str:
        if self.expired:
            gone = f"{self.expired:,} records expired unread (headgate job accept-gap {self.job})"
            return f"{gone}, {self.records:,} wait"
        age = "" if self.seconds is None else f", the oldest {_age(self.seconds)} old"
        return f"{self.records:,} records behind{age}" if self.records else "nothing to read"


@dataclass(frozen=True)
class LagReport:
    """The lag, the dead letters against their limit, and whether the consumer group follows."""

    lag: Lag
    dead_letters: int
    dlq_max: int
    group: str
    group_words: str = ""


def measured(
    job: str,
    topic: TopicState,
    settled: TopicRange | None,
    oldest: Mapping[int, datetime],
    now: datetime,
) -> Lag:
    """Pure: what the topic has, what the ledger says, and the times of the oldest unread records."""
    done = committed(topic, settled)
    rows = tuple(_partition(topic, p, done[p], oldest.get(p), now) for p in sorted(topic.end))
    return Lag(job, topic.name, rows)


def of_sides(job: str, found: Mapping[str, Lag]) -> Lag:
    """The lag of a job that reads a topic for each side."""
    rows = (
        replace(p, partition=f"{side}:{p.partition}" if side else p.partition)
        for side, lag in found.items()
        for p in lag.partitions
    )
    return Lag(job, ",".join(lag.topic for lag in found.values()), tuple(rows))


def committed(topic: TopicState, settled: TopicRange | None) -> dict[int, int]:
    """Where the next batch starts in each partition; a topic made again is read from its first."""
    if settled is None or settled.source_id != topic.topic_id:
        return dict(topic.begin)
    return {p: settled.end.get(str(p), 0) for p in topic.end}


def _partition(
    topic: TopicState, partition: int, done: int, oldest: datetime | None, now: datetime
) -> PartitionLag:
    begin, end = topic.begin[partition], topic.end[partition]
    lag = max(0, end - max(done, begin))
    age = (now - oldest).total_seconds() if lag and oldest else None
    seconds = None if age is None else round(max(0.0, age), 1)
    return PartitionLag(partition, begin, done, end, lag, seconds, max(0, begin - done))


def measure(settings: Settings, store: OpsStore, kind: JobKind, subject: str) -> Lag:
    """How far the job is behind its topics."""
    from headgate.core.kafka.topics import Topics

    job, bootstrap = job_name(kind.name, subject), settings.bootstrap_servers
    if not bootstrap:
        raise UnavailableError("no broker is running", fix="make up (or: headgate local up)")
    topics = Topics(bootstrap, timeout=settings.http_timeout)
    topics.need()
    settled = store.settled_range(job)
    ranges = topic_ranges(settled)
    found = {
        side: _of_topic(bootstrap, job, topics.found(name), ranges.get(side))
        for side, name in _topics_of(settings, store, kind, subject).items()
    }
    return of_sides(job, found)


def _of_topic(bootstrap: str, job: str, topic: TopicState, settled: TopicRange | None) -> Lag:
    from headgate.core.kafka.reader import Stretch, oldest_records
    from headgate.core.ledger.ops_store import utc_now

    unread = {p: max(at, topic.begin[p]) for p, at in committed(topic, settled).items()}
    oldest = oldest_records(bootstrap, Stretch(topic.name, unread, topic.end), READ_SECONDS)
    return measured(job, topic, settled, oldest, utc_now())


def _topics_of(
    settings: Settings, store: OpsStore, kind: JobKind, subject: str
) -> Mapping[str, str]:
    """The topics that the job reads, by side; the only one has none.

    Those of a run under way win: another one may be declared here than where it was asked for.
    """
    run = store.latest(job_name(kind.name, subject))
    options = find_kafka_options(run) if run and run.state in ACTIVE else None
    if options and options.topics:
        return options.topics
    return kind.topics(settings, subject) if kind.topics else dict[str, str]()


def report(settings: Settings, store: OpsStore, kind: JobKind, subject: str) -> LagReport:
    """The lag with the dead letters and the consumer group."""
    from headgate.core.kafka.offsets import group_of

    lag = measure(settings, store, kind, subject)
    return LagReport(
        lag,
        own_letters(settings, lag.job) + kind.other_dead_letters(settings, subject),
        settings.dlq_max,
        group_of(lag.job),
        group_words(settings, store, lag),
    )


def own_letters(settings: Settings, job: str) -> int:
    """The dead letters of one job in the table."""
    from headgate.core.lake.duckdb_reader import Lake, quoted

    with Lake.open(settings) as lake:
        if not lake.exists(DEAD_LETTERS_TABLE):
            return 0
        table = lake.scan_sql(DEAD_LETTERS_TABLE)
        query = f"SELECT count(*) FROM {table} WHERE job = {quoted(job)}"
        return int(str(lake.query(query)[0][0]))


def group_words(settings: Settings, store: OpsStore, lag: Lag) -> str:
    """Whether the tools that look at the group see what the ledger says."""
    from headgate.core.kafka.offsets import GroupOffsets, group_of

    if store.settled_range(lag.job) is None:
        return "nothing read yet"
    bootstrap, found = settings.need("bootstrap_servers"), dict[str, int]()
    try:
        for side, topic in zip(lag.sides, lag.topic.split(","), strict=True):
            own = [int(str(p.partition).rpartition(":")[2]) for p in lag.of_side(side)]
            with GroupOffsets(bootstrap, group_of(lag.job), topic) as group:
                found |= {f"{side}:{p}" if side else p: at for p, at in group.read(own).items()}
    except HeadgateError as error:
        return error.why or error.what
    if any(found.get(str(p.partition)) != p.committed for p in lag.partitions):
        return "behind the ledger: it is written again with the next batch"
    return "in step with the ledger"


def _age(seconds: float) -> str:
    for name, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {name}"
    return f"{seconds:g} s"


def refuse_too_many_letters(found: LagReport) -> None:
    """Raise what the exit code says: 5 when there are more dead letters than DLQ_MAX."""
    if found.dead_letters > found.dlq_max:
        raise DifferenceError(
            f"{found.dead_letters:,} dead letters, and DLQ_MAX is {found.dlq_max:,}",
            why=f"records of {found.lag.topic} could not be accepted by {found.lag.job}",
            fix="headgate sql 'SELECT reason_code, count(*) FROM lake.headgate.dead_letters"
            " GROUP BY 1'; then mend them, or raise DLQ_MAX",
        )
