"""A compiled SQL file: statements under `-- step:` marks, which a person and the engine both read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from headgate.errors import DeclarationError, Fault

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
