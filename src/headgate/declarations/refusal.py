"""Why a declared value cannot be accepted, before it is known where it stands."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class Refusal(ValueError):
    """A value that is not accepted: what is wrong with it, why, and what to write instead.

    `key` is the key inside the value that is at fault, where it is one.
    """

    def __init__(self, what: str, fix: str, why: str = "", key: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix
        self.why = why
        self.key = key


def suggestion(word: str, known: Iterable[str], noun: str) -> str:
    """The nearest known word, or all of them when none is near."""
    names = sorted(set(known))
    by_folded = {name.casefold(): name for name in names}
    near = get_close_matches(word.casefold(), list(by_folded), n=1, cutoff=0.6)
    if near:
        return f"Did you mean `{by_folded[near[0]]}`?"
    if not names:
        return f"There are no {noun} to choose from."
    return f"Known {noun}: {', '.join(names)}."
