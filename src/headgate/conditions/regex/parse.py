"""Parse the text of a pattern; what Java and Python could understand differently is refused."""

from __future__ import annotations

import re
from typing import NoReturn

from headgate.conditions.regex.nodes import (
    DIGIT,
    DOT,
    LAST,
    SPACE,
    WORD,
    Begin,
    Chars,
    CharSet,
    Choice,
    End,
    Node,
    PatternRefusal,
    Repeat,
    Sequence,
    Span,
    is_nullable,
)

_NUMBER = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|x\{([0-9A-Fa-f]{1,6})\})")
_NAMED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_REFUSED = {
    "b": ("a word boundary", "Write (^|\\W) before or (\\W|$) after the word."),
    "B": ("a word boundary", "Write what stands there."),
    "p": ("a Unicode class", "Write the characters: [A-Za-z], [^\\x00-\\x7F]."),
    "P": ("a Unicode class", "Write the characters: [^A-Za-z]."),
    "Z": ("\\Z", "Write $, which is the very end of the text."),
    "G": ("\\G", "Write ^."),
    "k": ("a back reference", "Compare two columns instead."),
    "Q": ("a quotation", "Put a backslash before each sign."),
    "E": ("a quotation", "Put a backslash before each sign."),
    "h": ("\\h", "Write [ \\t]."),
    "R": ("\\R", "Write \\r?\\n."),
    "v": ("\\v", "Write [\\n\\r\\f]."),
}


def escaped(text: str, at: int) -> tuple[str, int]:
    """The character that the escape at `at` stands for, and the place behind it."""
    number = _NUMBER.match(text, at)
    if number is not None:
        return _numbered(int(next(filter(None, number.groups())), 16), at), number.end()
    letter = text[at + 1 : at + 2]
    if letter in _NAMED:
        return _NAMED[letter], at + 2
    if letter and letter.isascii() and not letter.isalnum() and letter.isprintable():
        return letter, at + 2
    raise _refused(letter, at)


def _numbered(code: int, at: int) -> str:
    if code > LAST or not CharSet.of([(code, code)]):
        raise PatternRefusal(at + 1, "no character has this number", "Write the character itself.")
    return chr(code)


def _refused(letter: str, at: int) -> PatternRefusal:
    if not letter:
        return PatternRefusal(at + 1, "a backslash ends it", "Write \\\\ for the sign itself.")
    if letter.isascii() and letter.isdigit():
        what, fix = "a back reference", "Compare two columns instead."
    else:
        what, fix = _REFUSED.get(letter, (f"\\{letter}", "Write the character itself, or \\uXXXX."))
    return PatternRefusal(at + 1, f"{what} is outside the safe subset", fix)


_SHORT = {"d": DIGIT, "w": WORD, "s": SPACE}


