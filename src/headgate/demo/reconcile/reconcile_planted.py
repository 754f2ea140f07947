"""Holds every planted key against what was found of it, and the sums against every place that counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from headgate.demo.reconcile.oracle import ExpectedKey
from headgate.terminal.text_columns import counted

Counts = Mapping[str, int]
MOST_TOLD = 20


@dataclass(frozen=True)
class FoundKey:
    """One key as the results have it; `history` are its statuses, oldest first."""

    pk: str
    status: str
    stale: bool = False
    conflict: bool = False
    kinds: frozenset[str] = frozenset()
    columns: frozenset[str] = frozenset()
    history: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wrong:
    """A key of which something else was found than was planted."""

    pk: str
    role: str
    what: str
    planted: str
    found: str

    def sentence(self) -> str:
        return f"{self.pk} ({self.role}): {self.what}: planted {self.planted}, found {self.found}"


@dataclass(frozen=True)
class Line:
    """One count: what was planted, and what each place says that knows of it.

    `least` is given where a place may count fewer, since how batches were cut decides it.
    """

    subject: str
    name: str
    planted: int
    found: Counts
    least: int | None = None

    @property
    def holds(self) -> bool:
        return all(map(self._is_right, self.found.values()))

    @property
    def planted_text(self) -> str:
        """The planted number, or the ends of what may be counted."""
        if self.least is None or self.least == self.planted:
            return f"{self.planted:,}"
        return f"{self.least:,}–{self.planted:,}"

    def sentence(self) -> str:
        places = (f"{n:,} in {p}" for p, n in self.found.items() if not self._is_right(n))
        return f"{self.subject} {self.name}: planted {self.planted_text}, found {', '.join(places)}"

    def _is_right(self, count: int) -> bool:
        return (self.planted if self.least is None else self.least) <= count <= self.planted


def wrong_keys(expected: Iterable[ExpectedKey], found: Mapping[str, FoundKey]) -> tuple[Wrong, ...]:
    """Every key that is not as planted; a key that nobody planted is wrong too."""
    planned = {key.pk: key for key in expected}
    wrong = [one for key in planned.values() for one in _wrong(key, found.get(key.pk))]
    strange = (key for pk, key in found.items() if pk not in planned)
    return (*wrong, *(Wrong(key.pk, "not planted", "key", "none", key.status) for key in strange))


def _wrong(key: ExpectedKey, found: FoundKey | None) -> Iterable[Wrong]:
    end = key.expected
    for what, planted, seen in (
        ("status", _one(end.status), found.status if found else ""),
        ("kind", _one(end.kind), _all(found.kinds) if found else ""),
        ("column", _one(end.column), _all(found.columns) if found else ""),
        ("stale", end.stale, bool(found and found.stale)),
        ("conflict", end.conflict, bool(found and found.conflict)),
    ):
        if planted is not None and planted != seen:
            yield Wrong(key.pk, key.role, what, str(planted), str(seen))
    if found and not _in_order(end.path, found.history):
        path, history = " → ".join(end.path), " → ".join(found.history)
        yield Wrong(key.pk, key.role, "history", path, history)


def _one(word: str | None) -> str:
    return word or ""


def _all(words: frozenset[str]) -> str:
    return ", ".join(sorted(words))


def _in_order(path: Sequence[str], history: Sequence[str]) -> bool:
    """Whether all of the path is in the history, in its order."""
    rest = iter(history)
    return all(status in rest for status in path)


def lines_of(subject: str, planted: Counts, found: Mapping[str, Counts]) -> tuple[Line, ...]:
    """Every count beside what each place says; what nobody planted is counted as none."""
    names = dict.fromkeys(planted)
    for counts in found.values():
        names |= dict.fromkeys(name for name, n in sorted(counts.items()) if n)
    return tuple(
        Line(subject, name, planted.get(name, 0), {p: c.get(name, 0) for p, c in found.items()})
        for name in names
    )


def statuses_of(found: Iterable[FoundKey]) -> dict[str, int]:
    return dict(sorted(Counter(key.status for key in found).items()))


def text(lines: Sequence[Line]) -> str:
    """The counts as a person reads them: one column a place."""
    blocks: list[str] = []
    for subject in dict.fromkeys(line.subject for line in lines):
        own = [line for line in lines if line.subject == subject]
        places = list(dict.fromkeys(place for line in own for place in line.found))
        rows = [[subject, "planted", *places], *(_row(line, places) for line in own)]
        blocks.append("\n".join(f"  {line}" for line in counted(rows)))
    return "\n\n".join(blocks)


def _row(line: Line, places: Sequence[str]) -> list[str]:
    mark = "✓" if line.holds else "✗"
    found = [f"{line.found[place]:,}" if place in line.found else "" for place in places]
    return [f"{mark} {line.name}", line.planted_text, *found]
