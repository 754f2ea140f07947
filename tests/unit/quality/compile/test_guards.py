"""Rule sources: no value can make Spark compute for seconds, raise, or take today's date."""

from __future__ import annotations

from pathlib import Path

from tests.support.rule_tables import HEAD, LAKE, compile_script

from headgate.core.sql.fragments import tried_of_any
from headgate.declarations.types import parse_type
from headgate.quality.compile.resolve import judged
from headgate.quality.spec.loader import load_rules

RULE = '      - {name: odd, when: "amount > 1"}'


def views(folder: Path, source: str) -> str:
    path = folder / "rules.yml"
    text = (HEAD % (source, RULE)).replace("amount: DOUBLE", 'amount: "DECIMAL(10, 2)"')
    path.write_text(text, encoding="utf-8")
    return "\n".join(compile_script(judged(load_rules(path, {}))[0]).named("view"))


def test_texts_of_a_table_are_tried_in_their_forms_alone(tmp_path: Path) -> None:
    found = "".join(views(tmp_path, LAKE).split())
    for name, kind in (("amount", "DECIMAL(10, 2)"), ("at", "TIMESTAMP_LTZ(3)")):
        assert "".join(tried_of_any(name, parse_type(kind)).split()) in found
