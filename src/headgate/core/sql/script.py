"""Compiled SQL files: statements laid out for a reader, `${VAR}` filled in, cut into named steps for a job.

A statement carries a comment for the reader and a mark `-- step: <name>` for the engine. Rendering is
strict: a variable without a value is an error, and so is a value that could end its place in the
SQL. `parse_script` and `parse_rule_script` give the steps in the order of the file.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

from headgate.config.settings import Settings
from headgate.core.sql.fragments import branch, comment
from headgate.errors import DeclarationError, Fault, SettingsError

WIDTH = 96


class Section(NamedTuple):
    """Statements that belong together, under a title for the table of contents."""

    title: str
    statements: Sequence[str]


class Sections(NamedTuple):
    """The views of a rule table, and what its job does with them."""

    views: Sequence[Section]
    engine: Sequence[str]


def statement(step: str, words: str, sql: str) -> str:
    """One statement under its mark, or without one; `words` say why it is there."""
    said = "".join(f"{comment(line)}\n" for line in textwrap.wrap(words, WIDTH))
    mark = f"-- step: {step}\n" if step else ""
    return f"{said}{mark}{sql};"


def view(name: str, words: str, query: str, step: str = "") -> str:
    return statement(step, words, f"CREATE OR REPLACE TEMPORARY VIEW {name} AS\n{query}")


def select(columns: Sequence[str], *clauses: str) -> str:
    """A SELECT with one column a line and one clause a line."""
    return "\n".join([f"SELECT\n{indented(columns)}", *clauses])


def indented(columns: Sequence[str], by: int = 2) -> str:
    return textwrap.indent(",\n".join(columns), " " * by)


def nested(query: str, alias: str = "") -> str:
    """A query in brackets, as FROM takes it."""
    return f"(\n{textwrap.indent(query, '  ')}\n){f' {alias}' if alias else ''}"


def case(branches: Sequence[tuple[str, str]], default: str = "") -> str:
    """A CASE with one branch a line."""
    found = [textwrap.indent(branch(condition, result), "  ") for condition, result in branches]
    last = [f"  ELSE {default}"] if default else []
    return "\n".join(["CASE", *found, *last, "END"])


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


MARK = re.compile(r"^-- step: (?P<name>[a-z][a-z ]*)\s*$")
_TOKEN = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|`(?:``|[^`])*`|;", re.S
)


@dataclass(frozen=True)
class Step:
    """One statement and the part it plays: clock, source, table, view, accept, …"""

    name: str
    sql: str
    line: int


@dataclass(frozen=True)
class Script:
    """The steps of one file in their order; `text` is exactly what stands in the file."""

    file: str
    text: str
    steps: tuple[Step, ...]

    def named(self, name: str) -> tuple[str, ...]:
        return tuple(step.sql for step in self.steps if step.name == name)

    def view(self, name: str) -> str:
        """The statement that makes this temporary view."""
        return next(step.sql for step in self.steps if f"TEMPORARY VIEW {name} AS" in step.sql)

    def one(self, name: str) -> str:
        """The one statement of that step; a file that lacks or repeats it is refused."""
        found = self.named(name)
        if len(found) == 1:
            return found[0]
        what = f"has no step `{name}`" if not found else f"has {len(found)} steps `{name}`"
        fix = f"Keep exactly one statement under the line `-- step: {name}`."
        raise DeclarationError([Fault(self.file, None, name, what, fix)])


def parse_script(file: str, text: str) -> Script:
    """Cut a SQL file into its steps; a statement without a mark belongs to the mark above it."""
    steps: list[Step] = []
    name, start, line = "view", 0, 1
    for statement, offset in _statements(text):
        name = _last_mark(text[start : offset + len(statement)], name)
        start = offset + len(statement)
        body = _without_leading_comments(statement)
        line = text.count("\n", 0, start - len(body)) + 1
        if body.strip():
            steps.append(Step(name, body.strip(), line))
    return Script(file, text, tuple(steps))


def parse_rule_script(file: str, text: str, sources: Iterable[str]) -> Script:
    """Cut the SQL of a rule table into steps; what people read of it has no marks.

    A job binds the views of its `sources` to records of its own, so their statements are steps apart.
    """
    own = tuple(f"CREATE OR REPLACE TEMPORARY VIEW {source}" for source in sources)

    def kind(step: Step) -> str:
        if step.sql.startswith("DECLARE "):
            return "clock"
        head = step.sql.partition("\n")[0].removesuffix(" AS")
        return "source" if head in own else step.name

    script = parse_script(file, text)
    return replace(script, steps=tuple(replace(step, name=kind(step)) for step in script.steps))


def _statements(text: str) -> list[tuple[str, int]]:
    """Each statement with the place where it starts; semicolons in quotes and comments count not."""
    found: list[tuple[str, int]] = []
    begin = 0
    for token in _TOKEN.finditer(text):
        if token.group() == ";":
            found.append((text[begin : token.start()], begin))
            begin = token.end()
    found.append((text[begin:], begin))
    return found


def _last_mark(text: str, otherwise: str) -> str:
    marks = [m["name"].strip() for m in map(MARK.match, text.splitlines()) if m]
    return marks[-1] if marks else otherwise


def _without_leading_comments(statement: str) -> str:
    lines = statement.splitlines(keepends=True)
    while lines and (not lines[0].strip() or lines[0].lstrip().startswith("--")):
        lines.pop(0)
    return "".join(lines)
