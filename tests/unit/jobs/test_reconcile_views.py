"""Of the views in a pair's file a batch makes those that it reads, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from headgate.compile.dataset import PLACEHOLDERS
from headgate.compile.rules.compile import compile_table
from headgate.compile.rules.judge import load_judged
from headgate.compile.script import parse_script
from headgate.jobs.reconcile_states import STATEMENTS, views_of_batches

ROOT = Path(__file__).parents[3]
COMMITTED = "dq_committed_business"
VIEW = re.compile(r"CREATE OR REPLACE TEMPORARY VIEW (\w+)")


def test_a_batch_makes_every_view_that_it_reads_and_none_for_people() -> None:
    table = load_judged(ROOT / "rules" / "topic1.yml", PLACEHOLDERS).tables[0]
    script = parse_script("business", compile_table(table, "rules/topic1.yml").text)
    declared = {name for step in script.steps for name in VIEW.findall(step.sql)}
    steps = views_of_batches(script, COMMITTED)
    made = [name for step in steps for name in VIEW.findall(step.sql)]
    statements = [step.sql for step in script.steps if step.name in STATEMENTS]
    read = set(re.findall(r"\w+", " ".join([*statements, *(step.sql for step in steps)])))
    # The sources and the rows that were staged are bound to frames, the partials' view behind them.
    bound = {"topic1_onprem_source", "topic2_cloud_source", COMMITTED, "dq_partials_business"}
    assert (declared & read) - bound == {*made}
    assert declared - read == {
        "topic1_onprem", "topic1_with_pk", "topic2_cloud", "dq_results_business", "dq_hash_check",
        "dq_metrics_business", "dq_metrics_sink_business",
    }  # fmt: skip
    in_order = [name for step in script.steps for name in VIEW.findall(step.sql) if name in made]
    assert made == in_order
