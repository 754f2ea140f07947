"""Texts and names that a parser could take for syntax: quotes, comments, escapes, placeholders."""

from __future__ import annotations

from random import Random

from tests.support.random_expressions import HOSTILE_TEXTS

LONG = 64 * 1024
_PIECES = (
    *HOSTILE_TEXTS,
    *("'", '"', "`", "\\", "\\'", "''", "\\\\", "\\n", "\n", "\r", "\t", "\x00", "\x1a", "\x7f"),
    *("--", "-- ", "/*", "*/", "/*+ x */", ";", "#", "%", "_", "\\%", "\\_", "?", ":x", "@", "&"),
    *("{", "}", "{{", "}}", "{t1}", "{batch_time}", "${", "$", "${env:PATH}", "$(x)", "{%", "%}"),
    *("' OR '1'='1", "') --", "\\' OR 1=1 --", "'; DROP TABLE x; --", "x' UNION SELECT 1", "NULL"),
    *("\u202e", "\u2066", "\u2069", "\u200b", "\ufeff", "\u00a0", "\u2028", "\u2029", "\u0085"),
    *(
        "é",
        "e\u0301",
        "ß",
        "SS",
        "İ",
        "i",
        "I",
        "\u0130",
        "\U0001f600",
        "\U000e0041",
        "\uffff",
        " ",
    ),
    *("a", "A", "0", "1e3", "true", "\\u0041", "\\x41", "\\101", "\\0", "\\Z", "r'", "X'41'", "e'"),
)
_NAMES = (
    *_PIECES,
    ".",
    "..",
    "t1.",
    "`t1`.`x`",
    "select",
    "Date",
    "from x",
    "*",
    "()",
    "[0]",
    "->",
)


def hostile_texts(rng: Random, count: int) -> list[str]:
    """So many different texts; a few of them are 64 KB long."""
    found: dict[str, None] = dict.fromkeys(HOSTILE_TEXTS)
    for _ in range(max(count // 500, 2)):
        piece = rng.choice(_PIECES)
        found[(piece * LONG)[: LONG - rng.randrange(9)]] = None
    while len(found) < count:
        found["".join(rng.choices(_PIECES, k=rng.randint(1, 5)))] = None
    return list(found)[:count]


def hostile_names(rng: Random, count: int) -> list[str]:
    """So many names that differ even where case does not count."""
    found: dict[str, str] = {}
    while len(found) < count:
        name = "".join(rng.choices(_NAMES, k=rng.randint(1, 4)))
        found.setdefault(name.casefold().upper().casefold(), name)
    return list(found.values())
