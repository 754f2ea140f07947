"""A filter made ready: its condition as a tree, and the SQL that a person approves."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.conditions.ast import Expr


@dataclass(frozen=True)
class CompiledFilter:
    """`condition` is the whole question, the check of `ops` included; `sql` both `statements`.

    `sql_hash` is what an approval is bound to, together with the revision.
    """

    id: str
    revision: str
    topic: str
    source: str
    ops: tuple[str, ...]
    condition: Expr
    sql: str
    statements: tuple[str, str]
    sql_hash: str
