"""Spark's SQL grammar with no function known to it but CAST.

sqlglot rewrites the calls of functions that it knows. Here it knows none, so that each call arrives
by the name it was written with and is admitted by our own table.
"""

# sqlglot does not type its parser's tables; they are only narrowed here.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import ClassVar, TypeVar

from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser

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
