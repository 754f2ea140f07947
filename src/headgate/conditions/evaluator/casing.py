"""Upper and lower case as Spark's library has them: Unicode 16, where Python 3.11 has 14.

Only what came in between is written down here. A newer Python says the same by itself; a test holds
every character against Spark.
"""

from __future__ import annotations

_LOWER: dict[int, int] = {
    0x1C89: 0x1C8A,
    0xA7CB: 0x0264,
    0xA7CC: 0xA7CD,
    0xA7DA: 0xA7DB,
    0xA7DC: 0x019B,
    **{upper: upper + 0x20 for upper in range(0x10D50, 0x10D66)},
}
_UPPER = {lower: upper for upper, lower in _LOWER.items()}
# A capital sigma ends a word when a cased letter is before it and none behind, marks left aside.
_MARKS = (
    (0x0897, 0x0897),
    (0x0ECE, 0x0ECE),
    (0x10D4E, 0x10D4E),
    (0x10D69, 0x10D6D),
    (0x10D6F, 0x10D6F),
    (0x10EFC, 0x10EFF),
    (0x11241, 0x11241),
    (0x113BB, 0x113C0),
    (0x113CE, 0x113CE),
    (0x113D0, 0x113D0),
    (0x113D2, 0x113D2),
    (0x113E1, 0x113E2),
    (0x11F00, 0x11F01),
    (0x11F36, 0x11F3A),
    (0x11F40, 0x11F40),
    (0x11F42, 0x11F42),
    (0x11F5A, 0x11F5A),
    (0x13439, 0x13440),
    (0x13447, 0x13455),
    (0x1611E, 0x16129),
    (0x1612D, 0x1612F),
    (0x16D40, 0x16D42),
    (0x16D6B, 0x16D6C),
    (0x1E030, 0x1E06D),
    (0x1E08F, 0x1E08F),
    (0x1E4EB, 0x1E4EF),
    (0x1E5EE, 0x1E5EF),
)
_LETTERS = (*_LOWER, *_UPPER, *range(0x1DF25, 0x1DF2B))
_NO_MARK = 0x1171E  # it was one until Unicode 15
_SIGMA = "\u03a3"
# What stands for each character where only its part in that rule counts. The dotted I is the one
# character whose lower case has another length.
_ROLES = {
    **{mark: 0x0301 for first, last in _MARKS for mark in range(first, last + 1)},
    **dict.fromkeys((*_LETTERS, 0x0130), ord("a")),
    _NO_MARK: ord("0"),
}


def upper(text: str) -> str:
    return text.upper() if text.isascii() else text.translate(_UPPER).upper()


def lower(text: str) -> str:
    if _SIGMA not in text:
        return text.lower() if text.isascii() else text.translate(_LOWER).lower()
    roles = text.translate(_ROLES).lower()
    return "".join(
        role if character == _SIGMA else character.translate(_LOWER).lower()
        for character, role in zip(text, roles, strict=True)
    )
