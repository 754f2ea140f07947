"""Strict `${VAR}` rendering: what is not filled is an error, what could break out is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from headgate.config.settings import Settings
from headgate.errors import Fault, SettingsError

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_LEFT_OVER = re.compile(r"\$\{[^}\n]*\}?")
_UNSAFE_IN_SQL = re.compile(r"['\"`\\;\n\r\x00]|--|/\*")
_LINE_END = re.compile(r"[\n\r\x00]")
NOTHING_MADE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Template:
    """A text with `${VAR}` in it, and the file it stands in."""

    file: str
    text: str

    def variables(self) -> tuple[str, ...]:
        """The variables used, in order of first use."""
        return tuple(dict.fromkeys(_VARIABLE.findall(self.text)))

    def render(
        self, values: Mapping[str, str | None], made: Mapping[str, str] = NOTHING_MADE
    ) -> str:
        """The text with every variable filled; all that is wrong is said at once.

        `values` come from people and are checked; `made` are lines that the compiler wrote.
        """
        faults = [*self._unfilled(values, made), *self._malformed()]
        if faults:
            raise SettingsError(
                f"{self.file} cannot be rendered",
                why="\n".join(fault.sentence() for fault in faults),
                fix="set the variables in the active profile: make print-config shows them",
            )
        filled = {name: str(value).strip() for name, value in values.items()} | dict(made)
        return _VARIABLE.sub(lambda match: filled[match[1]], self.text)

    def _unfilled(self, values: Mapping[str, str | None], made: Mapping[str, str]) -> list[Fault]:
        faults: list[Fault] = []
        for name in self.variables():
            if name in made:
                continue
            value = values.get(name)
            if value is None or not value.strip():
                faults.append(self._fault(name, f"{name} is not set", f"Set {name}."))
            elif self._unsafe.search(value.strip()):
                words = f"the value of {name} has a character in it that would end its place"
                fix = "Remove quotes, semicolons, comments and line ends from it."
                faults.append(self._fault(name, words, fix))
        return faults

    @property
    def _unsafe(self) -> re.Pattern[str]:
        return _UNSAFE_IN_SQL if ".sql" in self.file else _LINE_END

    def _malformed(self) -> list[Fault]:
        bare = _VARIABLE.sub("", self.text)
        return [
            Fault(self.file, None, left, "is not a variable name", "Write ${NAME}.")
            for left in _LEFT_OVER.findall(bare)
        ]

    def _fault(self, name: str, what: str, fix: str) -> Fault:
        line = self.text[: self.text.index("${" + name + "}")].count("\n") + 1
        return Fault(self.file, line, "${" + name + "}", what, fix)


# The manifest's placeholders stay placeholders in the templates; rendering fills them.
PLACEHOLDERS = {"TOPIC": "${TOPIC}", "DLQ_TOPIC": "${DLQ_TOPIC}"}


def render_values(settings: Settings, dataset: str) -> Mapping[str, str | None]:
    """Everything that a SQL template of this dataset may ask for."""
    names = ("bootstrap_servers", "warehouse", "catalog_uri")
    found = {name: getattr(settings, name) for name in names}
    given = {name.upper(): None if value is None else str(value) for name, value in found.items()}
    return {
        **dict.fromkeys(PLACEHOLDERS),
        **settings.topics_of(dataset),
        **given,
        "DATASET": dataset,
    }
