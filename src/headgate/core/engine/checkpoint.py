"""A query's checkpoint: the offsets of its batches, and whether it joins up with topic and table.

Layout of Spark 4.1: `metadata`, `offsets/<batch>`, `commits/<batch>`, `sources/<n>/0` (where it began).
An entry of the offset log has a version, the batch's metadata, and a line for each source. A
checkpoint that would repeat or skip records is refused; a repair moves it aside and begins a new one
behind all that is committed or announced.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from headgate.core.kafka.offsets import Followed, refuse_expired, refuse_shorter
from headgate.core.lake.spark import Files
from headgate.core.lake.table import Reached
from headgate.core.ledger.model import Intent
from headgate.core.ledger.ranges import ALONE, side_key
from headgate.errors import BatchRefusedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


START = "headgate-start.json"
# What an entry has in the place of a source that has said nothing yet.
SILENT = "-"
HEAD = 2
Offsets = Mapping[str, int]


@dataclass(frozen=True)
class Start:
    """Where a new checkpoint begins, the topic it was made for, and the shape of its state."""

    topic_id: str
    offsets: Offsets
    shape: str = ""


class Checkpoint:
    """One query's checkpoint; `topics` is the one topic it reads, or its topics by side."""

    def __init__(
        self, session: SparkSession, location: str, topics: str | Mapping[str, str]
    ) -> None:
        self.location = location
        self._topics = {ALONE: topics} if isinstance(topics, str) else dict(topics)
        self._files = Files(session, location)

    @property
    def job(self) -> str:
        """Whose checkpoint it is: the folder bears the job's name."""
        return self.location.rsplit("/", 1)[-1]

    @property
    def is_new(self) -> bool:
        return not self._files.exists("metadata") and not self._batches("offsets")

    def begin(self, start: Start) -> None:
        """Note where the first batch starts, before Spark makes the checkpoint its own."""
        told = {"topic": ",".join(self._topics.values()), "topic_id": start.topic_id}
        content = {**told, "offsets": dict(start.offsets), "shape": start.shape}
        self._files.write(START, json.dumps(content, sort_keys=True).encode())

    def start(self) -> Start | None:
        if not self._files.exists(START):
            return None
        content = self._json(START, self._text(START))
        try:
            shape = str(content.get("shape", ""))
            return Start(str(content["topic_id"]), _numbers(content["offsets"]), shape)
        except (KeyError, TypeError, AttributeError, ValueError):
            raise self.damaged(f"{START} does not say where it starts") from None

    def range_of(self, batch_id: int) -> tuple[Offsets, Offsets]:
        """Start and end offsets of a batch; a partition that is new starts at 0."""
        end = self.end_of(batch_id)
        before = self.end_of(batch_id - 1) if batch_id > 0 else self._initial()
        return {key: before.get(key, 0) for key in end}, end

    def end_of(self, batch_id: int) -> Offsets:
        """The end offsets of a batch, from the lines of its sources."""
        name = f"offsets/{batch_id}"
        return self._of_topics(name, self._entry(name, lines=HEAD + len(self._topics))[HEAD:])

    def watermark_of(self, batch_id: int) -> int:
        """The watermark that a batch had, in milliseconds; 0 before there is one."""
        if batch_id < 0:
            return 0
        name = f"offsets/{batch_id}"
        head = self._json(name, self._entry(name, lines=HEAD + len(self._topics))[1])
        return int(cast("int", head.get("batchWatermarkMs", 0)))

    def verify(self) -> Offsets | None:
        """The end of the last announced batch; raises when the log contradicts itself."""
        if self.is_new:
            return None
        if not self._files.exists("metadata"):
            raise self.damaged("the file metadata is missing")
        self._json("metadata", self._text("metadata"))
        announced, done = self._batches("offsets"), self._batches("commits")
        last, committed = max(announced, default=-1), max(done, default=-1)
        if committed not in (last, last - 1):
            raise self.damaged(
                f"the last announced batch is {last}, the last committed one is {committed}"
            )
        if last > 0 and last - 1 not in announced:
            raise self.damaged(f"offsets/{last - 1} is missing")
        if committed >= 0:
            self._entry(f"commits/{committed}", lines=2)
        if last < 0:
            self._initial()
            return None
        self.range_of(last)
        return self.end_of(last)

    def unfinished(self) -> tuple[Offsets, Offsets] | None:
        """The range of the announced batch that is not committed: a query begins with it."""
        last = max(self._batches("offsets"), default=-1)
        return self.range_of(last) if last > max(self._batches("commits"), default=-1) else None

    def last_committed(self) -> Offsets:
        """Where the next batch starts: the end of the last committed batch."""
        done = self._batches("commits")
        return self.end_of(max(done)) if done else self._initial()

    def set_aside(self) -> str:
        """Move the checkpoint away; nothing is deleted."""
        target = f"{self.location}.aside-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
        if self._files.exists(""):
            self._files.move(target)
        return target

    def _initial(self) -> Offsets:
        names = [f"sources/{n}/0" for n in range(len(self._topics))]
        missing = [name for name in names if not self._files.exists(name)]
        if not missing:
            texts = (self._text(name) for name in names)
            return self._of_topics("sources", [text[text.find("{") :] for text in texts])
        start = self.start()
        if start is None:
            raise self.damaged(f"{missing[0]} is missing")
        return start.offsets

    def _batches(self, folder: str) -> list[int]:
        return [int(name) for name in self._files.names(folder) if name.isdigit()]

    def _of_topics(self, name: str, lines: Sequence[str]) -> Offsets:
        """The offsets in these lines, each of which holds those of one topic."""
        told = [self._json(name, line) for line in lines if line != SILENT]
        return {
            side_key(side, partition): offset
            for side, topic in self._topics.items()
            for partition, offset in self._of_topic(name, topic, told).items()
        }

    def _of_topic(self, name: str, topic: str, told: Sequence[Mapping[str, object]]) -> Offsets:
        try:
            return _numbers(next(line[topic] for line in told if topic in line))
        except (StopIteration, ValueError, TypeError, AttributeError):
            raise self.damaged(f"{name} does not hold the offsets of {topic}") from None

    def _entry(self, name: str, lines: int) -> list[str]:
        """The lines of a log entry, which Spark would otherwise stumble over in its own words."""
        found = self._text(name).splitlines()
        if len(found) < lines or found[0] != "v1":
            raise self.damaged(f"{name} is not a log entry of Spark")
        for line in found[1:]:
            if line != SILENT:
                self._json(name, line)
        return found

    def _text(self, name: str) -> str:
        if not self._files.exists(name):
            raise self.damaged(f"{name} is missing")
        try:
            return self._files.read(name).decode(errors="replace")
        except Exception as error:  # such as a checksum that does not fit
            raise self.damaged(f"{name} cannot be read") from error

    def _json(self, name: str, text: str) -> dict[str, object]:
        try:
            found: object = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise self.damaged(f"{name} is not whole")
        return cast("dict[str, object]", found)

    def damaged(self, why: str) -> BatchRefusedError:
        """The refusal to go on with it."""
        job = self.job
        return BatchRefusedError(
            f"the checkpoint of {job} is damaged",
            why=f"{why} (in {self.location})",
            fix=f"headgate job repair {job}: it goes on from what the table has committed",
        )


