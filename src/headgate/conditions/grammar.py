"""Parse the SQL text of a condition into sqlglot's tree and refuse what could be read in two ways.

sqlglot rewrites calls of functions that it knows, so the dialect here knows none but CAST: each call
arrives by the name it was written with and is admitted by our own table. An `ExprError` has every
fault of a text with its position.
"""

# sqlglot does not type its parser's tables; they are only narrowed here.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from headgate.declarations.errors import Refusal
from headgate.declarations.types import parse_type


@dataclass(frozen=True)
class ExprFault:
    """`position` counts the characters of the text from 1; None is the text as a whole."""

    what: str
    why: str
    fix: str
    position: int | None

    def sentence(self) -> str:
        place = f"at character {self.position}: " if self.position else ""
        why = f" ({self.why})" if self.why else ""
        return f"{place}{self.what}{why}. {self.fix}"


class ExprError(ValueError):
    """All faults found in one text; whoever knows its file makes a DeclarationError of them."""

    def __init__(self, faults: Sequence[ExprFault]) -> None:
        super().__init__("; ".join(fault.sentence() for fault in faults))
        self.faults = tuple(faults)

    @classmethod
    def of(cls, what: str, why: str = "", fix: str = "", position: int | None = None) -> ExprError:
        return cls([ExprFault(what, why, fix, position)])


Entry = TypeVar("Entry")


def _only(table: dict[str, Entry], *names: str) -> dict[str, Entry]:
    return {name: table[name] for name in names}


class Conditions(Spark):
    class Parser(SparkParser):
        FUNCTIONS: ClassVar = {}
        FUNCTION_PARSERS: ClassVar = _only(SparkParser.FUNCTION_PARSERS, "CAST", "TRY_CAST")
        NO_PAREN_FUNCTIONS: ClassVar = {}
        NO_PAREN_FUNCTION_PARSERS: ClassVar = _only(SparkParser.NO_PAREN_FUNCTION_PARSERS, "CASE")

        def _warn_unsupported(self) -> None:
            """A statement is refused in words of our own; a warning beside them says nothing."""


MAX_TEXT = 256 * 1024
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.?)", re.DOTALL)
# What a type follows, and the types that a text may follow.
_BEFORE_TYPE = frozenset({TokenType.ALIAS, TokenType.DCOLON})
_BEFORE_TEXT = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ"})
# The letters behind a number, which arrive as casts.
_SUFFIXES = frozenset({"L", "S", "Y", "D", "F", "BD", "l", "s", "y", "d", "f", "bd"})
_DECIMALS = frozenset({"DECIMAL", "DEC", "NUMERIC"})
_CLEAR_ESCAPES = frozenset("\\'\"nrt%_")


def syntax(text: str) -> exp.Expr:
    """The one expression that `text` is; an ExprError says where it stops being one."""
    if len(text) > MAX_TEXT:
        raise ExprError.of("the text is too long", fix=f"Keep it under {MAX_TEXT} characters.")
    if not text.strip():
        raise ExprError.of("the text is empty", fix="Write a condition, for example a > 0.")
    dialect = Conditions()
    try:
        tokens = dialect.tokenize(text)
        _check_tokens(tokens, text)
        found = dialect.parser().parse(tokens, text)
    except ParseError as error:
        raise _unreadable(error, text) from None
    except (SqlglotError, RecursionError) as error:
        raise ExprError.of(*_hopeless(error), position=1) from None
    return _single(found)


def position_of(node: exp.Expr) -> int:
    """Where a node begins in the text, counted from 1; what is around it, if that is not known."""
    around: exp.Expr | None = node
    while around is not None:
        starts = [part.meta["start"] for part in around.walk() if "start" in part.meta]
        if starts:
            return min(starts) + 1
        around = around.parent
    return 1


def _single(found: Sequence[exp.Expr | None]) -> exp.Expr:
    if len(found) != 1 or found[0] is None:
        raise ExprError.of(
            "there is more than one statement, or none",
            fix="Write one condition, without semicolons.",
            position=1,
        )
    return found[0]


def _check_tokens(tokens: Sequence[Token], text: str) -> None:
    faults = [
        fault for at, token in enumerate(tokens) for fault in _faults(tokens, at, token, text)
    ]
    if faults:
        raise ExprError(faults)


def _faults(tokens: Sequence[Token], at: int, token: Token, text: str) -> list[ExprFault]:
    place = token.start + 1
    if token.comments:
        return [
            ExprFault(
                "there is a comment",
                "a condition has none, and `--` hides what follows",
                "Put the comment into the file around it; write `- -1` with a blank.",
                place,
            )
        ]
    if token.token_type is TokenType.SEMICOLON:
        return [ExprFault("there is a semicolon", "", "Write one condition.", place)]
    if at and tokens[at - 1].token_type in _BEFORE_TYPE:
        return _type_faults(token, place)
    if token.token_type is not TokenType.STRING:
        return []
    if at and _is_odd_type(tokens[at - 1]):
        return [
            ExprFault(
                "a type stands before a text", "", "Write CAST('…' AS INT), for example.", place
            )
        ]
    if at and tokens[at - 1].token_type is TokenType.STRING:
        return [
            ExprFault(
                "two texts stand side by side",
                "Spark versions differ in how they read that",
                "Write a quote inside text as \\', or use concat.",
                place,
            )
        ]
    return _escape_faults(text[token.start : token.end + 1], place)


def _type_faults(token: Token, place: int) -> list[ExprFault]:
    # The grammar takes many names for one type; what is none of ours must not pass as another.
    if token.token_type not in Conditions.Parser.TYPE_TOKENS or token.text in _SUFFIXES:
        return []
    try:
        parse_type(f"{token.text}(9, 2)" if token.text.upper() in _DECIMALS else token.text)
    except Refusal as refusal:
        return [ExprFault(refusal.what, refusal.why, refusal.fix, place)]
    return []


def _is_odd_type(token: Token) -> bool:
    if token.token_type is TokenType.R_PAREN:
        return True
    return (
        token.token_type in Conditions.Parser.TYPE_TOKENS and token.text.upper() not in _BEFORE_TEXT
    )


def _escape_faults(raw: str, place: int) -> list[ExprFault]:
    for match in _ESCAPE.finditer(raw):
        escape = match.group(1)
        if len(escape) < 2 and escape not in _CLEAR_ESCAPES:
            return [
                ExprFault(
                    f"the text has `\\{escape}`, which reads differently from place to place",
                    "",
                    "Write \\\\ for a backslash, \\uXXXX for a character by its number.",
                    place + match.start(),
                )
            ]
    return []


def _unreadable(error: ParseError, text: str) -> ExprError:
    detail = error.errors[0] if error.errors else {}
    position = 1
    line, column = detail.get("line"), detail.get("col")
    if line and column:
        before = text.splitlines(keepends=True)[: line - 1]
        position = sum(map(len, before)) + column
    description = detail.get("description") or "syntax error"
    if description.startswith("Required keyword"):
        description = "something is missing"
    return ExprError.of(
        f"this cannot be read as a condition: {description}",
        fix="Check brackets, commas and quotes here and just before.",
        position=position,
    )


def _hopeless(error: Exception) -> tuple[str, str, str]:
    if isinstance(error, RecursionError):
        return "the brackets are nested too deeply", "", "Split the condition."
    return "this cannot be read as a condition", str(error).splitlines()[0], "Check the quotes."
