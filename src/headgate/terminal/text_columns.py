"""Tables for a terminal, their columns under one another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table of words; the last column is as long as it is."""
    widths = _widths(rows)[:-1]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield "  ".join([*cells, row[-1]]).rstrip()


def counted(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table of numbers behind their names; a row of one cell is a heading."""
    first, *others = _widths(rows)
    for row in rows:
        cells = (f"  {cell:>{width}}" for cell, width in zip(row[1:], others, strict=False))
        yield f"{row[0]:<{first}}{''.join(cells)}".rstrip()


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(row[at]) for row in rows if at < len(row)) for at in range(len(rows[0]))]
