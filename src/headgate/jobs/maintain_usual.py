"""What maintenance does unless it is told otherwise; the help of its commands says it too."""

from __future__ import annotations

from datetime import timedelta

from headgate.engine.small_files import MIN_FILES

__all__ = ["KEEP", "MIN_FILES", "OLDER_THAN", "ORPHANS_AT_LEAST", "ORPHANS_OLDER_THAN", "TABLES"]

TABLES = ("bronze", "silver", "dead-letters")
KEEP = 10
OLDER_THAN, ORPHANS_OLDER_THAN = timedelta(days=7), timedelta(days=3)
# Iceberg refuses to look for younger ones: they may belong to a write that is under way.
ORPHANS_AT_LEAST = timedelta(hours=24)
