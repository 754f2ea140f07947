"""What a quality job says of itself in the ops store, beside its ledger."""

from __future__ import annotations


def running_mark(job: str) -> str:
    """The revision by which the job judges now."""
    return f"rules-running:{job}"
