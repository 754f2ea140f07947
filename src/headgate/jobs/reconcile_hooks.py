"""What goes on beside the batches of a reconciled pair, such as sweeping keys past their deadline."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from headgate.engine.context import RunContext
from headgate.errors import LeaseLostError
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
    others = (Audit(context, target, told), StandingHook(context, target, told))
    return (Sweep(context, target), *(Telling(hook) for hook in others))


class Telling:
    """A hook that tells others what was found: if it cannot, it says so and is asked again later."""

    def __init__(self, hook: Hook) -> None:
        self._hook = hook

    def tick(self) -> None:
        self._tried(self._hook.tick)

    def settled(self, row: LedgerRow) -> None:
        self._tried(lambda: self._hook.settled(row))

    def ended(self) -> None:
        self._tried(self._hook.ended)

    def _tried(self, tell: Callable[[], None]) -> None:
        try:
            tell()
        except LeaseLostError:
            raise
        except Exception as error:  # a topic may be away; batches go on all the same
            words = str(error).partition("\n")[0]
            logging.getLogger("headgate").warning("%s: %s", type(self._hook).__name__, words)
