"""Writes the decision table in docs/reconciliation.md from the table itself: `python tools/decisions_reference.py`."""

from __future__ import annotations

from pathlib import Path

from headgate.reconcile.decision_table import decisions, statuses
from headgate.reconcile.state import FACTS

PAGE = Path(__file__).parents[1] / "docs" / "reconciliation.md"
BEGIN, END = "<!-- begin: decisions -->", "<!-- end: decisions -->"


def told() -> str:
    """Every status with what is made of it."""
    head = "| status | roll-up | metric | severity | reason |\n|---|---|---|---|---|\n"
    rows = (
        f"| `{name}` | {s.rollup} | {f'`dq_{s.metric}`' if s.metric else '–'} | {s.severity or '–'} |"
        f" {s.reason} |"
        for name, s in statuses().items()
    )
    return head + "\n".join(rows)


def table() -> str:
    """The rows in the order that decides."""
    head = "| | when | verdict | because |\n|---|---|---|---|\n"
    rows = (f"| {r.place} | `{r.when}` | `{r.status}` | {r.reason} |" for r in decisions())
    return head + "\n".join(rows)


def facts() -> str:
    """What the conditions ask for."""
    head = "| fact | it holds when |\n|---|---|\n"
    return head + "\n".join(f"| `{fact.name}` | {fact.words} |" for fact in FACTS)


def page(text: str) -> str:
    """The page with its generated part made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{told()}\n\n{table()}\n\n{facts()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), encoding="utf-8")
