"""Reconciled pairs: two topics, a job, and the verdicts they must have by the pure function alone."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from tests.support.oracle import Record, read_topic
from tests.support.pipeline import MORNING, Pipeline, ProducerRecord, create_topic, produce

from headgate.core.engine.batch import Faults
from headgate.core.engine.submit import AS_DECLARED
from headgate.core.ledger.model import RunOptions
from headgate.quality.spec.reconcile_checks import Limits
from headgate.reconcile.decision_table import judge
from headgate.reconcile.state import (
    ACTIONS,
    DELETE,
    UPSERT,
    Reading,
    Side,
    State,
    merge_all,
    of_message,
)

LANES = 2  # partitions over which the messages of one set are spread
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
RULE_SET = """
version: 2
metadata: {env: test, pipeline: tests}
metrics: {namespace: dq.test, window: 10 SECONDS}
tables:
  - name: %(name)s
    pk: pk
    sources:
      onprem: {topic: %(onprem)s, dlq_topic: %(onprem)s-dlq, table: %(name)s_onprem, dc: onprem, alias: t1,
               columns: {event_id: STRING, action: STRING, hash_onprem: STRING, hash_version: INT,
                         event_ts: TIMESTAMP(3)},
               pk_path: "partitionColumns[type='PK'].value", event_time: event_ts, watermark: 5 SECONDS}
      cloud: {topic: %(cloud)s, dlq_topic: %(onprem)s-dlq, table: %(name)s_cloud, dc: azure, alias: t2,
              columns: {pk: STRING, hash_cloud: STRING, hash_version: INT, cloud_ts: TIMESTAMP(3)},
              event_time: cloud_ts}
    hash: {onprem_field: hash_onprem, cloud_field: hash_cloud}
    reconcile: {window: %(window)s, grace: %(grace)s, horizon: %(horizon)s, hash_version: hash_version}
