"""The kinds of job that an engine can carry out."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from headgate.core.engine.context import Job
from headgate.filters.router.replay import run_replay
from headgate.filters.router.router import run_router
from headgate.maintenance.maintain import run_maintain
from headgate.pipeline.backfill import run_backfill
from headgate.pipeline.jobs_bronze import run_bronze
from headgate.pipeline.jobs_silver import run_silver
from headgate.quality.job.quality import run_quality
from headgate.reconcile.job.reconcile import run_reconcile

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
