"""CQL sessions on an embedded Cassandra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headgate.local.cassandra import LOCAL_DC

KEYSPACE = "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"


@contextmanager
def open_session(port: int) -> Iterator:
    """A session of the DataStax driver on a loopback node; its cluster is shut down at the end."""
    from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
    from cassandra.policies import DCAwareRoundRobinPolicy

    profile = ExecutionProfile(DCAwareRoundRobinPolicy(local_dc=LOCAL_DC))
    cluster = Cluster(
        ["127.0.0.1"],
        port=port,
        protocol_version=5,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
    )
    try:
        yield cluster.connect()
    finally:
        cluster.shutdown()