def _numbers(value: object) -> dict[str, int]:
    return {str(k): int(cast("int", v)) for k, v in cast("dict[object, object]", value).items()}


def prepare_checkpoint(
    checkpoint: Checkpoint, topic: Followed, reached: Reached | None, job: str, shape: str = ""
) -> None:
    """Begin a new checkpoint, or refuse one that would repeat or skip records."""
    fix = f"headgate job repair {job}: it goes on from what the table has committed"
    announced = checkpoint.verify()
    start = checkpoint.start()
    if start is not None and start.topic_id != topic.topic_id:
        raise BatchRefusedError(
            f"topic {topic.name} was deleted and made again",
            why=f"its id was {start.topic_id}, now it is {topic.topic_id};"
            " or TOPIC named another topic before",
            fix=f"headgate job repair {job}: it starts at the new topic's first record",
        )
    if start is None:
        if reached is not None and reached.source_id == topic.topic_id:
            raise BatchRefusedError(
                f"the checkpoint of {job} is lost",
                why=f"the table has commits up to {dict(reached.end)}, the checkpoint is empty",
                fix=fix,
            )
        checkpoint.begin(Start(topic.topic_id, topic.begin, shape))
        return
    known = [checkpoint.last_committed(), *([announced] if announced else [])]
    end = reached.end if reached and reached.source_id == topic.topic_id else start.offsets
    if not any(same_offsets(end, offsets) for offsets in known):
        raise BatchRefusedError(
            f"the checkpoint of {job} does not join up with its table",
            why=f"the table ends at {dict(end)}, the checkpoint knows "
            + " and ".join(str(dict(offsets)) for offsets in known),
            fix=fix,
        )
    next_ = {**known[0], **end}
    refuse_shorter(topic, next_, job)
    refuse_expired(topic, next_, job)


def goes_on_at(
    topic: Followed, reached: Reached | None, start: Start | None
) -> Mapping[str, int] | None:
    """Where the next batch on this topic begins; None when none of it was ever to be read."""
    if reached is not None and reached.source_id == topic.topic_id:
        return reached.end
    return start.offsets if start is not None and start.topic_id == topic.topic_id else None


def repair_checkpoint(
    checkpoint: Checkpoint,
    topic: Followed,
    reached: Reached | None,
    announced: Iterable[Intent] = (),
    shape: str = "",
) -> tuple[str, Mapping[str, int]]:
    """Set the old checkpoint aside; begin a new one behind all that is committed or announced.

    What is announced and not committed is finished from its intent, before the topic is read.
    """
    aside = checkpoint.set_aside()
    offsets = topic.begin
    if reached is not None and reached.source_id == topic.topic_id:
        offsets = {**offsets, **reached.end}
    for intent in announced:
        offsets = {**offsets, **intent.range.end}
    checkpoint.begin(Start(topic.topic_id, offsets, shape))
    return aside, offsets


def same_offsets(end: Mapping[str, int], offsets: Mapping[str, int]) -> bool:
    """Whether the first says the same of every partition that the second knows."""
    return all(end.get(key, 0) == offset for key, offset in offsets.items())
