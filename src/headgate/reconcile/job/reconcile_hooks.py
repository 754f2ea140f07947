"""What goes on beside the batches of a reconciled pair, and those of it that tell others."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Protocol

from headgate.core.engine.context import RunContext
from headgate.core.ledger.store_model import LedgerRow
from headgate.errors import LeaseLostError, UnavailableError
from headgate.quality.revision import deployed
from headgate.quality.spec.reconcile_section import Reconcile
from headgate.reconcile.job.reconcile_audit import Audit
from headgate.reconcile.job.reconcile_standing import StandingHook
from headgate.reconcile.job.reconcile_target import ReconcileTarget

FIRST_PAUSE, LONGEST_PAUSE = 2.0, 60.0


class Aside(Protocol):
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


class Hook(Aside, Protocol):
    """One that tells others."""

    @property
    def what(self) -> str:
        """In words, what it tells."""
        ...


def hooks(context: RunContext, target: ReconcileTarget) -> tuple[Aside, ...]:
    """All that tells others beside the batches of this run."""
    declared = Declared(context, target)
    others = (Audit(context, target, declared), StandingHook(context, target, declared))
    return tuple(Telling(context, hook) for hook in others)


class Declared:
    """What is declared beside the rules, as it is deployed now: a run takes it over between batches."""

    def __init__(self, context: RunContext, target: ReconcileTarget) -> None:
        self._context, self._target = context, target
        self._known: tuple[str, Reconcile] | None = None

    def __call__(self) -> Reconcile:
        context, target = self._context, self._target
        revision = deployed(context.store, target.name) or context.run.revision
        if self._known is None or self._known[0] != revision:
            table = target.revisions.of(revision).rule_set.table(target.name)
            self._known = revision, table.reconcile or Reconcile()
        return self._known[1]


class Telling:
    """A hook that tells others what was found: if it cannot, the run says so and asks it again later.

    A stream waits the longer, the more often it failed. A batch run has no later: it fails, and what it
    owes is told by the next run.
    """

    def __init__(
        self, context: RunContext, hook: Hook, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._context, self._hook, self._clock = context, hook, clock
        self._failures, self._next = 0, float("-inf")

    def tick(self) -> None:
        if self._clock() >= self._next:
            self._tried(self._hook.tick)

    def settled(self, row: LedgerRow) -> None:
        if self._clock() >= self._next:
            self._tried(lambda: self._hook.settled(row))

    def ended(self) -> None:
        try:
            self._hook.ended()
        except LeaseLostError:
            raise
        except Exception as error:
            raise self._untold(error) from error

    def _tried(self, tell: Callable[[], None]) -> None:
        try:
            tell()
        except LeaseLostError:
            raise
        except Exception as error:  # a topic may be away; batches go on all the same
            self._wait(self._untold(error))
        else:
            self._go_on()

    def _wait(self, trouble: UnavailableError) -> None:
        self._next = self._clock() + min(FIRST_PAUSE * 2**self._failures, LONGEST_PAUSE)
        self._failures += 1
        self._context.waits(trouble)
        logging.getLogger("headgate").warning("%s", trouble.one_line)

    def _go_on(self) -> None:
        if self._failures:
            self._failures, self._next = 0, float("-inf")
            self._context.goes_on()

    def _untold(self, error: Exception) -> UnavailableError:
        job = self._context.run.job
        return UnavailableError(
            f"{job} cannot tell {self._hook.what}",
            why=str(error).partition("\n")[0],
            fix=f"see that its topic can be written; {job} tells what it owes by itself, or when it"
            " runs next",
        )
