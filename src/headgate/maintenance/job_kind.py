"""The job kind `maintain`: maintenance of the tables of one dataset, as a batch run."""

from __future__ import annotations

from headgate.config.settings import Settings
from headgate.core.engine.job_kind import KINDS, DeclaredRun, JobKind, need_default_dataset
from headgate.core.ledger.ops_store import OpsStore
from headgate.maintenance.plan import MaintenanceRunOptions


def declare_run(settings: Settings, store: OpsStore, dataset: str, mode: str) -> DeclaredRun:
    """The revision of the dataset, which names its tables."""
    return KINDS["silver"].declare_run(settings, store, dataset, mode)


MAINTAIN = JobKind(
    name="maintain",
    subject="dataset",
    run="headgate.maintenance.job:run_maintain",
    declare_run=declare_run,
    options=MaintenanceRunOptions,
    default_subject=need_default_dataset,
)
