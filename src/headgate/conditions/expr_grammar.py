"""SQL text of a condition as a syntax tree, with what could be read in two ways refused."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from headgate.conditions.dialect import Conditions
from headgate.conditions.faults import ExprError, ExprFault
from headgate.declarations.refusal import Refusal
from headgate.declarations.spec_types import parse_type

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
