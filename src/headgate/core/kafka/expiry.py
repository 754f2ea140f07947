"""Records that left the topic before they were read: counted and refused, never skipped."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.core.kafka.followed import Followed
from headgate.errors import BatchRefusedError

# What Spark says when offsets that it was to read are gone.
DATA_LOSS = ("KAFKA_DATA_LOSS", "OffsetOutOfRangeException", "data may have been lost")


class ExpiredError(BatchRefusedError):
    """Records expired on the topic before a job read them; a person must decide."""

    code = "HG-1003"


def expired(topic: Followed, start: Mapping[str, int]) -> dict[str, int]:
    """Offsets by partition that are gone from the topic, though the next batch starts before them.

    A partition that `start` lacks was added later, and begins at 0.
    """
    behind = {p: begin - start.get(p, 0) for p, begin in topic.begin.items()}
    return {p: count for p, count in behind.items() if count > 0}


def refuse_expired(topic: Followed, start: Mapping[str, int], job: str) -> None:
    """Raise when the next batch of this job would have to skip records."""
    gone = expired(topic, start)
    if gone:
        where = ", ".join(f"partition {p}: {_offsets(topic, p, n)}" for p, n in gone.items())
        raise ExpiredError(
            f"{sum(gone.values()):,} records of {topic.name} expired before {job} read them",
            why=f"the topic no longer has them ({where})",
            fix=f"send them again, or go on without them: headgate job accept-gap {job};"
            " and raise the topic's retention above the longest pause",
        )


def refuse_shorter(topic: Followed, start: Mapping[str, int], job: str) -> None:
    """Raise when the topic ends before what was read: its offsets would be given out again."""
    short = {p: end for p, end in topic.end.items() if end < start.get(p, 0)}
    if short:
        raise BatchRefusedError(
            f"topic {topic.name} ends before what {job} has read from it",
            why=f"it ends at {short}, and the table at {dict(start)}: its broker has lost records",
            fix="restore the topic; or delete it, make it again, send what was lost, then:"
            f" headgate job repair {job}",
        )


def _offsets(topic: Followed, partition: str, count: int) -> str:
    begin = topic.begin[partition]
    return f"offsets {begin - count:,} to {begin - 1:,}"


def is_data_loss(error: BaseException) -> bool:
    return any(sign in str(error) for sign in DATA_LOSS)
