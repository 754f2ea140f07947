"""Three texts made one: a person's edits and the compiler's changes, both since the same base."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from headgate.errors import OperationError, UnavailableError

LABELS = ("as edited here", "as scaffolded before", "as the manifest gives it now")
# Lines that name the revision; nobody edits them, and after a conflict they may be older than the base.
_STAMPS = (
    re.compile(r"^-- Compiled from \S+, revision [0-9a-f]{12}, by Headgate \S+$", re.MULTILINE),
    re.compile(r"^-- Digest [0-9a-f]{12}: .*$", re.MULTILINE),
    re.compile(r"^DEFAULT '[0-9a-f]{64}';$", re.MULTILINE),
)
# git says how many conflicts there are, and 255 when it could not even try.
_MOST_CONFLICTS = 127


@dataclass(frozen=True)
class Merge:
    """The merged text; with conflicts it has markers and is for a person's eyes only."""

    text: str
    conflicts: int


def three_way(edited: str, base: str, fresh: str) -> Merge:
    """`git merge-file` over the three texts."""
    with tempfile.TemporaryDirectory(prefix="headgate-merge-") as folder:
        files = [Path(folder) / name for name in ("edited", "base", "fresh")]
        for file, text in zip(files, (stamped(edited, base), base, fresh), strict=True):
            file.write_text(text, encoding="utf-8")
        done = _merge_file(files)
    if not 0 <= done.returncode <= _MOST_CONFLICTS:
        raise OperationError("git could not merge", why=done.stderr.decode(errors="replace"))
    return Merge(done.stdout.decode(), done.returncode)


def stamped(edited: str, base: str) -> str:
    """The edited text with the base's revision in it, so that the fresh one can take its place."""
    for stamp in _STAMPS:
        if found := stamp.search(base):
            edited = stamp.sub(lambda _, line=found[0]: line, edited, count=1)
    return edited


def _merge_file(files: list[Path]) -> subprocess.CompletedProcess[bytes]:
    labels = [word for label in LABELS for word in ("-L", label)]
    command = ["git", "merge-file", "-p", "--diff3", *labels, *map(str, files)]
    try:
        return subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        raise UnavailableError(
            "git is not installed",
            why="a file that was edited is merged with `git merge-file`",
            fix="install git, then run the command again",
        ) from None
