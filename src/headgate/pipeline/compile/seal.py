"""Tells a template that a person edited from one that is as it was compiled, however long ago."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headgate.core.sql.render import Template

_SEAL = re.compile(r"^-- Digest (?P<digest>[0-9a-f]{12}): [^\n]*\n", re.MULTILINE)
# What `git merge-file` leaves where two sides changed the same lines.
_MARKER = re.compile(r"^(?:<{7}|>{7}|\|{7}) ", re.MULTILINE)
_WORDS = "while it fits, the manifest rules; once edited, this file is what runs."


@dataclass(frozen=True)
class Chosen:
    """What runs: the compiled templates, save those that a person edited."""

    templates: tuple[Template, ...]
    edited: tuple[str, ...]
    behind: tuple[str, ...]


def seal(text: str) -> str:
    """The template with its digest at the end of its header."""
    head = 0
    for line in text.splitlines(keepends=True):
        if not line.startswith("--"):
            break
        head += len(line)
    return f"{text[:head]}-- Digest {_digest(text)}: {_WORDS}\n{text[head:]}"


def is_sealed(text: str) -> bool:
    """Whether the text is exactly what was compiled."""
    plain = text.replace("\r\n", "\n")
    found = _SEAL.search(plain)
    return found is not None and found["digest"] == _digest(_SEAL.sub("", plain, count=1))


def conflict_line(text: str) -> int | None:
    """The line of the first conflict marker, counted from 1."""
    found = _MARKER.search(text)
    return text.count("\n", 0, found.start()) + 1 if found else None


def choose(fresh: Sequence[Template], written: Mapping[str, str]) -> Chosen:
    """An edited template wins over the compiled one; an untouched one that is behind does not."""
    differing = [t.file for t in fresh if t.file in written and written[t.file] != t.text]
    edited = tuple(file for file in differing if not is_sealed(written[file]))
    return Chosen(
        templates=tuple(
            Template(t.file, written[t.file]) if t.file in edited else t for t in fresh
        ),
        edited=edited,
        behind=tuple(file for file in differing if file not in edited),
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
