"""The report's page in a real browser: it is whole, fetches nothing, sorts, folds, finds and hides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.browser import CONTRAST, Page, start_browser
from tests.support.quality_evidence import CANARY, HOSTILE, NOON, evidence, judged_table

from headgate.quality.report.build import make_report
from headgate.quality.report.page import report_html

RULES = 1_000
ROWS = "document.querySelectorAll('#rules tbody tr')"
SHOWN = (
    f"[...{ROWS}].filter(row => row.offsetParent !== null || row.getClientRects().length).length"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with start_browser(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser.new_page()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = judged_table(RULES)
    written = tmp_path_factory.mktemp("page") / "run-14.html"
    written.write_text(report_html(make_report(table, evidence(table, 14), NOON)))
    return written


def rows_of(page: Page, column: int) -> list[str]:
    return page.run(f"[...{ROWS}].map(row => row.cells[{column}].textContent.trim())")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [380, 1200])
def test_the_page_is_whole_and_silent(page: Page, file: Path, dark: bool, width: int) -> None:
    page.open(file, dark=dark, width=width)
    assert page.complaints == []
    assert page.requests == []
    assert page.run("document.title") == "orders, run 14: quality report"
    assert page.run("document.documentElement.scrollWidth") <= width
    assert page.run("document.querySelectorAll('section').length") >= 5


@pytest.mark.parametrize("dark", [False, True])
def test_words_can_be_told_from_the_ground(page: Page, file: Path, dark: bool) -> None:
    """Contrast of at least 4.5 to 1 for every colour that words have."""
    page.open(file, dark=dark)
    for what in ("body", ".soft", "summary", ".tag.error", ".tag.warn", ".tag.info", ".ok"):
        ratio = page.run(CONTRAST % what)
        assert ratio >= 4.5, (what, ratio)


def test_the_rules_are_sorted_and_sort_by_any_column(page: Page, file: Path) -> None:
    page.open(file)
    counts = [int(n.replace(",", "")) for n in rows_of(page, 4)]
    assert counts == sorted(counts, reverse=True)
    assert len(counts) == RULES + 4
    page.run("document.querySelectorAll('#rules thead button')[0].click()")
    names = rows_of(page, 0)
    assert names == sorted(names)
    assert page.run("document.querySelector('#rules th[aria-sort]').ariaSort") == "ascending"
    page.run("document.querySelectorAll('#rules thead button')[4].click()")
    assert [int(n.replace(",", "")) for n in rows_of(page, 4)] == counts


def test_a_thousand_rules_are_folded_until_asked_for(page: Page, file: Path) -> None:
    page.open(file)
    assert page.run(SHOWN) == 25
    page.run("document.querySelector('#rules .fold').click()")
    assert page.run(SHOWN) == RULES + 4
    page.run("document.querySelector('#rules .fold').click()")
    assert page.run(SHOWN) == 25


@pytest.mark.parametrize("width", [380, 1200])
def test_a_rule_is_found_wherever_it_is_folded(page: Page, file: Path, width: int) -> None:
    page.open(file, width=width)
    find(page, "amount_is_not_987")
    assert page.run(SHOWN) == 1
    assert page.run("document.querySelector('#rules [data-found]').textContent") == "1 found"
    find(page, "")
    assert page.run(SHOWN) == 25


def find(page: Page, words: str) -> None:
    box = "document.querySelector('input[type=search]')"
    page.run(f"{box}.value = '{words}'; {box}.dispatchEvent(new Event('input')); 0")


def test_failing_rows_unfold_and_show_every_reason_and_no_secret(page: Page, file: Path) -> None:
    page.open(file)
    row = "document.querySelector('#sample details.row')"
    body = f"{row}.querySelector('.body').checkVisibility()"
    assert page.run(body) is False
    page.run(f"{row}.querySelector('summary').click()")
    assert page.run(body) is True
    assert page.run(f"{row}.querySelectorAll('li').length") == 2
    text = page.run("document.documentElement.outerHTML")
    assert CANARY not in text
    assert "***" in page.run("document.querySelector('#sample').textContent")


def test_what_a_row_holds_is_never_run(page: Page, file: Path) -> None:
    page.open(file)
    assert page.run("document.querySelectorAll('img').length") == 0
    assert HOSTILE in page.run("document.querySelector('#rules').textContent")


def test_without_anything_found_the_page_is_whole_too(page: Page, tmp_path: Path) -> None:
    table = judged_table()
    known = replace(evidence(table, 1), batches=(), counts={}, statuses=(), verdicts=())
    file = tmp_path / "empty.html"
    file.write_text(report_html(make_report(table, known, NOON)))
    page.open(file)
    assert page.complaints == []
    assert "nothing to hold it against yet" in page.run("document.body.textContent")