"""
TIMES = {"window": "10 MINUTES", "grace": "5 MINUTES", "horizon": "1 HOUR"}
# What a run must not change: all of a verdict that is no time of judging.
VERDICT = (
    "pk, dq_status, provisional, settled, rollup, hash_onprem, hash_cloud, late, stale, conflict, id,"
    " unix_micros(onprem_version) AS onprem_version, unix_micros(cloud_version) AS cloud_version,"
    " unix_micros(onprem_read_at) AS onprem_read_at, unix_micros(cloud_read_at) AS cloud_read_at,"
    " unix_micros(deadline) AS deadline"
)


@dataclass(frozen=True)
class Message:
    """A message for one side and partition."""

    side: Side
    sent: ProducerRecord


def digest(number: int) -> str:
    return f"{number:064x}"


def onprem(
    key: str,
    version: float = 0,
    number: int = 1,
    read: float | None = None,
    partition: int = 0,
    action: str | None = None,
    hash_version: int | None = 2,
) -> Message:
    """A message of the on-prem side; times are seconds after MORNING."""
    value: dict[str, Any] = {"event_id": f"e-{key}", "hash_onprem": digest(number)}
    value |= {"action": action} if action else {}
    value |= {"hash_version": hash_version} if hash_version else {}
    value |= {
        "partitionColumns": [{"type": "PK", "value": key}],
        "event_ts": timestamp_text(version),
    }
    sent = ProducerRecord(
        json.dumps(value).encode(), key.encode(), (), partition, stamp(version, read)
    )
    return Message("onprem", sent)


def cloud(
    key: str,
    version: float = 0,
    number: int | None = 1,
    read: float | None = None,
    partition: int = 0,
    hash_version: int | None = 2,
) -> Message:
    """A message of the cloud side; without a number it has no row."""
    found = digest(number) if number is not None else None
    value = {"pk": key, "hash_cloud": found, "hash_version": hash_version}
    value |= {"cloud_ts": timestamp_text(version)}
    sent = ProducerRecord(
        json.dumps(value).encode(), key.encode(), (), partition, stamp(version, read)
    )
    return Message("cloud", sent)


def tombstone(side: Side, key: str, read: float = 0, partition: int = 0) -> Message:
    return Message(side, ProducerRecord(None, key.encode(), (), partition, stamp(read, None)))


def stamp(version: float, read: float | None) -> int:
    return MORNING + round(1000 * (version if read is None else read))


def timestamp_text(seconds: float) -> str:
    at = EPOCH + timedelta(milliseconds=MORNING + round(1000 * seconds))
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


class Pair:
    """The reconcile job of a pipeline: its name is the table's, its topic the first side's."""

    def __init__(self, pipeline: Pipeline, partitions: int = LANES, /, **times: str) -> None:
        self.pipeline, self.name = pipeline, pipeline.name
        self.job = f"reconcile-{pipeline.name}"
        self.topics: Mapping[Side, str] = {"onprem": pipeline.topic, "cloud": f"{self.name}-cloud"}
        create_topic(self.bootstrap, self.topics["cloud"], partitions, 1_048_588)
        self.declare(**times)

    @property
    def bootstrap(self) -> str:
        return str(self.pipeline.settings.bootstrap_servers)

    def declare(self, **times: str) -> None:
        folder = self.pipeline.settings.root / "rules"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        text = RULE_SET % {**TIMES, **times, **self.topics, "name": self.name}
        (folder / f"{self.name}.yml").write_text(text)

    def send(self, *messages: Message) -> None:
        for side, topic in self.topics.items():
            produce(self.bootstrap, topic, [m.sent for m in messages if m.side == side])

    def process(self, faults: Faults | None = None, request: RunOptions = AS_DECLARED) -> None:
        self.pipeline.process("reconcile", faults, request)

    def sql(self, statement: str) -> list[Any]:
        return self.pipeline.session.sql(statement.replace("{t}", self.name)).collect()

    def verdicts(self) -> dict[str, tuple[Any, ...]]:
        """Every key with its verdict now, by the view that anybody reads."""
        found = self.sql(f"SELECT {VERDICT} FROM dq_results_{{t}}")
        assert len({row["pk"] for row in found}) == len(found)
        return {row["pk"]: tuple(row) for row in found}

    def statuses(self) -> dict[str, str]:
        return {pk: str(row[1]) for pk, row in self.verdicts().items()}

    def last_published(self) -> dict[str, str]:
        """The last published status of each key, by the results table."""
        last = "max_by(dq_status, struct(processing_time, settled)) AS dq_status"
        found = self.sql(f"SELECT pk, {last} FROM lake.dq.results_{{t}} GROUP BY pk")
        return {row["pk"]: str(row["dq_status"]) for row in found}

    def expected(self, limits: Limits | None = None) -> dict[str, tuple[Any, ...]]:
        """The verdicts of all keys, computed from the topics alone."""
        at, limits = datetime.now(UTC), limits or Limits()
        found = (judge(state, at, limits) for state in self.states().values())
        return {
            v.pk: (
                v.pk, v.status, v.provisional, v.settled, v.rollup, v.hash_onprem, v.hash_cloud,
                v.late, v.stale, v.conflict, v.id_in(self.name), micros(v.onprem_version), micros(v.cloud_version),
                micros(v.onprem_read_at), micros(v.cloud_read_at), micros(v.deadline),
            )
            for v in found
        }  # fmt: skip

    def states(self) -> dict[str, State]:
        parts: defaultdict[str, list[State]] = defaultdict(list)
        for side, topic in self.topics.items():
            for record in read_topic(self.bootstrap, topic):
                found = parse_state(side, record)
                if found is not None:
                    parts[found.pk].append(found)
        return {pk: merge_all(states) for pk, states in parts.items()}

    def outcomes(self) -> dict[str, int]:
        return self.pipeline.outcomes("reconcile")

    def counters(self) -> dict[str, int]:
        counts = self.pipeline.store.rule_counts(self.job)
        return {
            c.rule.removeprefix("counted_"): c.n for c in counts if c.rule.startswith("counted_")
        }


def parse_state(side: Side, record: Record) -> State | None:
    """The state that one message stands for; None when it takes no part."""
    read_at = EPOCH + timedelta(milliseconds=record.timestamp_ms)
    place = (record.partition, record.offset)
    if record.value is None:
        if record.key is None:
            return None
        found = Reading(read_at, *place, None, None, DELETE, read_at)
        return of_message(side, record.key.decode(), found)
    try:
        value = json.loads(record.value)
        assert isinstance(value, dict)
    except (ValueError, AssertionError):
        return None
    columns = value.get("partitionColumns") or []
    keys = [c.get("value") for c in columns if c.get("type") == "PK"]
    key = (keys or [None])[0] if side == "onprem" else value.get("pk")
    action = (value.get("action") or UPSERT) if side == "onprem" else None
    if key is None or (side == "onprem" and action not in ACTIONS):
        return None
    at = value["event_ts" if side == "onprem" else "cloud_ts"]
    found = Reading(
        datetime.fromisoformat(at), *place, value.get(f"hash_{side}"), value.get("hash_version"),
        action, read_at,
    )  # fmt: skip
    return of_message(side, str(key), found)


def micros(at: datetime | None) -> int | None:
    return None if at is None else (at - EPOCH) // timedelta(microseconds=1)


def random_messages(seed: int, keys: int, again: float = 0.0, group: int = 0) -> list[Message]:
    """Messages of both sides with every kind of defect; `again` is the share that is sent twice.

    A group has keys and partitions of its own, and otherwise the same messages as any other.
    """
    rng = Random(seed)
    made: list[Message] = []
    for number in range(keys):
        made += _of_key(rng, f"g{group}-{number}", LANES * group)
    standing = _standing(made)
    repeated = [message for message in made if rng.random() < again and message in standing]
    return [*made, *repeated]


def _standing(messages: Sequence[Message]) -> list[Message]:
    """Those whose version says nothing else, or says this at its greatest partition and offset.

    If another were sent again, it would be the last word.
    """
    last: dict[object, Message] = {}
    for message in sorted(messages, key=lambda m: m.sent.partition or 0):
        last[_version(message)] = message
    return [m for m in messages if _content(m) == _content(last[_version(m)])]


def without_duplicates(messages: Sequence[Message]) -> int:
    """How many there are if those of one key, version and hash count as one."""
    return len(
        {(_version(m), json.loads(m.sent.value or b"{}").get(f"hash_{m.side}")) for m in messages}
    )


def _version(message: Message) -> object:
    value = json.loads(message.sent.value or b"{}")
    at = value.get("event_ts") or value.get("cloud_ts") or message.sent.timestamp
    return message.side, message.sent.key, at


def _content(message: Message) -> object:
    value = json.loads(message.sent.value or b"{}")
    deleted = not value or value.get("action") == DELETE
    return value.get(f"hash_{message.side}"), deleted, value.get("hash_version")


def _of_key(rng: Random, key: str, lane: int) -> list[Message]:
    found: list[Message] = []
    # Some pairs lie far apart: in other windows of the horizon, and further apart than the window.
    at = rng.uniform(0, 7_000)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        at += rng.uniform(0, 30)
        number, said = rng.choice([1, 1, 1, 2]), len(found)
        read = round(at, 3) + rng.choice([0, 1, 5])
        # Some clocks run ahead, so that an earlier window has versions from beyond its end.
        version = round(at, 3) + rng.choice([0, 0, 0, 0, 0, 0, 0, 7_200])
        if rng.random() < 0.9:
            action = rng.choice(
                [None, "CREATE", "UPDATE", "DELETE"] if rng.random() < 0.3 else [None]
            )
            where, hash_version = lane + rng.randrange(LANES), rng.choice([2, 2, 2, 1])
            found.append(onprem(key, version, number, read, where, action, hash_version))
        if rng.random() < 0.85:
            late = rng.choice([0, 2, 20, 700, 3_700])
            absent = rng.random() < 0.1
            other = None if absent else (number if rng.random() < 0.8 else 3)
            where = lane + rng.randrange(LANES)
            found.append(cloud(key, version, other, read + late, where))
        if len(found) > said and rng.random() < 0.15:
            where = lane + rng.randrange(LANES)
            found.append(_in_conflict(rng, key, version, number, read + 3, where))
        if rng.random() < 0.05:
            side: Side = rng.choice(["onprem", "cloud"])
            found.append(tombstone(side, key, read + 1, lane + rng.randrange(LANES)))
    return found


def _in_conflict(
    rng: Random, key: str, version: float, number: int, read: float, where: int
) -> Message:
    """A version that says something else: another hash, a delete with its hash, another contract."""
    kind = rng.choice(["onprem", "cloud", "deleted", "skewed"])
    if kind == "onprem":
        return onprem(key, version, number + 5, read, where)
    if kind == "deleted":
        return onprem(key, version, number, read, where, DELETE)
    other = (number + 5, 2) if kind == "cloud" else (number, 1)
    return cloud(key, version, other[0], read, where, other[1])


def split_messages(rng: Random, messages: Sequence[Message], count: int) -> list[list[Message]]:
    """The messages in so many parts, shuffled so that only each partition keeps its order.

    So every record has the offset that it has in any other order.
    """
    lanes: defaultdict[tuple[str, int | None], list[Message]] = defaultdict(list)
    for message in messages:
        lanes[message.side, message.sent.partition].append(message)
    mixed: list[Message] = []
    while lanes:
        lane = rng.choice(sorted(lanes, key=str))
        take = rng.randint(1, 1 + len(lanes[lane]) // 2)
        mixed += lanes[lane][:take]
        lanes[lane] = lanes[lane][take:]
        if not lanes[lane]:
            del lanes[lane]
    at = sorted(rng.sample(range(1, len(mixed)), count - 1))
    return [mixed[a:b] for a, b in zip([0, *at], [*at, len(mixed)], strict=True)]
