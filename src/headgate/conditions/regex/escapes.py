"""What stands after a backslash: a character, or the reason why it is refused."""

from __future__ import annotations

import re

from headgate.conditions.regex.chars import LAST, CharSet
from headgate.conditions.regex.regex_nodes import PatternRefusal

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
