"""What maintenance does unless it is told otherwise; the help of its commands says it too."""

from __future__ import annotations

from datetime import timedelta

# The tables of all rule sets and pairs; each of them has a role of its own, as `dq.states_business`.
DQ = "dq"
TABLES = ("bronze", "silver", "dead-letters", DQ)
COMPACTED = ("silver", DQ)
KEEP = 10
OLDER_THAN, ORPHANS_OLDER_THAN = timedelta(days=7), timedelta(days=3)
# Iceberg refuses to look for younger ones: they may belong to a write that is under way.
ORPHANS_AT_LEAST = timedelta(hours=24)


def family(role: str) -> str:
    """What is asked for where this role is meant."""
    return role.partition(".")[0]
