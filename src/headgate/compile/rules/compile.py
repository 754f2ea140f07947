"""A judged rule table → `dq_generated.sql`. Pure: the same rule set gives the same bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from headgate import __version__
from headgate.compile.fragments import comment, fold_lines
from headgate.compile.reconcile.body import reconcile_body
from headgate.compile.rules.aggregates import aggregate_statements
from headgate.compile.rules.judged import judged_statements, rules_view
from headgate.compile.rules.letters import outcomes_statement, refuse_statement
from headgate.compile.rules.metrics import metrics_statements
from headgate.compile.rules.model import JudgedRule, JudgedTable
from headgate.compile.rules.names import FILE, Names, names_of
from headgate.compile.rules.partials import partials_statements
from headgate.compile.rules.reading import reading_statements
from headgate.compile.rules.results import accept_statement, results_statement
from headgate.compile.rules.source import Source, source_statements, sources_of
from headgate.compile.rules.statement import statement
from headgate.compile.rules.tables import table_statements
from headgate.compile.rules.unique import has_key_table, keys_statement
from headgate.compile.rules.verdicts import all_rules
from headgate.spec.ruleset import RuleSet

MARK = "-- step:"
_RULE_SET = TypeAdapter(RuleSet)
CLOCK = """-- Every "now" of this file; the engine sets it to the time of the batch.
-- step: clock
DECLARE OR REPLACE VARIABLE batch_time TIMESTAMP DEFAULT current_timestamp();

-- Where the records come from, as JSON; the engine sets it.
DECLARE OR REPLACE VARIABLE batch_range STRING DEFAULT NULL;

-- Windows that end by then are closed: what still counts into them is late. The engine sets it.
DECLARE OR REPLACE VARIABLE closed_before TIMESTAMP DEFAULT NULL;"""


@dataclass(frozen=True)
class CompiledRules:
    """The SQL of one rule table, with what its reader must know of it.

    `text` has placeholders like `${BOOTSTRAP_SERVERS}`; `rules` are all that can give a status,
    the verdicts of a pair among them.
    """

    name: str
    revision: str
    file: str
    text: str
    rules: tuple[JudgedRule, ...]
    names: Names
    has_keys: bool


def declaration_of(judged: JudgedTable) -> dict[str, Any]:
    """The rule set without its other tables, which have revisions of their own, and without defaults."""
    plain: dict[str, Any] = _RULE_SET.dump_python(
        judged.rule_set, mode="json", exclude_defaults=True
    )
    own = [found for found in plain["tables"] if found["name"] == judged.table.name]
    return {**plain, "tables": own}


def revision_of(judged: JudgedTable, statements: Sequence[str]) -> str:
    """The one name of a revision, in the file, the ops store, the ledger and the results.

    The hash of what was declared for this table and of the SQL that it became: layout, comments
    and the version of Headgate do not count, nor does what placeholders stand for.
    """
    sql = [_without_comments(text) for text in statements]
    facts = {"declared": declaration_of(judged), "sql": sql}
    content = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()


def _without_comments(text: str) -> str:
    """The marks of steps are comments, and yet the engine goes by them."""
    lines = text.split("\n")
    return "\n".join(line for line in lines if not line.startswith("--") or line.startswith(MARK))


def compile_table(judged: JudgedTable, file: str) -> CompiledRules:
    """The table's SQL file; `file` is the rule set's, for the header."""
    names = names_of(judged.table)
    body = [fold_lines(sql) for sql in _body(judged, sources_of(judged))]
    revision = revision_of(judged, (CLOCK, *body))
    parts = [_header(judged, file, revision), CLOCK, _revision(revision), *body]
    return CompiledRules(
        name=judged.table.name,
        revision=revision,
        file=FILE,
        text="\n\n".join(parts) + "\n",
        rules=all_rules(judged),
        names=names,
        has_keys=has_key_table(judged),
    )


def _body(judged: JudgedTable, sources: tuple[Source, ...]) -> list[str]:
    if judged.table.reconcile is not None:
        return reconcile_body(judged)
    return _quality_body(judged, sources)


def _quality_body(judged: JudgedTable, sources: tuple[Source, ...]) -> list[str]:
    """Declarations first, then views, then what writes: a person reads it in the order of the data."""
    reads = [part for source in sources for part in source_statements(source)]
    writes = [accept_statement(judged), *partials_statements(judged)]
    if has_key_table(judged):
        writes.append(keys_statement(judged))
    if judged.table.is_pair or judged.table.first.topic is None:
        writes.append(outcomes_statement(judged, sources))
    return [
        *table_statements(judged),
        *reads,
        rules_view(judged),
        *judged_statements(judged, sources),
        results_statement(judged, sources),
        *metrics_statements(judged),
        *aggregate_statements(judged, sources[0]),
        *writes,
        refuse_statement(judged, sources),
        *reading_statements(judged),
    ]


def _revision(revision: str) -> str:
    words = "The revision that judges; the engine sets it to that of the batch."
    declared = f"DECLARE OR REPLACE VARIABLE batch_revision STRING\nDEFAULT '{revision}'"
    return statement("revision", words, declared)


def _header(judged: JudgedTable, file: str, revision: str) -> str:
    table = judged.table
    read = " and ".join(
        f"topic {source.topic}" if source.topic else f"table {source.iceberg}"
        for source in table.sources.values()
    )
    count = f"{len(judged.rules)} rule{'' if len(judged.rules) == 1 else 's'}"
    words = (
        f"Data quality of {table.name}: {read}, judged by {count}.",
        f"Compiled from {file}, revision {revision[:12]}, by Headgate {__version__}.",
        f"Then: SELECT * FROM dq_results_{table.name}, SELECT * FROM dq_metrics_{table.name}.",
        "Run alone, it reads everything there is, and appends to the tables.",
        "The ledger does not know of what is run by hand: try it on a copy of the tables.",
        f"  spark-sql --properties-file build/conf/spark-defaults.conf -f build/sql/rules/{table.name}/{FILE}",
    )
    return "\n".join(comment(word) for word in words)
