"""Kafka's admin clients, one for each broker address, and the identity of the embedded broker.

An admin client is kept as long as the process lives. A client must not be collected while it still waits for a broker: the library's own thread would
then run the collector, end itself, and take the whole process down. So none ever is.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from confluent_kafka.admin import AdminClient

from headgate.config.env_files import DEFAULT_PROFILE
from headgate.config.settings import embedded_broker


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


def read_cluster_id(folder: Path) -> str | None:
    """The cluster id in the data of an embedded broker; None when it was never started."""
    try:
        lines = (folder / "data" / "meta.properties").read_text("utf-8").splitlines()
    except OSError:
        return None
    return next((line.partition("=")[2] for line in lines if line.startswith("cluster.id=")), None)


def expected_cluster_id(bootstrap: str) -> str | None:
    """The id that the broker at this address must have; None for a broker that is not embedded."""
    folder = embedded_broker(bootstrap)
    return read_cluster_id(folder) if folder else None


def advise_when_away(bootstrap: str) -> str:
    """What a person can do about a broker that does not answer."""
    if embedded_broker(bootstrap):
        return "start it with `headgate local up`"
    return (
        "start that broker or correct BOOTSTRAP_SERVERS; "
        f"`headgate config select {DEFAULT_PROFILE}` uses an embedded one"
    )
