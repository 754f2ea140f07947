"""How much an engine that goes back has to try: bounded for each character of a text, or refused.

Such an engine walks every way through the automaton that the text allows. Two ways that part on
the same text and meet again at one state are two walks over all that follows. So:
- ways that part and meet inside one loop double with every round: refused (exponential);
- a loop that can be entered at any time, by ways that another loop (or the search) keeps sending,
  gathers a walk for each character: refused (the square of the length);
- elsewhere ways are counted, and their sum is bounded: time grows with the length of the text.
"""

from __future__ import annotations

from headgate.conditions.regex.pairs import Meeting, Pairs, pairs_of
from headgate.conditions.regex.regex_automaton import Automaton
from headgate.conditions.regex.regex_nodes import PatternRefusal
from headgate.conditions.regex.strong import Components, components_of

# Moves tried for one character of the text, at most: a thousand characters stay within 50 ms.
MAX_MOVES = 2_000
_MANY = "Begin each round with a sign that stands nowhere else in it: a(,a)*."
_SHARED = (
    "Put a sign between them that neither can take, or take one out of a class: "
    "[^@.]+\\. for [^@]+\\. Group an optional sign with one of them: (\\d*\\.)?\\d+ for \\d*\\.?\\d+."
)
_SOUGHT = (
    "Write ^ at the beginning, or begin with something that the repetition cannot take. A "
    "pattern without ^ need not repeat what it begins with: \\d-\\d for \\d+-\\d."
)


def check(text: str, made: Automaton) -> None:
    """Refuse what could take more than a bounded number of moves for each character."""
    components = components_of(made)
    _check_doubles(text, made, components)
    pairs = pairs_of(made, components)
    for meeting in pairs.meetings:
        raise _refused(text, made, meeting)
    moves = Ways(made, components, pairs).most()
    if moves > MAX_MOVES:
        raise PatternRefusal(
            0,
            "there are too many ways to match one text",
            "Make its parts differ in how they begin, use smaller numbers, or write ^ before it.",
            f"up to {moves} moves for each character, {MAX_MOVES} are allowed",
        )


def _check_doubles(text: str, made: Automaton, components: Components) -> None:
    for state, following in enumerate(made.follow):
        loop = components.number[state]
        for target, ways in following.items():
            if ways > 1 and loop is not None and loop == components.number[target]:
                raise _refused(text, made, Meeting("doubles", target, state))
            if ways > 1:
                place = made.spans[target].start or made.spans[state].start
                raise PatternRefusal(
                    place,
                    f"`{_piece(text, made, target or state)}` can be reached in two ways",
                    "Let only one alternative be empty: (a*|b+) for (a*|b*).",
                    "each would be tried",
                )


def _piece(text: str, made: Automaton, state: int) -> str:
    span = made.spans[state]
    return text[span.start - 1 : span.end - 1]


def _refused(text: str, made: Automaton, meeting: Meeting) -> PatternRefusal:
    piece, place = _piece(text, made, meeting.at), made.spans[meeting.at].start
    if meeting.kind == "doubles":
        return PatternRefusal(
            place,
            f"the rounds of a repetition can share a text at `{piece}`",
            _MANY,
            "the time could double with each character",
        )
    other = meeting.other
    if other == 0:
        return PatternRefusal(
            place,
            f"the repetition at `{piece}` can be come to from many places of one text",
            _SOUGHT,
            "the pattern is looked for from every place, and each would go the same way",
        )
    return PatternRefusal(
        place,
        f"two repetitions, at `{_piece(text, made, other)}` and at `{piece}`, "
        "can take the same text",
        _SHARED,
        "the time could grow with the square of its length",
    )


class Ways:
    """For each state, how many walks can be at it at one time, at most."""

    def __init__(self, made: Automaton, components: Components, pairs: Pairs) -> None:
        self.made, self.components, self.pairs = made, components, pairs
        self.before = self._before()
        self.ways = [0] * len(made.sets)

    def most(self) -> int:
        """Moves tried at one time, at most, over all states that can be active together."""
        for group in self.components.ordered:
            self._enter(group)
        effort = [ways * max(len(self.made.follow[s]), 1) for s, ways in enumerate(self.ways)]
        return max(
            own + sum(effort[other] for other in self.pairs.together[state])
            for state, own in enumerate(effort)
        )

    def _before(self) -> list[list[int]]:
        before: list[list[int]] = [[] for _ in self.made.sets]
        for state, following in enumerate(self.made.follow):
            for target in following:
                before[target].append(state)
        return before

    def _enter(self, group: list[int]) -> None:
        inside = frozenset(group)
        total = sum(self._arriving(state, inside) for state in group)
        if 0 in inside:
            total = 1
        number = self.components.number[group[0]]
        if number in self.pairs.crowded:
            total += self._later(inside)
        for state in group:
            self.ways[state] = total

    def _arriving(self, state: int, inside: frozenset[int]) -> int:
        sources = [source for source in self.before[state] if source not in inside]
        return max(
            (
                self.ways[source]
                + sum(self.ways[s] for s in sources if s in self.pairs.together[source])
                for source in sources
            ),
            default=0,
        )

    def _later(self, inside: frozenset[int]) -> int:
        """Walks that are still on their way to a loop when the first one has come to it."""
        paths: dict[int, int] = {}
        for group in reversed(self.components.ordered):
            state = group[0]
            if self.components.number[state] is None and state not in inside:
                following = self.made.follow[state]
                paths[state] = sum(1 if s in inside else paths.get(s, 0) for s in following)
        return sum(self.ways[state] * count for state, count in paths.items())
