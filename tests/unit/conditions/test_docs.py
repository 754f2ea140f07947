from __future__ import annotations

import re
from pathlib import Path

from headgate.conditions.functions import FUNCTION_NAMES

ROOT = Path(__file__).parents[3]


def test_the_docs_list_exactly_the_functions_there_are() -> None:
    text = (ROOT / "docs/conditions.md").read_text()
    section = text.partition("## Functions")[2].partition("## NULL")[0]
    calls = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    named = {name for line in calls for name in re.findall(r"`(\w+)[(`]", line)}
    assert named == set(FUNCTION_NAMES)
