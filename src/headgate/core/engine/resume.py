"""Before a topic is read: does the checkpoint join up with the topic and with the table?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headgate.core.engine.engine_checkpoint import Checkpoint, Start
from headgate.core.kafka.expiry import refuse_expired, refuse_shorter
from headgate.core.kafka.followed import Followed
from headgate.core.lake.reach import Reached
from headgate.core.ledger.store_model import Intent
from headgate.errors import BatchRefusedError


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
