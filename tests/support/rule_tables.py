"""Judged rule tables and their compiled SQL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headgate.core.sql.script import PLACEHOLDERS, Script, parse_rule_script
from headgate.quality.compile.file import CompiledRules, compile_table
from headgate.quality.compile.resolve import JudgedTable, judged, judged_table
from headgate.quality.spec.loader import find_table, load_rules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
HEAD = """
version: 2
metadata: {env: test, pipeline: tests}
metrics: {namespace: dq.tests, window: 1 MINUTE}
tables:
  - name: things
    pk: id
    sources:
      onprem:
        %s
        table: things_seen
        event_time: at
        columns:
          id: STRING
          name: {type: STRING, sensitive: true}
          amount: DOUBLE
          at: TIMESTAMP(3)
    rules:
%s
"""
TOPIC, LAKE = "topic: things", "iceberg: silver.things"


def load_rule_table(folder: Path, rules: str, source: str = TOPIC) -> JudgedTable:
    """Write and judge a table with these rules, one a line."""
    path = folder / "rules.yml"
    lines = "\n".join(f"      - {line.strip()}" for line in rules.strip().splitlines())
    path.write_text(HEAD % (source, lines), encoding="utf-8")
    return judged(load_rules(path, {}))[0]


def shipped_table(name: str) -> JudgedTable:
    """A rule table that the project ships."""
    rules = load_rules(find_table(ROOT, name), PLACEHOLDERS)
    return judged_table(rules, rules.value.table(name))


def compile_shipped(name: str) -> CompiledRules:
    """The compiled SQL of a shipped rule table."""
    file = find_table(ROOT, name).relative_to(ROOT).as_posix()
    return compile_table(shipped_table(name), file)


def compile_script(judged: JudgedTable) -> Script:
    """The compiled SQL of a table, as the steps that its job runs."""
    return script_of(compile_table(judged, "rules.yml"), judged)


def run_views(session: SparkSession, judged: JudgedTable) -> Script:
    """Run what people read of a compiled table; its sources must be bound in the session before."""
    sources = (f"{source.table}_source" for source in judged.table.sources.values())
    compiled = compile_table(judged, "rules.yml")
    script = parse_rule_script(compiled.file, compiled.text, sources)
    for step in script.steps:
        if step.name != "source":
            session.sql(step.sql)
    return script


def script_of(compiled: CompiledRules, judged: JudgedTable) -> Script:
    """Both files of a compiled table, as the steps that its job runs."""
    sources = (f"{source.table}_source" for source in judged.table.sources.values())
    return parse_rule_script(compiled.file, f"{compiled.text}\n{compiled.engine}", sources)
