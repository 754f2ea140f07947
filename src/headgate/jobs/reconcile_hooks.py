"""What goes on beside the batches of a reconciled pair, such as sweeping keys past their deadline."""

from __future__ import annotations

from typing import Protocol

from headgate.engine.context import RunContext
from headgate.jobs.reconcile_audit import Audit
from headgate.jobs.reconcile_standing import StandingHook
from headgate.jobs.reconcile_sweep import Sweep
from headgate.jobs.reconcile_target import ReconcileTarget
from headgate.spec.reconcile import Reconcile
from headgate.store.model import LedgerRow


class Hook(Protocol):
    """Called by the run, never while a batch is under way."""

    def tick(self) -> None:
        """Now and then between batches, about every second."""
        ...

    def settled(self, row: LedgerRow) -> None:
        """A batch has its outcome."""
        ...

    def ended(self) -> None:
        """A batch run has read all there was."""
        ...


def hooks(context: RunContext, target: ReconcileTarget) -> tuple[Hook, ...]:
    """All that this run does beside its batches."""
    declared = target.revisions.of(context.run.revision).rule_set.table(target.name).reconcile
    told = declared or Reconcile()
    return (
        Sweep(context, target),
        Audit(context, target, told),
        StandingHook(context, target, told),
    )
