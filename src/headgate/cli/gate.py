"""The option that makes a command fail on what rules found, for a gate in CI."""

from __future__ import annotations

LEVELS = ("error", "warn")
FAIL_ON = "Exit 5 when a rule of this severity or above matched a row."
