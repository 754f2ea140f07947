"""`headgate hash vectors`: hold this implementation against the shared vectors."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.terminal.cli_console import console

if TYPE_CHECKING:
    from headgate.hashing.vectors import Difference

_MOST_SHOWN = 20


@dataclass(frozen=True)
class Verified:
    """What `hash vectors` found."""

    file: str
    vectors: int
    traps: dict[str, int]
    differences: tuple[Difference, ...]


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
def hash_vectors(file: Path | None) -> None:
    """Hash the row of every vector in FILE and compare: text, version 1 and version 2.

    Without FILE it is the one that Python, Spark and Java are all held against. A file of your own
    may come from another implementation: docs/hash_contract.md says what a line is.

    \b
    Examples:
      headgate hash vectors
      headgate hash vectors mine.jsonl
      headgate -o json hash vectors
    """
    from headgate.config.env_files import find_root
    from headgate.errors import DifferenceError
    from headgate.hashing.vectors import FILE

    verified = verify(file or find_root(Path.cwd()) / FILE)
    shown = [
        f"✗ vector {d.id} ({d.trap}): {d.what}\n    expected  {d.expected}\n    got       {d.got}"
        for d in verified.differences[:_MOST_SHOWN]
    ]
    counts = [f"{n:6,}  {trap}" for trap, n in verified.traps.items()]
    console.data(verified, text="\n".join([*counts, *shown]))
    if verified.differences:
        raise DifferenceError(
            f"{len(verified.differences)} differences in {verified.vectors:,} vectors",
            why="this implementation makes other bytes than the vectors say",
            fix="`headgate -o json hash vectors` shows all; compare the texts byte by byte",
        )
    console.done(f"{verified.vectors:,} vectors agree")


def verify(file: Path) -> Verified:
    """Every vector of the file against Python."""
    from headgate.errors import UsageError
    from headgate.hashing.vectors import differences, read_vectors

    if not file.is_file():
        raise UsageError(f"there is no file {file}", fix="python tools/hash_vectors.py writes it")
    traps, found = Counter[str](), list["Difference"]()
    for vector in read_vectors(file):
        traps[vector.trap] += 1
        found += differences(vector)
    return Verified(file.name, traps.total(), dict(traps), tuple(found))
