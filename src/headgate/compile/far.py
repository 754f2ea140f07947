"""Numbers that the JSON reader must not see: their exponents would cost it seconds.

For a DECIMAL it computes 10 to the power of the exponent, also of a number within a text. So a
record that has such a number under the name of a DECIMAL field is not read at all; it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from headgate.compile.fragments import hanging
from headgate.compile.records import Records
from headgate.expr.forms import EXPONENT_DIGITS

CODE = "out_of_range"
WORDS = "a number is too large for its type, or its exponent has three digits"
# Within a regular expression within a SQL literal: one character, or two where it is escaped.
_ODD = re.compile(r"[\"'\\$\x00-\x1f\x7f]")
_LONGEST_ESCAPE = len(r"\ud83d\ude00")
_NUMBER = rf"[-0-9.]++[eE][-+]?[0-9]{{{EXPONENT_DIGITS}}}"
# Java reads digits of every script in a text, and JSON may write any of them as an escape.
_NUMBER_TEXT = r'"[^"A-Za-z\\]*+(?:\\|[eE][^"]{3})'


def names(records: Records) -> list[str]:
    """The fields that are read as DECIMAL."""
    return [c.name for c in records.columns if c.kafka_type.name == "DECIMAL"]


def condition(fields: Sequence[str]) -> str:
    """Whether the record has such a number; a name with an escape in it may be any field's."""
    longest = _LONGEST_ESCAPE * max(map(len, fields))
    escaped = rf'(?<=\\)[u/](?:[^"\\]|\\.){{0,{longest}}}+'
    parts = (
        r'["\\](?:',
        *(f"{_name(name)}|" for name in fields),
        rf'{escaped})"\s*+:\s*+',
        f"(?:{_NUMBER}|{_NUMBER_TEXT})",
    )
    return "\n".join(["kafka_text RLIKE", *(f"  r'{part}'" for part in parts)])


def _name(name: str) -> str:
    return "".join(".{1,2}" if _ODD.match(letter) else re.escape(letter) for letter in name)


def readable_text(records: Records) -> str:
    """The text that the reader is given, NULL where it has such a number."""
    fields = names(records)
    if not fields:
        return "kafka_text"
    return f"CASE\n  WHEN NOT {hanging(condition(fields))}\n  THEN kafka_text\nEND"
