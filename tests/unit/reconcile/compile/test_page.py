"""The page shows the decision table as it is."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[4]


def test_the_page_shows_the_table_as_it_is() -> None:
    spec = importlib.util.spec_from_file_location("page", ROOT / "tools/decisions_reference.py")
    assert spec
    assert spec.loader
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    text = tool.PAGE.read_text("utf-8")
    assert tool.page(text) == text, "run: python tools/decisions_reference.py"
