"""Writes docs/reference/test_durations.md from the JUnit file of a run: `make test-durations`."""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "test_durations.md"
LISTED_TESTS = 50
FIXTURE_PROPERTY = "fixture "
INTRODUCTION = """# Where the time of the tests goes

<!-- Written by tools/test_durations.py from a run's JUnit file; `make test-durations` writes it anew. -->
"""


@dataclass(frozen=True)
class TestCase:
    """One test of a JUnit file; `seconds` are its set-up, call and teardown."""

    file: str
    name: str
    seconds: float
    fixtures: tuple[tuple[str, float], ...]


def read_junit(path: Path) -> list[TestCase]:
    return [
        TestCase(
            file=case.attrib["classname"].replace(".", "/") + ".py",
            name=case.attrib["name"],
            seconds=float(case.attrib["time"]),
            fixtures=tuple(
                (name.removeprefix(FIXTURE_PROPERTY), float(entry.attrib["value"]))
                for entry in case.iter("property")
                if (name := entry.attrib["name"]).startswith(FIXTURE_PROPERTY)
            ),
        )
        for case in ElementTree.parse(path).iter("testcase")
    ]


def render_page(cases: list[TestCase]) -> str:
    slowest = sorted(cases, key=lambda case: -case.seconds)[:LISTED_TESTS]
    by_file: dict[str, list[float]] = defaultdict(list)
    by_fixture: dict[str, list[float]] = defaultdict(list)
    for case in cases:
        by_file[case.file].append(case.seconds)
        for fixture, seconds in case.fixtures:
            by_fixture[fixture].append(seconds)
    total = sum(case.seconds for case in cases)
    parts = [
        INTRODUCTION,
        f"{len(cases):,} tests took {total:,.0f} seconds, those of all workers added up.\n",
        "## Slowest tests\n",
        render_table(
            ("seconds", "test"),
            [(f"{case.seconds:.1f}", f"`{case.file}::{case.name}`") for case in slowest],
        ),
        "## Fixtures\n\nSet-up only; a fixture of a session is set up once in each worker.\n",
        render_table(("seconds", "set-ups", "fixture (scope, name)"), ranked(by_fixture, least=1)),
        "## Files\n",
        render_table(("seconds", "tests", "file"), ranked(by_file, least=5)),
    ]
    return "\n".join(parts)


def ranked(groups: dict[str, list[float]], least: float) -> list[tuple[str, ...]]:
    """Rows of groups that took at least that many seconds in all, the longest first."""
    totals = sorted(((sum(times), name) for name, times in groups.items()), reverse=True)
    return [
        (f"{total:.0f}", str(len(groups[name])), f"`{name}`")
        for total, name in totals
        if total >= least
    ]


def render_table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---:",) * (len(head) - 1) + ("---",), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


if __name__ == "__main__":
    PAGE.write_text(render_page(read_junit(Path(sys.argv[1]))))
    print(f"written: {PAGE.relative_to(ROOT)}")
