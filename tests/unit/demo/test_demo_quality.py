"""The quality demo: what it sends when, what it says at the end, and how it fails."""

from __future__ import annotations

from pathlib import Path

from headgate.config.settings import load_settings
from headgate.demo.quality.cli import QualityDemo, bursts, difference, tables_of, text
from headgate.demo.quality.comparison import Comparison, Line
from headgate.terminal.steps import StepReport

ROOT = Path(__file__).resolve().parents[3]


def demo(found: int) -> QualityDemo:
    line = Line("metric", "dq.a", 5, {"ledger": 5, "HTTP": found})
    comparison = Comparison("things", (line,))
    return QualityDemo(
        home=str(ROOT / ".headgate" / "demo-quality"),
        seconds=100.4,
        fetch_seconds=0.1,
        holds=comparison.holds,
        steps=(StepReport("up", 1.0, "up"),),
        comparisons=(comparison,),
        reports=(str(ROOT / ".headgate" / "demo-quality" / "reports" / "run-1.html"),),
    )


def test_a_demo_that_holds_says_how_many_counts_and_where_to_look() -> None:
    said = text(demo(5), ROOT)
    assert "All 2 counts are what was planted" in said
    assert ".headgate/demo-quality/reports/run-1.html" in said
    assert "100 s" in said


def test_a_difference_names_the_place_and_ends_with_exit_code_5() -> None:
    error = difference(demo(4))
    assert error.exit_code == 5
    assert error.why == "things: metric dq.a: planted 5, found 4 in HTTP"


def test_every_shipped_rule_table_is_fed_and_one_of_them_is_a_stream() -> None:
    tables = tables_of(ROOT)
    assert [table.table.name for table in tables] == ["customer", "orders", "taxi"]
    assert [table.table.is_pair for table in tables] == [True, True, False]


def test_the_last_burst_is_late_by_more_than_the_watermark() -> None:
    (stream,) = [table for table in tables_of(ROOT) if not table.table.is_pair]
    first, second, late = bursts(load_settings(ROOT), stream, 100, 7)
    assert first.start == late.start < second.start
    assert len({first.seed, second.seed, late.seed}) == 3
    window, watermark = stream.rule_set.metrics.window, stream.table.first.watermark
    assert first.start + window + watermark <= second.start
