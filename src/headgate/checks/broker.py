"""Asks the broker what it has of a dataset's topic, and counts it once more."""

from __future__ import annotations

from dataclasses import replace

from headgate.checks.facts import Evidence
from headgate.checks.recount import recount
from headgate.checks.topic import TopicEvidence
from headgate.engine.topics import TopicGaps, Topics
from headgate.errors import HeadgateError
from headgate.settings import Settings


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


def counted_again(settings: Settings, evidence: Evidence, *, however_many: bool) -> Evidence:
    """The evidence with the topic's records counted once more, where the broker has them."""
    if evidence.confirmed is None or not evidence.bronze_ledger:
        return evidence
    found = recount(
        settings.need("bootstrap_servers"),
        evidence.topic,
        evidence.bronze_ledger,
        evidence.confirmed,
        however_many=however_many,
    )
    return replace(evidence, recount=found)
