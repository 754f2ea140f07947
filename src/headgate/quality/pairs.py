"""What a rule table with two sources needs of reconciliation, as an interface that quality asks and does not implement.

`headgate.app` names the implementation, which is loaded when the first pair is compiled, judged or run: reconciliation
stands on quality, so quality must not import it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Protocol

from headgate.app import PAIR_SUPPORT, load

if TYPE_CHECKING:
    from headgate.conditions.evaluator.values import Value
    from headgate.core.sql.script import Script, Sections
    from headgate.quality.compile.resolve import JudgedRule, JudgedTable
    from headgate.quality.compile.tables import Names
    from headgate.quality.spec.rule_set import RuleTable, Severity


class PairVerdict(Protocol):
    """The verdict on one key, as far as a test of rules compares it."""

    @property
    def status(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def metric(self) -> str | None: ...
    @property
    def severity(self) -> Severity | None: ...


class PairSupport(Protocol):
    """The parts of a table with two sources that rules alone do not give."""

    def file_sections(self, judged: JudgedTable) -> Sections:
        """The SQL of the pair: the views of its file and the statements of its job."""
        ...

    def verdict_rules(self) -> tuple[JudgedRule, ...]:
        """Every verdict that a key can end with, as a rule, so that verdicts are counted as rules are."""
        ...

    def table_statements(self, names: Names) -> list[str]:
        """The statements that create the tables of the pair."""
        ...

    def permanent_views(self, names: Names, script: Script, pairs_view: str | None) -> list[str]:
        """The statements that create the permanent views; `pairs_view` is the one that the declaration names."""
        ...

    def row_with_action(self, table: RuleTable, row: Mapping[str, Value]) -> dict[str, Value]:
        """The row as rules see it: an on-prem message that names no action is an upsert."""
        ...

    def verdict_when_due(
        self, table: RuleTable, row: Mapping[str, Value], at: datetime
    ) -> PairVerdict:
        """The verdict on a pair whose sides were both read at `at`, once nothing more is waited for."""
        ...


@cache
def pair_support() -> PairSupport:
    return load(PAIR_SUPPORT)
