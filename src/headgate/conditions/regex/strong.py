"""Which states of an automaton lie on common circles."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.conditions.regex.regex_automaton import Automaton


@dataclass(frozen=True)
class Components:
    """`number` of a state's loop, None outside of loops; `ordered`: groups, sources first."""

    number: list[int | None]
    ordered: list[list[int]]


def components_of(made: Automaton) -> Components:
    """Tarjan's algorithm, without recursion."""
    ordered = _Search(made).groups()
    number: list[int | None] = [None] * len(made.sets)
    for at, group in enumerate(ordered):
        if len(group) > 1 or group[0] in made.follow[group[0]]:
            for state in group:
                number[state] = at
    return Components(number, ordered)


class _Search:
    def __init__(self, made: Automaton) -> None:
        self.moves = [made.moves(state) for state in range(len(made.sets))]
        self.index: dict[int, int] = {}
        self.low: dict[int, int] = {}
        self.stack: list[int] = []
        self.open: set[int] = set()
        self.found: list[list[int]] = []

    def groups(self) -> list[list[int]]:
        self._open(0)
        path = [(0, iter(self.moves[0]))]
        while path:
            state, rest = path[-1]
            target = next(rest, None)
            if target is None:
                path.pop()
                self._close(state, path[-1][0] if path else None)
            elif target not in self.index:
                self._open(target)
                path.append((target, iter(self.moves[target])))
            elif target in self.open:
                self.low[state] = min(self.low[state], self.index[target])
        return self.found[::-1]

    def _open(self, state: int) -> None:
        self.index[state] = self.low[state] = len(self.index)
        self.stack.append(state)
        self.open.add(state)

    def _close(self, state: int, parent: int | None) -> None:
        if self.low[state] == self.index[state]:
            at = self.stack.index(state)
            group, self.stack = self.stack[at:], self.stack[:at]
            self.open -= set(group)
            self.found.append(group)
        if parent is not None:
            self.low[parent] = min(self.low[parent], self.low[state])
