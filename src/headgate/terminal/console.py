"""Renders results, progress, warnings and errors of commands, and asks before something is deleted.

Results go to stdout as text, JSON, YAML or Markdown; progress, warnings, errors and questions go to stderr.
The root command sets format and debug mode once. Where stdin is no terminal nothing is asked: the command
is refused with the option that replaces the answer.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Self, cast

import click

from headgate.errors import HeadgateError, UsageError

if TYPE_CHECKING:
    import logging


FORMATS = ("text", "json", "yaml", "markdown")
SCHEMA_VERSION = 1
SECONDS_BETWEEN_LINES = 3.0


def plain(value: object) -> Any:
    """The JSON form of a report: dataclasses and pydantic models become mappings."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in cast("Mapping[object, object]", value).items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(v) for v in cast("Sequence[object]", value)]
    return value


def stderr_log_handler(line: str) -> logging.Handler:
    """A handler that writes log lines to stderr, each with its time in UTC in front."""
    import logging

    formatter = logging.Formatter(f"%(asctime)s.%(msecs)03dZ {line}", "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    return handler


def as_json(value: object) -> str:
    import orjson

    body = plain(value)
    wrapped = cast("dict[str, object]", body if isinstance(body, dict) else {"items": body})
    return orjson.dumps(
        {"schema_version": SCHEMA_VERSION, **wrapped}, default=str, option=orjson.OPT_INDENT_2
    ).decode()


def as_yaml(value: object) -> str:
    import io

    from ruamel.yaml import YAML

    stream = io.StringIO()
    import orjson

    yaml: Any = YAML()
    yaml.dump(orjson.loads(as_json(value)), stream)
    return stream.getvalue().rstrip("\n")


def as_table(rows: Sequence[Mapping[str, object]], markdown: bool = False) -> str:
    """Rows as an aligned table; the first row gives the columns."""
    if not rows:
        return "(nothing)"
    names = list(rows[0])
    cells = [[("" if row[n] is None else in_one_line(str(row[n]))) for n in names] for row in rows]
    widths = [max(len(n), *(len(line[i]) for line in cells)) for i, n in enumerate(names)]
    if markdown:
        lines = [names, ["-" * w for w in widths], *cells]
        return "\n".join(
            "| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |"
            for line in lines
        )
    lines = [[n.upper() for n in names], *cells]
    return "\n".join(
        "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def printable(text: str) -> str:
    """What somebody else wrote, for a terminal: what it would obey is written as an escape."""
    return "".join(
        char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text
    )


def in_one_line(text: str) -> str:
    return printable(text).replace("\n", "\\n")


def named_values(values: Mapping[str, object]) -> list[dict[str, object]]:
    return [{"name": name, "value": value} for name, value in values.items()]


class Console:
    """One place that prints. `format` and `debug` are set once, by the root command."""

    def __init__(self) -> None:
        self.format = "text"
        self.debug = False

    @property
    def colour(self) -> bool:
        return sys.stderr.isatty() and "NO_COLOR" not in os.environ

    def data(self, value: object, text: str | None = None) -> None:
        """Print the result: `text` is how it reads for a person, else rows become a table."""
        if self.format == "json":
            click.echo(as_json(value))
        elif self.format == "yaml":
            click.echo(as_yaml(value))
        elif text is not None and self.format == "text":
            click.echo(text, nl=bool(text))
        else:
            body = plain(value)
            named = (
                named_values(cast("Mapping[str, object]", body))
                if isinstance(body, Mapping)
                else body
            )
            rows = cast("list[dict[str, object]]", named)
            click.echo(as_table(rows, markdown=self.format == "markdown"))

    def say(self, words: str) -> None:
        click.echo(words, err=True)

    def done(self, words: str) -> None:
        click.echo(self._styled("✓ ", "green") + words, err=True)

    def warn(self, words: str) -> None:
        click.echo(self._styled("! ", "yellow") + words, err=True)

    def error(self, error: HeadgateError) -> None:
        click.echo(self._styled(f"error {error.code}: ", "red") + error.what, err=True)
        for label, words in (("why", error.why), ("do", error.fix)):
            for line in words.splitlines():
                click.echo(f"  {label}: {line}", err=True)

    def _styled(self, words: str, colour: str) -> str:
        return click.style(words, fg=colour) if self.colour else words

    @contextmanager
    def progress(self, words: str, total: int | None = None) -> Generator[Progress]:
        """Progress with rate and time left: a live line on a terminal, else a line every few seconds."""
        bar = Progress(self, words, total)
        try:
            yield bar
        finally:
            bar.close()


class Progress:
    """Counts up; the console decides how it is shown."""

    def __init__(self, console: Console, words: str, total: int | None) -> None:
        self._console, self._words, self.total = console, words, total
        self._start = self._last = time.monotonic()
        self._live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._shown = False
        self.done = 0

    def advance(self, n: int = 1) -> None:
        self.update(self.done + n)

    def update(self, done: int, words: str | None = None) -> None:
        self.done = done
        self._words = words or self._words
        now = time.monotonic()
        if now - self._last >= (0.1 if self._live else SECONDS_BETWEEN_LINES):
            self._last = now
            self._show()

    def line(self) -> str:
        elapsed = max(time.monotonic() - self._start, 1e-6)
        rate = self.done / elapsed
        parts = [f"{self._words}: {self.done:,}"]
        if self.total:
            parts[0] += f" of {self.total:,} ({100 * self.done / self.total:.0f}%)"
        if rate >= 1:
            parts.append(f"{rate:,.0f}/s")
        if self.total and rate > 0 and self.done < self.total:
            parts.append(f"{(self.total - self.done) / rate:.0f} s left")
        else:
            parts.append(f"{elapsed:.1f} s")
        return ", ".join(parts)

    def _show(self) -> None:
        self._shown = True
        if self._live:
            sys.stderr.write("\r\x1b[2K" + self.line())
            sys.stderr.flush()
        else:
            self._console.say(self.line())

    def close(self) -> None:
        if self._live and self._shown:
            sys.stderr.write("\r\x1b[2K" + self.line() + "\n")
            sys.stderr.flush()


console = Console()


class Parts:
    """Begins a new line with each part, and ends the one before."""

    def __init__(self) -> None:
        self._parts = ExitStack()
        self._progress: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._parts.close()

    def begin(self, words: str, total: int | None) -> None:
        self._parts.close()
        self._progress = self._parts.enter_context(console.progress(words, total))

    def advance(self, rows: int) -> None:
        if self._progress:
            self._progress.advance(rows)


def need_terminal(what: str, fix: str = "") -> None:
    """Refuse, in these words, where nobody can be asked."""
    if not sys.stdin.isatty():
        raise UsageError(what, why="no terminal to ask on", fix=fix)


def confirm(question: str, *, yes: bool, otherwise: str) -> None:
    """Go on only after a yes; `otherwise` are the words where nobody can be asked."""
    if yes:
        return
    need_terminal(otherwise)
    ask(question)


def ask(question: str) -> None:
    """Go on only after a yes on the terminal."""
    click.confirm(question, abort=True, err=True)
