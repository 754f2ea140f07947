"""The reconciliation's page in a real browser: whole, silent, readable in light and dark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.browser import CONTRAST, Page, start_browser
from tests.support.reconcile_evidence import evidence, header

from headgate.reconcile.report.make import make_report
from headgate.reconcile.report.render import report_html


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with start_browser(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser.new_page()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = tmp_path_factory.mktemp("page") / "report.html"
    written.write_text(report_html(make_report(header(), evidence())))
    return written


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [380, 1200])
def test_the_page_is_whole_and_silent(page: Page, file: Path, dark: bool, width: int) -> None:
    page.open(file, dark=dark, width=width)
    assert page.complaints == []
    assert page.requests == []
    assert page.run("document.title") == "business: reconciliation report"
    assert page.run("document.documentElement.scrollWidth") <= width
    assert page.run("document.querySelectorAll('section').length") == 8
    assert page.run("document.querySelectorAll('svg rect').length") > 100
    assert page.run("document.querySelectorAll('img').length") == 0


@pytest.mark.parametrize("dark", [False, True])
def test_words_can_be_told_from_the_ground(page: Page, file: Path, dark: bool) -> None:
    page.open(file, dark=dark)
    for what in ("body", ".soft", "summary", ".tag.error", ".tag.info", ".ok", ".up", ".value"):
        assert page.run(CONTRAST % what) >= 4.5, what


def test_a_key_of_the_repair_list_is_found_and_the_list_sorts(page: Page, file: Path) -> None:
    page.open(file)
    shown = (
        "[...document.querySelectorAll('#repair tbody tr')]"
        ".filter(row => row.getClientRects().length).length"
    )
    assert page.run(shown) == 25
    page.run("document.querySelector('#repair .fold').click()")
    assert page.run(shown) == 50
    page.run(
        "{const box = document.querySelector('#repair input[type=search]'); box.value = '49';"
        " box.dispatchEvent(new Event('input'))}"
    )
    assert page.run(shown) == 1
