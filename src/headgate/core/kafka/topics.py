"""Topics of one broker through Kafka's admin client: create, describe, offsets, delete.

One admin client is kept for each broker address as long as the process lives: a client that is
collected while it waits for a broker ends the process, since the library's own thread runs the
collector. A broker of another local stack that answers at our address is refused by its cluster id.
"""

# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AclOperation,
    AdminClient,
    ClusterMetadata,
    ConfigEntry,
    ConfigResource,
    ListOffsetsResultInfo,
    NewTopic,
    OffsetSpec,
    ResourceType,
    TopicDescription,
)

from headgate.config.env_files import DEFAULT_PROFILE
from headgate.config.settings import embedded_broker
from headgate.errors import HeadgateError, OperationError, UnavailableError

if TYPE_CHECKING:
    from headgate.config.settings import Settings


@cache
def shared_admin(bootstrap: str, timeout: float) -> AdminClient:
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": bootstrap,
        "socket.timeout.ms": int(timeout * 1000),
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 500,
        "log_level": 0,  # it would write refused connections to stderr
    }
    return AdminClient(settings)


def read_cluster_id(folder: Path) -> str | None:
    """The cluster id in the data of an embedded broker; None when it was never started."""
    try:
        lines = (folder / "data" / "meta.properties").read_text("utf-8").splitlines()
    except OSError:
        return None
    return next((line.partition("=")[2] for line in lines if line.startswith("cluster.id=")), None)


def expected_cluster_id(bootstrap: str) -> str | None:
    """The id that the broker at this address must have; None for a broker that is not embedded."""
    folder = embedded_broker(bootstrap)
    return read_cluster_id(folder) if folder else None


def advise_when_away(bootstrap: str) -> str:
    """What a person can do about a broker that does not answer."""
    if embedded_broker(bootstrap):
        return "start it with `headgate local up`"
    return (
        "start that broker or correct BOOTSTRAP_SERVERS; "
        f"`headgate config select {DEFAULT_PROFILE}` uses an embedded one"
    )


# The library's documented admin names are re-exported without being marked so.


DAY_MS = 86_400_000
CONNECT_SECONDS = 3.0
# Kafka makes it when the first transaction begins.
TRANSACTIONS = "__transaction_state"
# A topic that was made, or a broker that was started, a moment ago answers with these.
NO_LEADER = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError._NOENT,  # the client found no leader at all
    }
)
AWAY = frozenset(
    {
        KafkaError._TRANSPORT,  # librdkafka's public names
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._MSG_TIMED_OUT,
    }
)
MAY_WRITE = frozenset({"WRITE", "ALL", "ANY"})
Answer = TypeVar("Answer")


def kafka_error(error: KafkaException) -> KafkaError:
    """The reason that the library's exception carries."""
    return error.args[0]


def is_away(error: KafkaError) -> bool:
    """Whether the broker gave no answer, so that the same call may succeed later."""
    return error.retriable() or error.code() in AWAY


@dataclass(frozen=True)
class TopicSpec:
    """A topic as it should be."""

    name: str
    partitions: int
    retention_days: int


@dataclass(frozen=True)
class TopicState:
    """A topic as it is: its id changes when it is deleted and made again."""

    name: str
    topic_id: str
    begin: Mapping[int, int]
    end: Mapping[int, int]

    @property
    def partitions(self) -> int:
        return len(self.end)

    @property
    def span(self) -> int:
        """Offsets between begin and end: the records, plus gaps where transactions ended."""
        return sum(self.end[p] - self.begin[p] for p in self.end)


@dataclass(frozen=True)
class TopicGaps:
    """What may leave offsets of a topic without a record, as far as its broker tells."""

    compaction: bool
    transactions: bool


