"""Kafka's admin clients, one for each broker address, kept as long as the process lives.

A client must not be collected while it still waits for a broker: the library's own thread would
then run the collector, end itself, and take the whole process down. So none ever is.
"""

from __future__ import annotations

from functools import cache

from confluent_kafka.admin import AdminClient


@cache
def shared_admin(bootstrap: str, timeout: float) -> AdminClient:
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": bootstrap,
        "socket.timeout.ms": int(timeout * 1000),
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 500,
        "log_level": 0,  # it would write refused connections to stderr
    }
    return AdminClient(settings)
