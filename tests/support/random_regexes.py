"""Random patterns, texts that are hostile to them, and a matcher that cannot be fooled."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from headgate.conditions.regex.automaton import Automaton, automaton
from headgate.conditions.regex.nodes import (
    Begin,
    Chars,
    CharSet,
    Choice,
    End,
    Node,
    PatternRefusal,
    Repeat,
    Sequence,
)
from headgate.conditions.regex.parse import read
from headgate.conditions.regex.pattern import canonical

LENGTH = 1_024
GREEDY = 96
LETTERS = ("a", "b", "c", "\\.", "-", "é", "\U0001f600", "\\n")
CLASSES = ("[ab]", "[^a]", "\\d", "\\w", "\\s", ".", "[^b-]", "[a-c]", "[^\\s@]", "\\S", "[\\w.]")
COUNTS = ("?", "*", "+", "{2}", "{1,3}", "{2,}", "{0,40}", "{12}")
STRANGE = ("", "\n", "a\n", "\r", "\u2028", "\x85", "\U0001f600", "é", "\0", "aé\U0001f600b", "٣")


def random_pattern(random: Random, depth: int = 3) -> str:
    """Any pattern of the subset's shape, accepted or not."""
    text = _choice(random, depth)
    return random.choice(("", "^", "^")) + text + random.choice(("", "$", "$"))


def _choice(random: Random, depth: int) -> str:
    branches = random.choices((1, 2, 3), (8, 2, 1))[0] if depth else 1
    text = "|".join(_sequence(random, depth) for _ in range(branches))
    return f"({text})" if branches > 1 else text


def _sequence(random: Random, depth: int) -> str:
    return "".join(_piece(random, depth) for _ in range(random.randint(1, 4)))


def _piece(random: Random, depth: int) -> str:
    if depth and random.random() < 0.35:
        atom = f"({_choice(random, depth - 1)})"
        return atom + random.choice(("", "?", "*", "+", "{2}", "{1,4}"))
    atom = random.choice(LETTERS if random.random() < 0.55 else CLASSES)
    return atom + (random.choice(COUNTS) if random.random() < 0.4 else "")


def repeated_group(random: Random) -> str:
    """A group without limit between other things: what Java gets possessively."""
    rounds = f"({_sequence(random, 0)}|{_sequence(random, 1)}){random.choice(('*', '+', '{2,}'))}"
    return f"^{_sequence(random, 0)}{rounds}{_sequence(random, 0)}$"


def accepted_patterns(
    random: Random, count: int, make: Callable[[Random], str] = random_pattern
) -> list[str]:
    """So many patterns that are accepted, none of them twice."""
    found: dict[str, None] = {}
    while len(found) < count:
        text = make(random)
        try:
            canonical(text)
        except PatternRefusal:
            continue
        found[text] = None
    return list(found)


def hostile_texts(random: Random, pattern: str, length: int = LENGTH) -> list[str]:
    """Texts that keep many ways open as long as they can, and end in disappointment."""
    made = automaton(read(pattern))
    signs = _signs(made)
    spoil = random.choice((*signs, "\x00", "!", "\n"))
    texts = [
        _crowded(made, signs, length),
        _walked(random, made, _members(made, signs), signs, length),
    ]
    texts.append(random.choice(signs) * length)
    texts.append("".join(random.choices(signs, k=length)))
    return [text[: length - 1] + spoil for text in texts]


def short_texts(random: Random, pattern: str, count: int) -> list[str]:
    """Texts of a few characters from the pattern's own, some of which match."""
    made = automaton(read(pattern))
    signs = _signs(made)
    members = _members(made, signs)
    walked = [_walked(random, made, members, signs, random.randint(0, 12)) for _ in range(count)]
    mixed = ["".join(random.choices(signs, k=random.randint(0, 6))) for _ in range(count)]
    return [*walked, *mixed, *STRANGE, walked[0] + "\n"]


def _signs(made: Automaton) -> list[str]:
    """One character of each range that the pattern's sets divide."""
    edges = {edge for s in made.sets for low, high in s.ranges for edge in (low, high, high + 1)}
    usable = (code for code in edges if CharSet.of([(code, code)]) and code <= 0x10FFFF)
    return [chr(code) for code in sorted(usable)]


def _crowded(made: Automaton, signs: list[str], length: int) -> str:
    """At each step the character after which most walks go on."""
    takes = {sign: _takers(made, sign) for sign in signs}
    active, text = {0: 1}, list[str]()
    for _ in range(min(GREEDY, length)):
        after = {sign: _moved(made, active, takes[sign]) for sign in signs}
        best = max(signs, key=lambda sign: sum(after[sign].values()))
        active = after[best] or {0: 1}
        text.append(best)
    piece = "".join(text[len(text) // 2 :]) or "a"
    return ("".join(text) + piece * (length // len(piece) + 1))[:length]


def _takers(made: Automaton, sign: str) -> set[int]:
    return {s for s, found in enumerate(made.sets) if CharSet.one(sign) <= found}


def _moved(made: Automaton, active: dict[int, int], takers: set[int]) -> dict[int, int]:
    after: dict[int, int] = {}
    for state, ways in active.items():
        for target in made.follow[state]:
            if target in takers:
                after[target] = min(after.get(target, 0) + ways, 1 << 40)
    return after


def _members(made: Automaton, signs: list[str]) -> list[list[str]]:
    """For each set of the automaton, the characters that are in it."""
    sets = {sign: CharSet.one(sign) for sign in signs}
    return [[sign for sign in signs if sets[sign] <= found] for found in made.sets]


def _walked(
    random: Random, made: Automaton, members: list[list[str]], signs: list[str], length: int
) -> str:
    """A walk through the automaton, begun anew where it ends."""
    state, text = 0, list[str]()
    for _ in range(length):
        onward = [s for s in made.follow[state] if s] or list(made.follow[0]) or [0]
        state = random.choice(onward)
        text.append(random.choice(members[state] or signs))
    return "".join(text)


def matches_anywhere(pattern: str, text: str) -> bool:
    """Whether the pattern as it was written is found, by trying all ends of all parts once."""
    node = read(pattern)

    known: dict[tuple[int, int], frozenset[int]] = {}

    def ends(part: Node, start: int) -> frozenset[int]:
        place = (id(part), start)
        if place not in known:
            known[place] = tried(part, start)
        return known[place]

    def tried(part: Node, start: int) -> frozenset[int]:
        match part:
            case Chars():
                is_there = start < len(text) and CharSet.one(text[start]) <= part.set
                return frozenset({start + 1} if is_there else ())
            case Begin():
                return frozenset({start} if start == 0 else ())
            case End():
                return frozenset({start} if start == len(text) else ())
            case Sequence():
                at = frozenset({start})
                for item in part.items:
                    at = after(item, at)
                return at
            case Choice():
                return frozenset().union(*(ends(item, start) for item in part.items))
            case Repeat():
                return repeated(part, start)

    def after(part: Node, starts: frozenset[int]) -> frozenset[int]:
        return frozenset().union(*(ends(part, start) for start in starts))

    def repeated(part: Repeat, start: int) -> frozenset[int]:
        at = frozenset({start})
        for _ in range(part.least):
            at = after(part.item, at)
        reached, rounds = at, part.least
        while at and (part.most is None or rounds < part.most):
            at = after(part.item, at) - reached
            reached |= at
            rounds += 1
        return reached

    return any(ends(node, start) for start in range(len(text) + 1))