class ClassReader:
    """Stands on the opening bracket at first, behind the closing one at last."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.start = self.at = at

    def set(self) -> CharSet:
        self.at += 1
        negated = self.text.startswith("^", self.at)
        self.at += negated
        if self.text.startswith("]", self.at):
            self.refuse("the class is empty", "Write \\] for the sign itself.")
        found = CharSet(())
        while not self.text.startswith("]", self.at):
            found |= self.part()
        self.at += 1
        result = found.inverse if negated else found
        if not result:
            self.refuse("the class has no character", "Write what may stand there.", self.start)
        return result

    def refuse(self, what: str, fix: str, at: int | None = None) -> NoReturn:
        raise PatternRefusal((self.at if at is None else at) + 1, what, fix)

    def part(self) -> CharSet:
        low = self.item()
        if not self.is_range(low):
            return low
        self.at += 1
        place = self.at
        high = self.item()
        first, last = low.single, high.single
        if first is None or last is None or first > last:
            self.refuse(
                "this is no range", "Write it from low to high, or \\- for the sign.", place - 1
            )
        return CharSet.of([(first, last)])

    def is_range(self, low: CharSet) -> bool:
        following = self.text[self.at : self.at + 2]
        return low.single is not None and following[:1] == "-" and following[1:] not in {"", "]"}

    def item(self) -> CharSet:
        sign = self.text[self.at : self.at + 1]
        if not sign:
            self.refuse("the class is not closed", "Write ] where it ends.", self.start)
        if sign == "[" or self.text.startswith("&&", self.at):
            self.refuse(f"`{sign}` means something else in Java here", f"Write \\{sign}.")
        if sign != "\\":
            self.at += 1
            return CharSet.one(sign)
        letter = self.text[self.at + 1 : self.at + 2]
        short = _SHORT.get(letter.lower()) if letter else None
        if short is not None:
            self.at += 2
            return short.inverse if letter.isupper() else short
        character, self.at = escaped(self.text, self.at)
        return CharSet.one(character)


MAX_LENGTH = 4_000
MAX_DEPTH = 40
MAX_COUNT = 1_000
_COUNT = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")
_SIMPLE = {"?": (0, 1), "*": (0, None), "+": (1, None)}
_GROUPS = {
    "(?=": ("it looks ahead", "Write two conditions and join them with AND."),
    "(?!": ("it looks ahead", "Write two conditions: … RLIKE 'a' AND NOT … RLIKE 'b'."),
    "(?<=": ("it looks behind", "Put what stands before into the pattern itself."),
    "(?<!": ("it looks behind", "Write two conditions: … RLIKE 'a' AND NOT … RLIKE 'b'."),
    "(?<": ("the group has a name", "Write (…): nothing asks for the name."),
    "(?P": ("the group has a name", "Write (…): nothing asks for the name."),
    "(?>": ("the group is atomic", "Write (…)."),
    "(?i": ("it sets a flag", "Write both cases, [Aa], or lower(…) RLIKE '…'."),
    "(?#": ("there is a comment", "Put the comment into the file around it."),
}


def read(text: str) -> Node:
    """The tree of a pattern; a PatternRefusal says where it leaves the subset."""
    if len(text) > MAX_LENGTH:
        raise PatternRefusal(0, "it is too long", f"Keep it under {MAX_LENGTH} characters.")
    return _Reader(text).whole()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def whole(self) -> Node:
        node = self.choice()
        if self.at < len(self.text):
            self.refuse("a bracket is closed that was not opened", "Write \\) for the sign itself.")
        return node

    def refuse(self, what: str, fix: str, why: str = "", at: int | None = None) -> NoReturn:
        raise PatternRefusal((self.at if at is None else at) + 1, what, fix, why)

    def ahead(self, length: int = 1) -> str:
        return self.text[self.at : self.at + length]

    def span(self, start: int) -> Span:
        return Span(start + 1, self.at + 1)

    def choice(self) -> Node:
        start, items = self.at, [self.sequence()]
        while self.ahead() == "|":
            self.at += 1
            items.append(self.sequence())
        return items[0] if len(items) == 1 else Choice(tuple(items), self.span(start))

    def sequence(self) -> Node:
        start, items = self.at, list[Node]()
        while self.ahead() not in {"", "|", ")"}:
            items.append(self.piece())
        return items[0] if len(items) == 1 else Sequence(tuple(items), self.span(start))

    def piece(self) -> Node:
        start = self.at
        item = self.atom()
        counts = self.counts()
        if counts is None:
            return item
        if isinstance(item, Begin | End):
            self.refuse("an anchor is repeated", "Leave the repetition away.", at=start)
        if is_nullable(item):
            self.refuse(
                f"`{self.text[start : self.at]}` repeats what can be empty",
                "Repeat only what cannot be empty: a* for (a*)*, [ab]* for (a?b?)*.",
                "a text could be shared among the rounds in many ways",
                at=start,
            )
        possessive = self.possessive()
        if self.counts() is not None:
            self.refuse("two repetitions stand side by side", "Keep one of them.", at=self.at - 1)
        return Repeat(item, *counts, self.span(start), possessive)

    def counts(self) -> tuple[int, int | None] | None:
        simple = _SIMPLE.get(self.ahead())
        if simple is not None:
            self.at += 1
            return simple
        if self.ahead() != "{":
            return None
        return self.counted()

    def counted(self) -> tuple[int, int | None]:
        found = _COUNT.match(self.text, self.at)
        if found is None:
            self.refuse("`{` begins no repetition", "Write {2}, {2,} or {2,5}; \\{ for the sign.")
        numbers = [int(part[:9]) for part in found.group(1, 3) if part]
        if max(numbers) > MAX_COUNT:
            self.refuse(
                f"it repeats more than {MAX_COUNT} times", "Compare length(…) with a number."
            )
        least = numbers[0]
        most = None if found.group(2) and not found.group(3) else numbers[-1]
        if most is not None and most < least:
            self.refuse("the greater number stands first", f"Write {{{most},{least}}}.")
        self.at = found.end()
        return least, most

    def possessive(self) -> bool:
        if self.ahead() == "?":
            self.refuse(
                "the repetition is lazy",
                "Leave the `?` away.",
                "whether a text matches does not depend on it",
            )
        found = self.ahead() == "+"
        self.at += found
        return found

    def atom(self) -> Node:
        start, sign = self.at, self.ahead()
        if sign == "(":
            return self.group()
        if sign == "[":
            reader = ClassReader(self.text, self.at)
            found = reader.set()
            self.at = reader.at
            return Chars(found, self.span(start))
        if sign in {"*", "+", "?", "{"}:
            self.refuse(f"`{sign}` repeats nothing", f"Write \\{sign} for the sign itself.")
        return self.single(start, sign)

    def single(self, start: int, sign: str) -> Node:
        if sign == "\\":
            return self.escape(start)
        self.at += 1
        if sign == "^":
            return Begin(self.span(start))
        if sign == "$":
            return End(self.span(start))
        return Chars(DOT if sign == "." else _literal(sign, start), self.span(start))

    def group(self) -> Node:
        start = self.at
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.refuse("the brackets are nested too deeply", "Split the condition.")
        self.open_group()
        inside = self.choice()
        if self.ahead() != ")":
            self.refuse("the bracket is not closed", "Write ) where it ends.", at=start)
        self.at += 1
        self.depth -= 1
        return inside

    def open_group(self) -> None:
        if self.ahead(3) == "(?:":
            self.at += 3
            return
        if self.ahead(2) == "(?":
            names = (self.ahead(4), self.ahead(3))
            what, fix = next(
                (_GROUPS[name] for name in names if name in _GROUPS),
                ("it sets a flag or has a special group", "Write (…) or (?:…)."),
            )
            self.refuse(f"{what}, which is outside the safe subset", fix)
        self.at += 1

    def escape(self, start: int) -> Node:
        letter = self.ahead(2)[1:]
        if letter in {"A", "z"}:
            self.at += 2
            return Begin(self.span(start)) if letter == "A" else End(self.span(start))
        known = {"d": DIGIT, "w": WORD, "s": SPACE}.get(letter.lower() if letter else "")
        if known is not None:
            self.at += 2
            return Chars(known.inverse if letter.isupper() else known, self.span(start))
        character, self.at = escaped(self.text, self.at)
        return Chars(CharSet.one(character), self.span(start))


def _literal(sign: str, start: int) -> CharSet:
    found = CharSet.one(sign)
    if not found:
        raise PatternRefusal(start + 1, "half of a surrogate pair is no text", "Remove it.")
    return found
