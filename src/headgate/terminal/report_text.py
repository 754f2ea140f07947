"""What reports share in a terminal and for scripts: sums, changes, and the whole as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, Protocol

import orjson

from headgate.terminal.report_sums import Sum


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
