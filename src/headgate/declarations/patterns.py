"""The Java time pattern of `ts_format`, checked without Java."""

from __future__ import annotations

import re

from headgate.declarations.refusal import Refusal

# What Spark 4's formatter parses; week-based letters (Y, w, W, u, e, c) it refuses at run time.
_LETTERS = frozenset("GyMLdDQqEaBhkKHmsSVzOXxZF")
_JAVA_RESERVED = frozenset("#{}")
_QUOTED = re.compile(r"'[^']*'")
_EXAMPLE = "Write for example yyyy-MM-dd'T'HH:mm:ss."


def java_pattern(text: str) -> str:
    """The pattern with doubled quotes halved; a Refusal when Java would not take it."""
    pattern = text.replace("''", "'")
    if pattern.count("'") % 2:
        raise Refusal(f"the pattern `{text}` opens a quote that it does not close", _EXAMPLE)
    bare = _QUOTED.sub("", pattern)
    _check_letters(bare, text)
    _check_brackets(bare, text)
    _check_date_parts(bare, text)
    return pattern


def _check_letters(bare: str, text: str) -> None:
    for letter in bare:
        if letter.isalpha() and letter not in _LETTERS:
            raise Refusal(
                f"the pattern `{text}` has the letter `{letter}`, which is no part of a time",
                f"Put letters that stand for themselves in quotes: '{letter}'.",
            )
        if letter in _JAVA_RESERVED:
            raise Refusal(
                f"the pattern `{text}` has `{letter}`, which Java reserves",
                f"Put it in quotes: '{letter}'.",
            )


def _check_brackets(bare: str, text: str) -> None:
    depth = 0
    for letter in bare:
        depth += {"[": 1, "]": -1}.get(letter, 0)
        if depth < 0:
            break
    if depth:
        raise Refusal(f"the square brackets of `{text}` do not match", _EXAMPLE)


def _check_date_parts(bare: str, text: str) -> None:
    lacking = [
        word
        for letters, word in (("yu", "year"), ("MLDQq", "month"), ("dD", "day"))
        if not set(letters) & set(bare)
    ]
    if lacking:
        raise Refusal(f"the pattern `{text}` has no {' and no '.join(lacking)}", _EXAMPLE)
