"""What a job has settled, copied to a consumer group. That it fails never fails a batch."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from headgate.core.engine.context import RunContext
from headgate.core.engine.topic_target import TopicTarget
from headgate.core.kafka.followed import Followed, topic_ranges
from headgate.core.kafka.groups import GroupOffsets, group_of
from headgate.core.ledger.store_model import TOPIC_SOURCE, Range
from headgate.errors import HeadgateError

# A group that cannot be written holds a batch for seconds: so long it is then left alone.
PAUSE_SECONDS = 60.0


class GroupOffsetsOf:
    """Follows the settled ranges of one run."""

    def __init__(
        self,
        context: RunContext,
        target: TopicTarget,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._context, self._target, self._clock = context, target, clock
        self._groups: dict[str, GroupOffsets] = {}
        self._failing = False
        self._not_before = 0.0

    def catch_up(self, topic: Followed) -> None:
        """As far as this topic is settled; offsets of one that was made again say nothing of it."""
        settled = self._context.store.settled_range(self._target.job)
        if settled is not None and settled.source_id == topic.topic_id:
            self.follow(settled)

    def follow(self, range_: Range) -> None:
        """The group's offsets become the end of this range, unless that failed just now."""
        if self._clock() < self._not_before:
            return
        try:
            for own in topic_ranges(range_).values():
                self._of(own).write(own.end)
        except HeadgateError as error:
            self._note(error.one_line)
        except Exception as error:  # others read these offsets, we do not
            self._note(str(error) or repr(error))
        else:
            self._note("")

    def close(self) -> None:
        while self._groups:
            self._groups.popitem()[1].close()

    def _of(self, range_: Range) -> GroupOffsets:
        topic = range_.source.removeprefix(TOPIC_SOURCE)
        if topic not in self._groups:
            group = group_of(self._target.job)
            self._groups[topic] = GroupOffsets(self._target.bootstrap, group, topic)
        return self._groups[topic]

    def _note(self, words: str) -> None:
        """Say it once, and keep it for whoever looks at the job."""
        if words:
            self._not_before = self._clock() + PAUSE_SECONDS
        if bool(words) == self._failing:
            return
        self._failing = bool(words)
        self._context.store.mark(group_mark(self._target.job), words)
        if words:
            logging.getLogger("headgate").warning("%s: %s", self._target.job, words)


def group_mark(job: str) -> str:
    """The mark that says why the group's offsets are behind; empty when they are not."""
    return f"group-offsets:{job}"
