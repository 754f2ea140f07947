"""Values and names as Spark SQL text: the one place where a value becomes part of a statement.

A literal is read back by Spark as exactly the value it was made of; a name is quoted where it is
not plain or is one of Spark's keywords. Tested with hostile strings, since a mistake here is SQL injection.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, date, datetime
from decimal import Decimal
from math import copysign, isinf, isnan
from typing import TypeAlias

from headgate.declarations.errors import Refusal

# Spark's reserved keywords in either ANSI mode, the words its grammar takes for a literal, a
# constructor or a call without brackets, and those that begin an expression of their own.
RESERVED = frozenset(
    """
    ALL AND ANTI ANY ARRAY AS ASC AT AUTHORIZATION BETWEEN BOTH CASE CAST CHECK COLLATE COLLATION
    COLUMN CONSTRAINT CREATE CROSS CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER DATE
    DEFAULT DESC DISTINCT DIV DOUBLE ELSE END ESCAPE EXCEPT EXECUTE EXISTS EXTRACT FALSE FETCH
    FILTER FLOAT FOR FOREIGN FROM FULL FUNCTION GRANT GROUP HAVING ILIKE IN INNER INTERSECT
    INTERVAL INTO IS JOIN LATERAL LEADING LEFT LIKE LIMIT LOCALTIME LOCALTIMESTAMP MAP MINUS
    NATURAL NOT NULL OFFSET ON ONLY OR ORDER OUTER OVER OVERLAPS POSITION PRIMARY REFERENCES
    REGEXP REPLACE RIGHT RLIKE SELECT SEMI SESSION_USER SETMINUS SOME SQL STRUCT SUBSTR SUBSTRING
    TABLE THEN TIME TIMESTAMP TIMESTAMP_LTZ TIMESTAMP_NTZ TIMESTAMPADD TIMESTAMPDIFF TO TRAILING
    TRIM TRUE TRY_CAST UNION UNIQUE UNKNOWN USER USING VALUES WHEN WHERE WINDOW WITH WITHIN X
    """.split()
)
LiteralValue: TypeAlias = None | bool | int | float | Decimal | str | date | datetime
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHORT_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Invisible or line-breaking characters would let the text read otherwise than it runs.
_UNREADABLE = frozenset({"Cc", "Cf", "Zl", "Zp", "Co", "Cn"})


def spark_literal(value: LiteralValue) -> str:
    """`value` as a literal that Spark reads back as exactly that value."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case float():
            return _double(value)
        case Decimal():
            return _decimal(value)
        case str():
            return _string(value)
        case datetime():
            return _time(value)
        case date():
            return f"DATE '{value.isoformat()}'"


def spark_identifier(name: str) -> str:
    """`name` as an identifier: bare when it is plain and no keyword, else in backticks."""
    if _PLAIN_NAME.fullmatch(name) and name.upper() not in RESERVED:
        return name
    if not name or not name.isprintable() or "${" in name:
        raise Refusal(
            f"{name!r} cannot be the name of a column",
            "Use a name without control characters and without `${`.",
        )
    return "`" + name.replace("`", "``") + "`"


def spark_column(name: str, source: str = "") -> str:
    """A column's identifier, with its source's before it where it has one."""
    plain = spark_identifier(name)
    return f"{spark_identifier(source)}.{plain}" if source else plain


def _double(value: float) -> str:
    if isnan(value):
        return "DOUBLE('NaN')"
    if isinf(value):
        return f"DOUBLE('{'' if copysign(1, value) > 0 else '-'}Infinity')"
    return f"{value!r}D"


def _decimal(value: Decimal) -> str:
    # A number with a point is DECIMAL in Spark, one without is INT and needs the suffix.
    if not value.is_finite():
        raise Refusal(f"{value} is not a decimal number", "Use a finite number.")
    digits = f"{value:f}"
    return digits if "." in digits else f"{digits}BD"


def _string(value: str) -> str:
    escaped = "".join(_character(character) for character in value)
    # Spark replaces ${name} in the text of a statement, inside quotes too.
    return "'" + escaped.replace("${", "\\u0024{") + "'"


def _character(character: str) -> str:
    short = _SHORT_ESCAPES.get(character)
    if short is not None:
        return short
    category = unicodedata.category(character)
    if category == "Cs":
        raise Refusal("half of a surrogate pair is not text", "Remove the character.")
    unreadable = category in _UNREADABLE or (category == "Zs" and character != " ")
    if not unreadable:
        return character
    code = ord(character)
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def _time(value: datetime) -> str:
    if value.tzinfo is None:
        return f"TIMESTAMP_NTZ '{value.isoformat(' ')}'"
    utc = value.astimezone(UTC).replace(tzinfo=None)
    return f"TIMESTAMP_LTZ '{utc.isoformat(' ')}Z'"
