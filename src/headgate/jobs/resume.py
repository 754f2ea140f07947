"""Before a topic is read: does the checkpoint join up with the topic and with the table?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headgate.engine.checkpoint import Checkpoint, Start
from headgate.engine.iceberg import Committed
from headgate.engine.topics import TopicState
from headgate.errors import BatchRefusedError
from headgate.store.model import Intent


def prepare_checkpoint(
    checkpoint: Checkpoint, topic: TopicState, committed: Committed | None, job: str
) -> None:
    """Begin a new checkpoint, or refuse one that would repeat or skip records."""
    fix = f"headgate job repair {job}: it goes on from what the table has committed"
    announced = checkpoint.verify()
    start = checkpoint.start()
    if start is not None and start.topic_id != topic.topic_id:
        raise BatchRefusedError(
            f"topic {topic.name} was deleted and made again",
            why=f"its id was {start.topic_id}, now it is {topic.topic_id}",
            fix=f"headgate job repair {job}: it starts at the new topic's first record",
        )
    if start is None:
        if committed is not None:
            raise BatchRefusedError(
                f"the checkpoint of {job} is lost",
                why=f"the table has commits up to {_words(committed)}, the checkpoint is empty",
                fix=fix,
            )
        checkpoint.begin(Start(topic.topic_id, first_offsets(topic)))
        return
    if committed is None or committed.marker.range.source_id != topic.topic_id:
        return
    end = committed.marker.range.end
    known = [checkpoint.last_committed(), *([announced] if announced else [])]
    if not any(_same(end, offsets) for offsets in known):
        raise BatchRefusedError(
            f"the checkpoint of {job} does not join up with its table",
            why=f"the table ends at {_words(committed)}, the checkpoint knows "
            + " and ".join(str(dict(offsets)) for offsets in known),
            fix=fix,
        )


def repair_checkpoint(
    checkpoint: Checkpoint,
    topic: TopicState,
    committed: Committed | None,
    announced: Iterable[Intent] = (),
) -> tuple[str, Mapping[str, int]]:
    """Set the old checkpoint aside; begin a new one behind all that is committed or announced.

    What is announced and not committed is finished from its intent, before the topic is read.
    """
    aside = checkpoint.set_aside()
    offsets = first_offsets(topic)
    if committed is not None and committed.marker.range.source_id == topic.topic_id:
        offsets = {**offsets, **committed.marker.range.end}
    for intent in announced:
        offsets = {**offsets, **intent.range.end}
    checkpoint.begin(Start(topic.topic_id, offsets))
    return aside, offsets


def first_offsets(topic: TopicState) -> dict[str, int]:
    return {str(partition): offset for partition, offset in topic.begin.items()}


def _same(end: Mapping[str, int], offsets: Mapping[str, int]) -> bool:
    return all(end.get(key, 0) == offset for key, offset in offsets.items())


def _words(committed: Committed) -> str:
    return str(dict(committed.marker.range.end))
