"""Asking for a maintenance run and waiting for it: its plan, and what it did."""

from __future__ import annotations

from collections.abc import Callable

from headgate.config.settings import Settings
from headgate.core.engine.submit import ask_for, raise_unless_finished, wait_for
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.store_model import Run
from headgate.core.sql.compile_fragments import job_name
from headgate.maintenance.maintain import kept_plan, kept_report
from headgate.maintenance.maintain_plan import Plan, Report, Wanted


def maintained(
    settings: Settings,
    store: OpsStore,
    dataset: str,
    wanted: Wanted,
    carried_out: Callable[[Run], Run] | None = None,
) -> tuple[Plan, Report | None]:
    """What was planned and done; without `carried_out` the running engine is waited for.

    The command line refuses an age below an hour; `wanted` may name any, and what jobs still need
    stays even then.
    """
    run = ask_for(settings, store, job_name("maintain", dataset), "batch", wanted.options())
    ended = carried_out(run) if carried_out else wait_for(store, run, lambda _: None)
    raise_unless_finished(ended)
    job, number = ended.job, ended.number
    return kept_plan(store, job, number), kept_report(store, job, number)
