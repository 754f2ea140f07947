"""Layout that all reports share: aligned text, JSON, one HTML page with inline plots, and the folder they go to.

A page is one file: nothing is fetched, every value is escaped, and a content security policy admits only its
own style and script. A `Sum` holds two numbers from different places that must be equal.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar, Protocol

import jinja2
import orjson
from markupsafe import Markup

from headgate.config.settings import Settings

# So many rows of a table are seen at first; a switch above it shows the rest.
SHOWN = 25
FOLDER, HOME = "build/reports", ".headgate"
STYLE, SCRIPT = "report_page.css", "report_page.js"
_HERE = Path(__file__).parent
_BAR = Markup(
    '<rect class="{name}" x="{x}" y="{y}" width="{width}" height="{height}"><title>{title}</title></rect>'
)
_PLOT = Markup(
    '<svg viewBox="0 0 {width} {height}" preserveAspectRatio="none" role="img" aria-label="{label}">'
    "{lines}{bars}</svg>"
)
_LINE = Markup('<line class="grid" x1="0" x2="{width}" y1="{y}" y2="{y}"></line>')


@dataclass(frozen=True)
class ReportFiles:
    html: Path
    json: Path


def report_folder(settings: Settings, kind: str, table: str) -> Path:
    """Below the project; a home elsewhere has data of its own, and keeps their reports itself."""
    own = settings.home == settings.root / HOME
    return (settings.root / FOLDER / kind if own else settings.home / "reports") / table


def write_files(folder: Path, name: str, html: str, json: bytes) -> ReportFiles:
    """The page and its JSON; those of the same name are replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    files = ReportFiles(folder / f"{name}.html", folder / f"{name}.json")
    files.html.write_text(html, encoding="utf-8")
    files.json.write_bytes(json)
    return files


def page(folder: Path, template: str, *styles: str, **values: object) -> str:
    """The page of a template in this folder; every value in it is escaped."""
    style = "".join(_part(folder, name) for name in (STYLE, *styles))
    script = _part(folder, SCRIPT)
    return (
        _pages(folder)
        .get_template(template)
        .render(
            style=Markup(style),
            script=Markup(script),
            policy=_policy(style, script),
            shown=SHOWN,
            percent=percent,
            **values,
        )
    )


def percent(share: float) -> str:
    """Digits enough to tell a few rows from none."""
    if share == 0:
        return "0%"
    if share < 0.0001:
        return "<0.01%"
    return "100%" if share == 1 else f"{min(100 * share, 99.99):.2f}%"


@dataclass(frozen=True)
class Canvas:
    """Bars side by side, from edge to edge as the words below them."""

    width: int
    height: int
    gap: float
    widest: int

    def plot(self, bars: Sequence[Sequence[tuple[str, float, str]]], label: str) -> Markup:
        """Each bar as its parts (class, share of the height, words), the first at the bottom."""
        wide = min(self.width / max(len(bars), 1) * (1 - self.gap), self.widest)
        step = (self.width - wide) / max(len(bars) - 1, 1)
        drawn = (
            part for at, parts in enumerate(bars) for part in self._bar(parts, at * step, wide)
        )
        lines = [_LINE.format(width=self.width, y=number(self.height * p)) for p in (0.0, 0.5, 1.0)]
        nothing = Markup("")
        return _PLOT.format(
            width=self.width,
            height=self.height,
            label=label,
            lines=nothing.join(lines),
            bars=nothing.join(drawn),
        )

    def _bar(
        self, parts: Sequence[tuple[str, float, str]], left: float, wide: float
    ) -> Iterator[Markup]:
        y = float(self.height)
        for name, share, title in parts:
            height = self.height * share
            y -= height
            sizes = {"x": left, "y": y, "width": wide, "height": height}
            drawn = {size: number(value) for size, value in sizes.items()}
            yield _BAR.format(name=name, title=title, **drawn)


def number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _policy(style: str, script: str) -> str:
    """Nothing may be fetched, and nothing run but our own few lines."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _part(folder: Path, name: str) -> str:
    """A file of the report's own folder, or one that all reports share."""
    own = folder / name
    return (own if own.is_file() else _HERE / name).read_text(encoding="utf-8")


@cache
def _pages(folder: Path) -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(partial(_part, folder)),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@dataclass(frozen=True)
class Sum:
    """Two numbers that must be equal."""

    words: str
    left: int
    right: int

    @property
    def holds(self) -> bool:
        return self.left == self.right


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table of words; the last column is as long as it is."""
    widths = _widths(rows)[:-1]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield "  ".join([*cells, row[-1]]).rstrip()


def counted(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table of numbers behind their names; a row of one cell is a heading."""
    first, *others = _widths(rows)
    for row in rows:
        cells = (f"  {cell:>{width}}" for cell, width in zip(row[1:], others, strict=False))
        yield f"{row[0]:<{first}}{''.join(cells)}".rstrip()


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(row[at]) for row in rows if at < len(row)) for at in range(len(rows[0]))]


class Report(Protocol):
    """A report as a dataclass: sums that must be equal, and whether all of them are."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def adds_up(self) -> bool: ...

    @property
    def sums(self) -> Sequence[Sum]: ...


def whole_json(report: Report, schema_version: int) -> bytes:
    """Everything that it says; `schema_version` tells a reader what to expect."""
    body = {"schema_version": schema_version, "adds_up": report.adds_up}
    own = {field.name: getattr(report, field.name) for field in fields(report)}
    return orjson.dumps(body | own, option=orjson.OPT_INDENT_2)


def parts_text(*parts: Iterable[str]) -> str:
    """Parts with an empty line between them; those that say nothing are left out."""
    return "\n\n".join(text for part in parts if (text := "\n".join(part)))


def adding_up(report: Report, what: str) -> Iterator[str]:
    """Whether its counts do, and which of its sums do not."""
    yield f"{'✓ adds up' if report.adds_up else '✗ does not add up'}: {what}"
    yield from (f"✗ {s.words}: {s.left:,} ≠ {s.right:,}" for s in report.sums if not s.holds)


def named(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n:,} {name}" for name, n in counts.items() if n)


def changed(by: int | None) -> str:
    """Against what was before; nothing where nothing was."""
    if by is None:
        return ""
    return f"{by:+,}" if by else "="
