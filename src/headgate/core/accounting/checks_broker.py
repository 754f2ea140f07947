"""Asks the broker what it has of a dataset's topic, and counts it once more."""

from __future__ import annotations

from headgate.config.settings import Settings
from headgate.core.accounting.topic import TopicEvidence
from headgate.core.kafka.engine_topics import TopicGaps, Topics
from headgate.errors import HeadgateError


def ask_broker(settings: Settings, topic: str) -> tuple[TopicEvidence | None, str]:
    """What the broker says of the topic, or why it says nothing."""
    if not settings.bootstrap_servers:
        return None, "no broker is running"
    topics = Topics(settings.bootstrap_servers, timeout=settings.http_timeout)
    try:
        state = topics.describe(topic)
    except HeadgateError as error:
        return None, error.why or error.what
    if state is None:
        return None, f"the broker has no topic {topic}"
    gaps = _gaps(topics, topic)
    begin = {str(partition): offset for partition, offset in state.begin.items()}
    end = {str(partition): offset for partition, offset in state.end.items()}
    return TopicEvidence(state.topic_id, begin, end, gaps.compaction, gaps.transactions), ""


def _gaps(topics: Topics, topic: str) -> TopicGaps:
    try:
        return topics.gaps(topic)
    except HeadgateError:  # who may read a topic need not be allowed to see how it is set up
        return TopicGaps(compaction=False, transactions=False)
