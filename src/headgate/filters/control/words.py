"""Words that people send along: kept as they are, if a database and a terminal can hold them."""

from __future__ import annotations

from headgate.errors import DeclarationError, Fault

MOST = 2000


def plain(text: str, field: str = "/comment") -> str:
    """The text; DeclarationError when it is too long or has characters that nobody can read."""
    odd = any(not (char.isprintable() or char in "\n\t") for char in text)
    if odd or len(text) > MOST:
        what = "has characters that cannot be shown" if odd else f"is longer than {MOST} characters"
        raise DeclarationError([Fault("", None, field, f"it {what}", "write it in plain words")])
    return text
