"""The kinds of job that an engine can carry out."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from headgate.engine.context import Job
from headgate.jobs.backfill import run_backfill
from headgate.jobs.bronze import run_bronze
from headgate.jobs.maintain import run_maintain
from headgate.jobs.quality import run_quality
from headgate.jobs.reconcile import run_reconcile
from headgate.jobs.replay import run_replay
from headgate.jobs.router import run_router
from headgate.jobs.silver import run_silver

JOBS: Mapping[str, Job] = MappingProxyType(
    {
        "bronze": run_bronze,
        "silver": run_silver,
        "backfill": run_backfill,
        "maintain": run_maintain,
        "quality": run_quality,
        "reconcile": run_reconcile,
        "router": run_router,
        "replay": run_replay,
    }
)
