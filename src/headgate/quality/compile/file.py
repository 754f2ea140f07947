"""The SQL of a rule table as a whole: `dq_generated.sql`, `engine.sql`, its revision and its permanent views.

`dq_generated.sql` is what people read: views alone, from the sources to results and metrics. `engine.sql` is
what a job does with them: keep results, add up windows, write dead letters. A permanent view lays a query of
the file over the tables of the lake instead of a batch. Pure: the same rule set gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from headgate import __version__
from headgate.core.sql.fragments import QUOTED, comment, fold_lines
from headgate.core.sql.script import Script, Section, Sections, nested, statement, view
from headgate.quality.compile.resolve import JudgedRule, JudgedTable
from headgate.quality.compile.results import (
    all_rules,
    judged_statements,
    outcomes_statement,
    refuse_statement,
    results_statement,
)
from headgate.quality.compile.source import source_statements, sources_of
from headgate.quality.compile.tables import FILE, VIEWS, Names, names_of
from headgate.quality.compile.unique import has_key_table, keys_statements
from headgate.quality.compile.windows import (
    aggregate_statements,
    metrics_sections,
    partials_statements,
)
from headgate.quality.pairs import pair_support
from headgate.quality.spec.rule_set import RuleSet, RuleSource

_VIEW = re.compile(r"CREATE OR REPLACE TEMPORARY VIEW (?P<name>\S+) AS\n(?P<query>.*)", re.DOTALL)
_NOW = "current_timestamp()"
_STEP_MARK = "-- step:"
_RULE_SET = TypeAdapter(RuleSet)
CLOCK = """-- Every "now" of this file; a job sets it to the time of its batch.
DECLARE OR REPLACE VARIABLE batch_time TIMESTAMP DEFAULT current_timestamp();"""
# What a job tells its statements of a batch: the revision that judges, the offsets, which windows are closed.
_ENGINE_CLOCK = """-- Of the batch: the revision that judges it, its offsets as JSON, and up to when windows are closed.
-- step: clock
DECLARE OR REPLACE VARIABLE batch_revision STRING;
DECLARE OR REPLACE VARIABLE batch_range STRING;
DECLARE OR REPLACE VARIABLE closed_before TIMESTAMP;"""


def quality_views(names: Names, script: Script) -> list[str]:
    """Results, metrics and, where there are any, aggregates of a rule table with one source."""
    statements = [
        f"CREATE OR REPLACE VIEW {VIEWS}.{names.results} AS\nSELECT * FROM {names.results_table}",
        permanent_view(script, names.metrics, {names.counts: counts_query(names)}),
    ]
    return [*statements, *script.named("reading")]


def permanent_view(script: Script, name: str, given: Mapping[str, str]) -> str:
    """A view of the file as a permanent one, over the queries that are given for the views it rests on."""
    queries = {**_queries(script), **given}
    needed = _needed(name, queries, frozenset(given))
    clauses = [f"{view} AS {nested(queries[view])}" for view in queries if view in needed]
    query = _at_query_time(f"WITH {', '.join(clauses)}\n{queries[name]}")
    return f"CREATE OR REPLACE VIEW {VIEWS}.{name} AS\n{query}"


def _at_query_time(query: str) -> str:
    """The query without the variable of a batch; words of a rule may name it, and stay as they are."""
    found = re.compile(rf"{QUOTED.pattern}|(?P<variable>session\.batch_time)", re.DOTALL)
    return found.sub(lambda match: _NOW if match["variable"] else match[0], query)


def _queries(script: Script) -> dict[str, str]:
    """The views of the file by name, in their order."""
    found = (_VIEW.fullmatch(step.sql) for step in script.steps)
    return {view["name"]: view["query"] for view in found if view}


def _needed(name: str, queries: Mapping[str, str], bottom: frozenset[str]) -> set[str]:
    """The views that a view rests on, down to those of which the queries are given."""
    query = QUOTED.sub("", queries[name])
    direct = {
        view
        for view in queries
        if view != name and re.search(rf"\b(FROM|JOIN) {re.escape(view)}(?!\w)", query)
    }
    below = (_needed(view, queries, bottom) for view in direct - bottom)
    return direct.union(*below)


def counts_query(names: Names) -> str:
    """Counts by window, rule and severity, as the view of counts has them, from all partials."""
    return f"""SELECT window_start, name, severity, n