class Topics:
    """The topics of one broker. Every call ends within a few `timeout` seconds or raises.

    Whoever writes to Kafka asks here for its topics first, so this is where the embedded broker is
    known as the stack's own: a broker of another cluster at its address is refused.
    """

    def __init__(self, bootstrap: str, timeout: float = 10.0) -> None:
        self.bootstrap = bootstrap
        self._timeout = timeout
        self._client = cast("_Admin", cast("object", shared_admin(bootstrap, timeout)))
        self._is_checked = False

    @property
    def _admin(self) -> _Admin:
        """The client, unless another stack's broker answers it."""
        self.refuse_another_cluster()
        return self._client

    def refuse_another_cluster(self) -> None:
        """Raise when a broker of another stack answers at the address of this stack's own.

        Asked once; again while nobody answers.
        """
        expected = None if self._is_checked else expected_cluster_id(self.bootstrap)
        if expected is None:
            self._is_checked = True
            return
        cluster = self.cluster_id()
        self._is_checked = cluster == expected
        if cluster not in (None, expected):
            raise UnavailableError(
                f"the broker at {self.bootstrap} is not this stack's own",
                why=f"its cluster is {cluster}, the one in this stack's data is {expected}",
                fix="headgate local status; `headgate local down` and `up` choose another port",
            )

    def cluster_id(self) -> str | None:
        """The id of the cluster that answers here, whichever it is; None when none does."""
        try:
            self._need_connection()
            metadata = self._client.list_topics(timeout=self._timeout)
        except (KafkaException, UnavailableError):
            return None
        return metadata.cluster_id if metadata.brokers else None

    def need(self) -> None:
        """Raise at once when no server accepts a connection; the other calls wait for one."""
        self._need_connection()
        self.refuse_another_cluster()

    def _need_connection(self) -> None:
        if not any(_accepts(server) for server in self.bootstrap.split(",")):
            raise self._away("the broker is away")

    def brokers(self) -> int:
        """How many brokers answer; 0 when none does."""
        try:
            self._need_connection()
            return len(self._client.list_topics(timeout=self._timeout).brokers)
        except (KafkaException, UnavailableError):
            return 0

    def names(self) -> tuple[str, ...]:
        """All topics except Kafka's own."""
        return tuple(sorted(name for name in self._all() if not name.startswith("__")))

    def _all(self) -> Collection[str]:
        try:
            return self._admin.list_topics(timeout=self._timeout).topics
        except KafkaException as error:
            raise self._explained(error, "topics could not be listed") from error

    def create(self, specs: Sequence[TopicSpec]) -> tuple[str, ...]:
        """Create those that do not exist; the names created. Existing ones stay as they are."""
        existing = set(self.names())
        new = [spec for spec in specs if spec.name not in existing]
        if not new:
            return ()
        futures = self._admin.create_topics([_new_topic(spec) for spec in new])
        created = [spec for spec in new if self._created(spec.name, futures[spec.name])]
        for spec in created:  # a client that comes right after must find its leaders
            self._offsets(spec.name, range(spec.partitions), _latest())
        return tuple(spec.name for spec in created)

    def _created(self, name: str, future: Future[None]) -> bool:
        try:
            self._result(future, f"topic {name} could not be created")
        except _AlreadyThereError:
            return False
        return True

    def delete(self, names: Iterable[str]) -> tuple[str, ...]:
        """Delete those that exist; the names deleted."""
        known = self.names()
        there = [name for name in names if name in known]
        if not there:
            return ()
        for name, future in self._admin.delete_topics(there).items():
            self._result(future, f"topic {name} could not be deleted")
        self._wait(lambda: not set(there) & set(self.names()))
        return tuple(there)

    def describe(self, name: str) -> TopicState | None:
        """The topic with its id and offsets; None when there is no such topic."""
        future = self._admin.describe_topics(TopicCollection([name]))[name]
        try:
            found = self._result(future, f"topic {name} could not be described")
        except _NoSuchTopicError:
            return None
        partitions = sorted(partition.id for partition in found.partitions)
        return TopicState(
            name,
            str(found.topic_id),
            begin=self._offsets(name, partitions, _earliest()),
            end=self._offsets(name, partitions, _latest()),
        )

    def found(self, name: str) -> TopicState:
        """The topic with its id and offsets; it must be there."""
        topic = self.describe(name)
        if topic is None:
            raise UnavailableError(
                f"there is no topic {name}", why=f"asked {self.bootstrap}", fix="make create-topics"
            )
        return topic

    def gaps(self, name: str) -> TopicGaps:
        """Whether the topic is compacted, and whether this broker has ever had a transaction."""
        compaction = "compact" in self._setting(name, "cleanup.policy")
        return TopicGaps(compaction, transactions=TRANSACTIONS in self._all())

    def largest(self, names: Collection[str]) -> dict[str, int]:
        """How many bytes a record batch of each topic may have."""
        asked = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        if not asked:
            return {}
        answers = self._admin.describe_configs(asked)
        words = "the configuration of {} could not be read"
        found = {r: self._result(f, words.format(r.name)) for r, f in answers.items()}
        return {r.name: int(str(own["max.message.bytes"].value)) for r, own in found.items()}

    def keeps_times(self, name: str) -> bool:
        """Whether a record keeps the time that its producer gave it."""
        return self._setting(name, "message.timestamp.type") == "CreateTime"

    def _setting(self, name: str, key: str) -> str:
        asked = ConfigResource(ResourceType.TOPIC, name)
        words = f"the configuration of {name} could not be read"
        return str(self._result(self._admin.describe_configs([asked])[asked], words)[key].value)

    def unwritable(self, names: Collection[str]) -> dict[str, str]:
        """Of these topics, those that exist and that we may not write to, with the reason."""
        if not names:
            return {}
        asked = TopicCollection(list(names))
        answers = self._admin.describe_topics(asked, include_authorized_operations=True)
        found: dict[str, str] = {}
        for name, future in answers.items():
            try:
                told = self._result(future, f"topic {name} could not be described")
            except UnavailableError:
                raise
            except OperationError as error:
                found[name] = error.one_line
                continue
            # Without an authorizer a broker allows everything, or says nothing.
            operations = cast(
                "Sequence[AclOperation]", told.authorized_operations or ()
            )  # the library leaves it open
            allowed = {operation.name for operation in operations}
            if allowed and not allowed & MAY_WRITE:
                found[name] = f"writing to topic {name} is not allowed"
        return found

    def _offsets(self, name: str, partitions: Sequence[int], which: OffsetSpec) -> dict[int, int]:
        """Offsets per partition; waits while a new or restarted broker has no leader yet."""
        end = time.monotonic() + 2 * self._timeout
        while True:
            try:
                return self._offsets_now(name, partitions, which)
            except (_NoLeaderError, _NoSuchTopicError):
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)
                self._all()  # the client goes by what it knows of the topic until it asks anew

    def _offsets_now(
        self, name: str, partitions: Sequence[int], which: OffsetSpec
    ) -> dict[int, int]:
        asked = {TopicPartition(name, p): which for p in partitions}
        answers = self._admin.list_offsets(asked, request_timeout=self._timeout)
        words = f"offsets of {name} could not be read"
        return {tp.partition: self._result(f, words).offset for tp, f in answers.items()}

    def _wait(self, true: Callable[[], bool]) -> None:
        end = time.monotonic() + self._timeout
        while not true() and time.monotonic() < end:
            time.sleep(0.05)

    def _result(self, future: Future[Answer], words: str) -> Answer:
        try:
            return future.result(timeout=self._timeout + 1)
        except KafkaException as error:
            raise self._explained(error, words) from error
        except TimeoutError as error:
            raise self._away(words) from error

    def _explained(self, error: KafkaException, words: str) -> HeadgateError:
        reason = kafka_error(error)
        code = reason.code()
        if code == KafkaError.TOPIC_ALREADY_EXISTS:
            return _AlreadyThereError(words)
        if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return _NoSuchTopicError(words, why="it does not exist", fix="create it first")
        if code in NO_LEADER:
            return _NoLeaderError(words, why=reason.str(), fix="try again in a moment")
        if is_away(reason):
            return self._away(words)
        return OperationError(words, why=reason.str(), fix="check the name and the broker's log")

    def _away(self, words: str) -> UnavailableError:
        return UnavailableError(
            words,
            why=f"the broker at {self.bootstrap} does not answer",
            fix=advise_when_away(self.bootstrap),
        )


