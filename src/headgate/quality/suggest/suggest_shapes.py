"""The form that texts have in common, as a pattern of the safe subset of regular expressions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

LONGEST = 64
MOST_PARTS = 12
# Of fewer texts the form may be an accident.
ENOUGH = 30
_PARTS = re.compile(r"[0-9]+|[a-z]+|[A-Z]+|.", re.DOTALL)
_WHOLE = (
    ("[0-9a-f]", re.compile(r"[0-9a-f]+")),
    ("[0-9A-F]", re.compile(r"[0-9A-F]+")),
    ("[0-9A-Z]", re.compile(r"[0-9A-Z]+")),
    ("[0-9A-Za-z]", re.compile(r"[0-9A-Za-z]+")),
)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


@dataclass(frozen=True)
class _Part:
    kind: str
    length: int


def form_of(texts: Sequence[str]) -> str | None:
    """A pattern that all of them match and few others would; None when they are too different."""
    known = [text for text in texts if text]
    if len(known) < ENOUGH or len(known) < len(texts) or max(map(len, known)) > LONGEST:
        return None
    if all(_UUID.fullmatch(text) for text in known):
        return UUID
    return _by_parts(known) or _one_class(known)


def _by_parts(texts: Sequence[str]) -> str | None:
    """Runs of digits and letters with the same signs between them."""
    split = [_parts(text) for text in texts]
    first = [part.kind for part in split[0]]
    if len(first) > MOST_PARTS or any([p.kind for p in parts] != first for parts in split):
        return None
    if not any(kind.startswith("[") for kind in first):
        return None
    pattern = ""
    for at, kind in enumerate(first):
        lengths = [parts[at].length for parts in split]
        pattern += kind + (_times(min(lengths), max(lengths)) if kind.startswith("[") else "")
    return pattern


def _parts(text: str) -> list[_Part]:
    return [_Part(_kind(found), len(found)) for found in _PARTS.findall(text)]


def _kind(run: str) -> str:
    if run.isascii():
        if run.isdigit():
            return "[0-9]"
        if run.isalpha():
            return "[a-z]" if run.islower() else "[A-Z]"
    return re.escape(run)


def _one_class(texts: Sequence[str]) -> str | None:
    """Letters and digits mixed, all of one length: codes and hashes."""
    lengths = {len(text) for text in texts}
    if len(lengths) > 1:
        return None
    found = (cls for cls, pattern in _WHOLE if all(pattern.fullmatch(text) for text in texts))
    chosen = next(found, None)
    return f"{chosen}{{{lengths.pop()}}}" if chosen else None


def _times(least: int, most: int) -> str:
    if least == most:
        return "" if least == 1 else f"{{{least}}}"
    return f"{{{least},{most}}}"
