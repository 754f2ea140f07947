"""The sinks of metrics that the settings ask for."""

from __future__ import annotations

from headgate.config.settings import Settings
from headgate.core.kafka.engine_topics import Topics, TopicSpec
from headgate.core.metrics.dogstatsd import DogStatsd
from headgate.core.metrics.kafka import KafkaSink
from headgate.core.metrics.metrics_sinks import Sink
from headgate.core.metrics.push import HttpPush

# One partition: the windows of all tables in one order.
PARTITIONS, RETENTION_DAYS = 1, 7


def sinks_of(settings: Settings) -> tuple[Sink, ...]:
    """Kafka wherever there is a broker; DogStatsD and HTTP where an address is given."""
    found: list[Sink] = []
    if settings.bootstrap_servers:
        found.append(_kafka(settings.bootstrap_servers, settings.metrics_topic))
    if settings.dogstatsd_address:
        found.append(DogStatsd(settings.dogstatsd_address))
    if settings.metrics_push_url:
        url, token = settings.metrics_push_url, settings.metrics_push_token
        found.append(HttpPush(url, token, settings.http_timeout))
    return tuple(found)


def _kafka(bootstrap: str, topic: str) -> KafkaSink:
    spec = TopicSpec(topic, PARTITIONS, RETENTION_DAYS)

    def make() -> None:
        topics = Topics(bootstrap)
        topics.need()
        topics.create([spec])

    return KafkaSink(bootstrap, topic, make)