class _AlreadyThereError(OperationError):
    """Another process created the topic first."""


class _NoLeaderError(UnavailableError):
    """The topic was made or its broker restarted a moment ago."""


class _NoSuchTopicError(OperationError):
    """The topic does not exist."""


class _Admin(Protocol):
    """The calls used here, with the types that the library's own annotations leave open."""

    def list_topics(self, *, timeout: float) -> ClusterMetadata: ...

    def create_topics(self, new_topics: list[NewTopic]) -> Mapping[str, Future[None]]: ...

    def delete_topics(self, topics: list[str]) -> Mapping[str, Future[None]]: ...

    def describe_topics(
        self, topics: TopicCollection, *, include_authorized_operations: bool = False
    ) -> Mapping[str, Future[TopicDescription]]: ...

    def describe_configs(
        self, resources: list[ConfigResource]
    ) -> Mapping[ConfigResource, Future[Mapping[str, ConfigEntry]]]: ...

    def list_offsets(
        self,
        topic_partition_offsets: Mapping[TopicPartition, OffsetSpec],
        *,
        request_timeout: float,
    ) -> Mapping[TopicPartition, Future[ListOffsetsResultInfo]]: ...


def _accepts(server: str) -> bool:
    host, _, port = server.strip().rpartition("://")[2].rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS):
            return True
    except (OSError, ValueError):
        return False


def _earliest() -> OffsetSpec:
    return cast("OffsetSpec", OffsetSpec.earliest())


def _latest() -> OffsetSpec:
    return cast("OffsetSpec", OffsetSpec.latest())


def _new_topic(spec: TopicSpec) -> NewTopic:
    return NewTopic(
        spec.name,
        num_partitions=spec.partitions,
        replication_factor=-1,  # as the broker is set: one embedded, more elsewhere
        config={"retention.ms": str(spec.retention_days * DAY_MS)},
    )


def bootstrap_of(settings: Settings) -> str:

    if settings.bootstrap_servers:
        Topics(settings.bootstrap_servers).refuse_another_cluster()
        return settings.bootstrap_servers
    raise UnavailableError(
        "no broker is running",
        why="BROKER=embedded, and no running broker has written its address",
        fix="start it with `headgate local up`",
    )
