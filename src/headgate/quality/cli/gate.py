"""The option that makes a command fail on what rules found, for a gate in CI."""

from __future__ import annotations

LEVELS = ("error", "warn")
FAIL_ON = "Exit 5 when a rule, or a verdict on a key, of this severity or above was found."
