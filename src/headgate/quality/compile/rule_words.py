"""What a rule says, in words: when it matches a row."""

from __future__ import annotations

import re

from headgate.conditions.value_words import listed
from headgate.conditions.words import in_words
from headgate.declarations.durations import in_words as duration_words
from headgate.quality.compile.model import JudgedRule
from headgate.quality.compile.typed import EXTRA, MISSING

# What `schema` reads is no field: names of fields that lack or were not declared, where there are any.
_PSEUDO = re.compile(rf"(?:\b(\w+)\.)?({MISSING}|{EXTRA}) is present")
_SCHEMA = {MISSING: "a declared field is missing", EXTRA: "there is a field that is not declared"}


def rule_words(rule: JudgedRule) -> str:
    """What makes a row bad, in words."""
    if rule.unique is not None:
        fields = listed(list(rule.unique.fields))
        return f"{fields} came before within {duration_words(rule.unique.horizon).lower()}"
    if rule.condition is None:
        return rule.reason
    return _PSEUDO.sub(_field_words, in_words(rule.condition))


def _field_words(found: re.Match[str]) -> str:
    of = f" of {found[1]}" if found[1] else ""
    return f"{_SCHEMA[found[2]]}{of}"
