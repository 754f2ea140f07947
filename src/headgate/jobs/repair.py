"""Mending a bronze checkpoint: the table knows how far it was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.compile.fragments import table_name
from headgate.engine.checkpoint import Checkpoint
from headgate.engine.iceberg import ManagedTable
from headgate.engine.lease import EngineLease
from headgate.engine.session import start_session
from headgate.engine.topics import Topics
from headgate.errors import ConflictError, UnavailableError
from headgate.jobs import declaration
from headgate.jobs.requests import job_name
from headgate.jobs.resume import repair_checkpoint
from headgate.settings import Settings
from headgate.store.ops import OpsStore


@dataclass(frozen=True)
class Repaired:
    """Where the job goes on, and where the old checkpoint was put."""

    job: str
    aside: str
    offsets: Mapping[str, int]


def repair_job(settings: Settings, store: OpsStore, dataset: str) -> Repaired:
    """Begin a new checkpoint at the table's committed end; refused while an engine is active."""
    lease = EngineLease.take(store)
    if lease is None:
        raise ConflictError("an engine is active", fix="make down, repair, make up")
    revision = declaration.declared_revision(settings, dataset)
    name, _ = revision.topic_names(settings)
    topic = Topics(settings.need("bootstrap_servers")).describe(name)
    if topic is None:
        raise UnavailableError(f"there is no topic {name}", fix="make create-topics")
    with lease:
        session = start_session(settings)
        try:
            job = job_name("bronze", dataset)
            committed = ManagedTable(session, table_name(revision.bronze_table)).committed(job)
            location = f"{settings.checkpoints.rstrip('/')}/{job}"
            checkpoint = Checkpoint(session, location, name)
            aside, offsets = repair_checkpoint(checkpoint, topic, committed)
        finally:
            session.stop()
    return Repaired(job, aside, offsets)
