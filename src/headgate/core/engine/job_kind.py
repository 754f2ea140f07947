"""Kinds of jobs: a descriptor for each, listed as `module:attribute` in `headgate.app`, loaded on use.

A descriptor says how a job of the kind is named, what a run of it needs, and which function carries
it out. The engine, the commands and the ledger's rebuild ask the descriptor, so that none of them
knows a kind by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from headgate.core.engine.run import Job
from headgate.filters.router.job import run_router
from headgate.filters.router.replay import run_replay
from headgate.maintenance.job import run_maintain
from headgate.pipeline.backfill import run_backfill
from headgate.pipeline.bronze import run_bronze
from headgate.pipeline.silver import run_silver
from headgate.quality.job.run import run_quality
from headgate.reconcile.job.job import run_reconcile

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
