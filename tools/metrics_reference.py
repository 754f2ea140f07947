"""Writes the table in docs/metrics.md from the names themselves: `python tools/metrics_reference.py`."""

from __future__ import annotations

from pathlib import Path

from headgate.core.metrics.names import METRICS, flat, namespaced, prometheus

PAGE = Path(__file__).parents[1] / "docs" / "metrics.md"
BEGIN, END = "<!-- begin: names -->", "<!-- end: names -->"
NAMESPACE, EXAMPLES = "dq.cassandra", ("hash_mismatch", "missing_cloud", "dq_late", "error")


def table() -> str:
    """Names, kinds, units, labels and meanings, in the order of the code."""
    head = "| name | kind | unit | labels | meaning |\n|---|---|---|---|---|\n"
    rows = (
        f"| `{m.name}` | {m.kind} | {m.unit} | {', '.join(m.labels)} | {m.help} |" for m in METRICS
    )
    return head + "\n".join(rows)


def derived() -> str:
    """The three names of a rule's metric, by example."""
    head = "| `metric` in the rule set | dotted | flat | Prometheus |\n|---|---|---|---|\n"
    rows = (
        f"| `{m}` | `{namespaced(NAMESPACE, m)}` | `{flat(m)}` | `{prometheus(m)}` |"
        for m in EXAMPLES
    )
    return head + "\n".join(rows)


def page(text: str) -> str:
    """The page with its generated part made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{derived()}\n\n{table()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), encoding="utf-8")
