"""The columns of a table as its rules see them: by name, or by alias and name where two are joined."""

from __future__ import annotations

from headgate.conditions.ast import Column, Expr
from headgate.conditions.faults import ExprError, ExprFault
from headgate.conditions.parser import parse_condition
from headgate.declarations.refusal import Refusal, suggestion
from headgate.declarations.spec_types import STRING, SqlType
from headgate.quality.compile.placeholders import Placeholders
from headgate.quality.spec.rule_set import RuleSource, RuleTable


class RuleColumns:
    """Reads the conditions and the names that the rules of one table are written with."""

    def __init__(self, table: RuleTable) -> None:
        self.table = table
        self.aliases = [source.alias for source in table.sources.values()] if table.is_pair else []
        self.types = dict[str, SqlType]()
        for source in table.sources.values():
            before = f"{source.alias}." if table.is_pair else ""
            self.types |= {before + name: kind for name, kind in _types(table, source).items()}
        self._placeholders = Placeholders(table)

    def condition(self, text: str) -> Expr:
        """The condition in `text`; positions of faults are those of the text as written."""
        filled = self._placeholders.fill(text)
        try:
            return parse_condition(filled.text, self.types, sources=self.aliases, batch_time=True)
        except ExprError as error:
            raise ExprError(
                [
                    ExprFault(fault.what, fault.why, fault.fix, filled.written(fault.position))
                    for fault in error.faults
                ]
            ) from None

    def column(self, written: str) -> Column:
        """The column that a typed rule names; a Refusal says which there are."""
        name = self._placeholders.fill(written).text.replace("`", "")
        keys = [name] if name in self.types else self._ending(name)
        if len(keys) > 1:
            both = " or ".join(keys)
            raise Refusal(f"`{written}` is a column of both sources", f"Write {both}.")
        if not keys:
            what = f"there is no column `{written}`"
            raise Refusal(what, suggestion(name, self.types, "columns"))
        alias, _, plain = keys[0].rpartition(".") if self.aliases else ("", "", keys[0])
        return Column(plain, self.types[keys[0]], alias)

    def _ending(self, name: str) -> list[str]:
        return [f"{alias}.{name}" for alias in self.aliases if f"{alias}.{name}" in self.types]


def _types(table: RuleTable, source: RuleSource) -> dict[str, SqlType]:
    """A key that is read by a path is a column as well."""
    return source.types if source.pk_path is None else {table.pk: STRING, **source.types}
