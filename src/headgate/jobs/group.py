"""What a job has settled, copied to a consumer group. That it fails never fails a batch."""

from __future__ import annotations

import logging

from headgate.engine.context import RunContext
from headgate.engine.groups import GroupOffsets, group_of
from headgate.errors import HeadgateError
from headgate.jobs.bronze_batch import BronzeTarget
from headgate.store.model import Range


class GroupOffsetsOf:
    """Follows the settled ranges of one run."""

    def __init__(self, context: RunContext, target: BronzeTarget) -> None:
        self._context, self._target = context, target
        self._group: GroupOffsets | None = None
        self._failing = False

    def follow(self, range_: Range | None) -> None:
        """The group's offsets become the end of this range."""
        if range_ is None:
            return
        try:
            self._of(range_).write(range_.end)
        except HeadgateError as error:
            self._note(error.one_line)
        except Exception as error:  # others read these offsets, we do not
            self._note(str(error) or repr(error))
        else:
            self._note("")

    def close(self) -> None:
        if self._group is not None:
            self._group.close()
            self._group = None

    def _of(self, range_: Range) -> GroupOffsets:
        if self._group is None:
            topic = range_.source.removeprefix("kafka:")
            group = group_of(self._target.job)
            self._group = GroupOffsets(self._target.bootstrap, group, topic)
        return self._group

    def _note(self, words: str) -> None:
        """Say it once, and keep it for whoever looks at the job."""
        if bool(words) == self._failing:
            return
        self._failing = bool(words)
        self._context.store.mark(group_mark(self._target.job), words)
        if words:
            logging.getLogger("headgate").warning("%s: %s", self._target.job, words)


def group_mark(job: str) -> str:
    """The mark that says why the group's offsets are behind; empty when they are not."""
    return f"group-offsets:{job}"
