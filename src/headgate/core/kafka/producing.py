"""How everything of ours writes to Kafka: once, in order, acknowledged by all replicas."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import KafkaError, Producer

Setting = str | int | float | bool | Callable[[KafkaError], None]


def producer(
    bootstrap: str,
    seconds_to_deliver: float,
    linger_ms: int,
    more: dict[str, Setting] | None = None,
) -> object:
    """A producer; those who use it say which of its calls, since the library leaves types open."""
    settings: dict[str, Setting] = {
        "bootstrap.servers": bootstrap,
        "enable.idempotence": True,
        "acks": "all",
        "compression.type": "lz4",
        "linger.ms": linger_ms,
        "partitioner": "murmur2_random",  # as Java clients: a key has one partition for all
        "message.timeout.ms": int(seconds_to_deliver * 1000),
        "reconnect.backoff.max.ms": 1000,
        "log_level": 0,  # it would write refused connections to stderr
        **(more or {}),
    }
    return Producer(settings)
