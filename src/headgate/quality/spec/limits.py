"""How long sides wait for each other."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from headgate.quality.spec.reconcile_section import GRACE, HORIZON, WINDOW, Reconcile


@dataclass(frozen=True)
class Limits:
    """Sides further apart than `window` are late; the deadline is `grace` beyond it."""

    window: timedelta = WINDOW
    grace: timedelta = GRACE
    horizon: timedelta = HORIZON

    @property
    def wait(self) -> timedelta:
        return self.window + self.grace


def limits_of(declared: Reconcile) -> Limits:
    return Limits(declared.window, declared.grace, declared.horizon)
