"""Where something stands in a JSON document, as RFC 6901 writes it."""

from __future__ import annotations

from collections.abc import Iterable


def json_pointer(steps: Iterable[object]) -> str:
    """`("tags", 3, "a/b")` as `/tags/3/a~1b`; no step is the whole document."""
    escaped = (str(step).replace("~", "~0").replace("/", "~1") for step in steps)
    return "".join(f"/{step}" for step in escaped)