FROM {names.partials_table}
WHERE kind IN ('rows', 'rule')"""


@dataclass(frozen=True)
class CompiledRules:
    """The SQL of one rule table, with what its reader must know of it.

    `text` and `engine` have placeholders like `${BOOTSTRAP_SERVERS}`; `rules` are all that can give a
    status, the verdicts of a pair among them.
    """

    name: str
    revision: str
    file: str
    text: str
    engine: str
    rules: tuple[JudgedRule, ...]
    names: Names
    has_keys: bool


def declaration_of(judged: JudgedTable) -> dict[str, Any]:
    """The rule set without its other tables, which have revisions of their own, and without defaults."""
    plain: dict[str, Any] = _RULE_SET.dump_python(
        judged.rule_set, mode="json", exclude_defaults=True
    )
    tables = [table for table in plain["tables"] if table["name"] == judged.table.name]
    return {**plain, "tables": tables}


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
    return "\n".join(
        line for line in lines if not line.startswith("--") or line.startswith(_STEP_MARK)
    )


def compile_table(judged: JudgedTable, file: str) -> CompiledRules:
    """The table's SQL files; `file` is the rule set's, for the header."""
    names = names_of(judged.table)
    is_pair = judged.table.is_pair
    sections = pair_support().file_sections(judged) if is_pair else _quality_sections(judged)
    views = [_fold_section(section) for section in sections.views]
    engine = [fold_lines(sql) for sql in sections.engine]
    statements = [sql for section in views for sql in section.statements]
    revision = revision_of(judged, (CLOCK, *statements, *engine))
    return CompiledRules(
        name=judged.table.name,
        revision=revision,
        file=FILE,
        text=_text(judged, file, revision, views),
        engine="\n\n".join([_engine_header(judged, file, revision), _ENGINE_CLOCK, *engine]) + "\n",
        rules=all_rules(judged),
        names=names,
        has_keys=has_key_table(judged),
    )


def _fold_section(section: Section) -> Section:
    return Section(section.title, [fold_lines(sql) for sql in section.statements])


def _quality_sections(judged: JudgedTable) -> Sections:
    """From the source to results and metrics, in the order of the data."""
    names = names_of(judged.table)
    (source,) = sources_of(judged)
    aggregates = aggregate_statements(judged, source)
    views = [
        Section(f"the rows of {_said(source.declared)}", source_statements(source)),
        Section(f"the rules ({len(judged.rules)})", judged_statements(judged, source)),
        Section(f"{names.results}: every row with its result", [results_statement(judged, source)]),
        *metrics_sections(judged, names),
    ]
    words = "Every row, clean or not, is kept with its result."
    accept = f"""INSERT INTO {names.results_table} BY NAME
SELECT *, session.batch_revision AS revision FROM {names.results}"""
    committed = view(
        names.committed,
        "The results to be counted; the job replaces this view with those that it has staged.",
        f"SELECT * FROM {names.results}",
        step="view",
    )
    engine = [
        *(keys_statements(judged) if has_key_table(judged) else []),
        statement("accept", words, accept),
        committed,
        *aggregates,
        *partials_statements(judged, names, names.aggregate_partials if aggregates else ""),
        *([outcomes_statement(judged, source)] if source.declared.topic is None else []),
        refuse_statement(judged, source),
    ]
    return Sections(views, engine)


def _text(judged: JudgedTable, file: str, revision: str, views: Sequence[Section]) -> str:
    """The file, with a table of contents that names the line of each section."""
    lines = (
        _header(judged, file, revision, [(0, section.title) for section in views]).count("\n") + 1
    )
    line = lines + CLOCK.count("\n") + 4
    contents: list[tuple[int, str]] = []
    for section in views:
        contents.append((line, section.title))
        line += sum(sql.count("\n") + 2 for sql in section.statements)
    body = [sql for section in views for sql in section.statements]
    return "\n\n".join([_header(judged, file, revision, contents), CLOCK, *body]) + "\n"


def _said(source: RuleSource) -> str:
    return f"topic {source.topic}" if source.topic else f"table {source.iceberg}"


def _judges(judged: JudgedTable) -> str:
    count = len(judged.rules)
    rules = f"{count or 'no'} rule{'' if count == 1 else 's'}"
    if not judged.table.is_pair:
        return rules
    return f"{rules} and the decision table" if count else "the decision table"


def _title(judged: JudgedTable) -> str:
    kind = "Reconciliation" if judged.table.is_pair else "Data quality"
    sources = " and ".join(map(_said, judged.table.sources.values()))
    return f"{kind} of {judged.table.name}: {sources}, judged by {_judges(judged)}."


def _header(
    judged: JudgedTable, file: str, revision: str, contents: Sequence[tuple[int, str]]
) -> str:
    name = judged.table.name
    words = (
        _title(judged),
        f"Compiled from {file}, revision {revision[:12]}, by Headgate {__version__}.",
        "",
        *(f"  line {line:>3}  {title}" for line, title in contents),
        "",
        "Creates temporary views only, however often it is run. A job replaces the view of each topic or table",
        f"with the records of its batch. To change a rule, edit {file} and compile it again.",
        "strict_json gives the declared fields of a record, other fields in _extra and the names of absent ones in",
        "_missing, or a _reason_code where it has no row to give; 'drift' says what records with other fields",
        "become. rule_verdict gives the first entry whose condition is true, with the names of all such entries",
        "in `rules`, or NULL if there is none; a condition that is NULL does not match. Both are Spark functions",
        "of Headgate, which the properties file brings along.",
        f"  spark-sql --properties-file build/conf/spark-defaults.conf -i build/sql/rules/{name}/{FILE}",
        f"opens a prompt for: SELECT * FROM dq_results_{name}; SELECT * FROM dq_metrics_{name};",
    )
    return "\n".join(comment(word).rstrip() for word in words)


def _engine_header(judged: JudgedTable, file: str, revision: str) -> str:
    words = (
        f"What the job of {judged.table.name} does with the views of {FILE}; it makes the tables itself.",
        f"Compiled from {file}, revision {revision[:12]}, by Headgate {__version__}.",
    )
    return "\n".join(map(comment, words))
