"""How many records took which way, from the file to the marts: one picture with numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Flow:
    """Counts along the path of one dataset; `planted_*` are what the sample maker put in."""

    file: str
    rows: int
    topic: str
    produced: int
    bronze_table: str
    bronze: int
    dead_letters: int
    tombstones: int
    silver_table: str
    silver: int
    filtered: int
    duplicates: int
    models: int
    tests: int
    marts: Mapping[str, int]
    planted_bad: int
    planted_duplicates: int
    planted_filtered: int


def text(flow: Flow) -> str:
    """The picture; its numbers stand in one column whatever the names are."""
    names = (flow.file, flow.topic, flow.bronze_table, flow.silver_table, *flow.marts)
    width = max(len("  ├─► dead letters"), *(len(name) + 6 for name in names)) + 2
    digits = max(len(f"{n:,}") for n in (flow.rows, flow.produced, flow.bronze, flow.silver))

    def line(head: str, count: int, words: str = "") -> str:
        return f"  {head:<{width}}{count:>{digits},}  {words}".rstrip()

    lines = [
        line(flow.file, flow.rows, "rows in the file"),
        "    │ generate",
        line(flow.topic, flow.produced, "records on the topic"),
        "    │ bronze",
        line("  ├─► dead letters", flow.dead_letters, _planted(flow.planted_bad)),
        line("  ├─► tombstones", flow.tombstones),
        line(flow.bronze_table, flow.bronze, "rows, raw and complete"),
        "    │ silver",
        line("  ├─► filtered", flow.filtered, _planted(flow.planted_filtered)),
        line("  ├─► duplicates", flow.duplicates, _planted(flow.planted_duplicates)),
        line(flow.silver_table, flow.silver, "rows, clean and unique"),
        f"    │ dbt: {flow.models} models, {flow.tests} tests passed",
        *(
            line(f"  {_corner(i, flow)} {name}", n)
            for i, (name, n) in enumerate(flow.marts.items())
        ),
    ]
    return "\n".join(lines)


def _planted(count: int) -> str:
    return f"({count:,} planted)"


def _corner(index: int, flow: Flow) -> str:
    return "└─►" if index == len(flow.marts) - 1 else "├─►"
