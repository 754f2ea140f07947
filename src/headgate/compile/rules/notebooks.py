"""Notebooks over the views of a rule table: for Jupyter over Connect, for Zeppelin over JDBC."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from headgate.compile.fragments import comment
from headgate.compile.rules.model import JudgedTable
from headgate.expr.literals import spark_identifier
from headgate.spec.durations import in_words

Form = Literal["jupyter", "zeppelin", "sql"]
SUFFIXES: Mapping[Form, str] = {"jupyter": ".ipynb", "zeppelin": ".zpln", "sql": ".sql"}
Json: TypeAlias = "str | int | bool | None | list[Json] | dict[str, Json]"

CONNECT = """\
from contextlib import ExitStack

from headgate.engine.connect import connect

engine = ExitStack()
spark = engine.enter_context(connect())


def show(sql):
    return spark.sql(sql).toPandas()"""


@dataclass(frozen=True)
class Query:
    """One question to the views: its title, what the answer tells, and the SQL."""

    title: str
    words: str
    sql: str


@dataclass(frozen=True)
class Note:
    """A notebook before it has a form; `name` makes its file and the ids in it."""

    name: str
    title: str
    about: str
    queries: tuple[Query, ...]


def notebook(judged: JudgedTable, form: Form) -> str:
    """The notebook's file: same rule table, same bytes."""
    name = judged.table.name
    return rendered(Note(name, f"Data quality of {name}", _about(judged), queries(judged)), form)


def rendered(note: Note, form: Form) -> str:
    """The file; as `sql` it is what `headgate sql -f` takes."""
    if form == "sql":
        return _script(note)
    body = _jupyter(note) if form == "jupyter" else _zeppelin(note)
    return json.dumps(body, indent=1, ensure_ascii=False) + "\n"


def _script(note: Note) -> str:
    parts = [comment(note.title)]
    parts += [f"{comment(f'{q.title}: {q.words}')}\n{q.sql};" for q in note.queries]
    return "\n\n".join(parts) + "\n"


def queries(judged: JudgedTable) -> tuple[Query, ...]:
    """What a person asks first, in this order."""
    name = judged.table.name
    results, metrics = f"dq_results_{name}", f"dq_metrics_{name}"
    found = [
        Query("The views are there", "Every rule table has two.", "SHOW VIEWS"),
        Query(
            "How the rows stand",
            f"A sound row is `{judged.clean_status}`.",
            f"SELECT dq_status, dq_severity, count(*) AS records\nFROM {results}\n"
            "GROUP BY dq_status, dq_severity\nORDER BY records DESC, dq_status",
        ),
        Query("Rows", "As they were judged.", f"SELECT *\nFROM {results}\nLIMIT 20"),
        Query(
            "What is wrong, and why",
            "The first rule that holds gives the status; `dq_rules` names all that hold.",
            "SELECT pk, action, dq_status, dq_reason, dq_rules, processing_time\n"
            f"FROM {results}\nWHERE dq_status <> '{judged.clean_status}'\nLIMIT 50",
        ),
        Query(
            "How often each rule holds",
            "Also where an earlier rule gave the status.",
            f"SELECT rule, count(*) AS held\nFROM {results}\nLATERAL VIEW explode(dq_rules) AS rule\n"
            "GROUP BY rule\nORDER BY held DESC, rule",
        ),
        Query(
            "Metrics by window",
            f"One row for each window of {in_words(judged.rule_set.metrics.window).lower()}.",
            f"SELECT window_start,\n{_metric_columns(judged)}  dq_error_total,\n"
            f"  dq_warn_total,\n  dq_info_total\nFROM {metrics}\n"
            "ORDER BY window_start DESC\nLIMIT 60",
        ),
        Query(
            "Totals",
            "With the dimensions that every metric carries.",
            "SELECT env, dc, table_name, topic_name,\n  sum(dq_error_total) AS errors,\n"
            "  sum(dq_warn_total) AS warnings,\n  sum(dq_info_total) AS infos\n"
            f"FROM {metrics}\nGROUP BY env, dc, table_name, topic_name",
        ),
    ]
    if judged.table.is_pair:
        found.append(_hashes(results))
    return tuple(found)


def _hashes(results: str) -> Query:
    return Query(
        "Pairs that differ",
        "Both hashes, side by side.",
        f"SELECT pk, hash_onprem, hash_cloud\nFROM {results}\n"
        "WHERE dq_status = 'MISMATCH'\nORDER BY pk\nLIMIT 20",
    )


def _metric_columns(judged: JudgedTable) -> str:
    namespace = judged.rule_set.metrics.namespace
    names = dict.fromkeys(rule.metric for rule in judged.rules)
    return "".join(f"  {spark_identifier(f'{namespace}.{name}')},\n" for name in names)


def _about(judged: JudgedTable) -> str:
    table = judged.table
    topics = " and ".join(
        f"`{source.topic or source.iceberg}`" for source in table.sources.values()
    )
    rules = "\n".join(
        f"| `{rule.name}` | {rule.status} | {rule.severity} | {_cell(rule.reason)} |"
        for rule in judged.rules
    )
    return (
        f"# Data quality of {table.name}\n\nFrom {topics}, key `{table.pk}`.\n\n"
        f"| rule | status | severity | in words |\n| --- | --- | --- | --- |\n{rules}"
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _jupyter(note: Note) -> Json:
    name = note.name
    cells = [_markdown(name, 0, note.about), _code(name, 1, CONNECT)]
    for number, query in enumerate(note.queries):
        cells.append(_markdown(name, 2 * number + 2, f"## {query.title}\n\n{query.words}"))
        cells.append(_code(name, 2 * number + 3, f'show("""\n{query.sql}\n""")'))
    cells.append(_code(name, len(cells), "engine.close()"))
    kernel: Json = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": list(cells),
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _markdown(name: str, number: int, text: str) -> Json:
    return {
        "cell_type": "markdown",
        "id": _id(name, number),
        "metadata": {},
        "source": _lines(text),
    }


def _code(name: str, number: int, text: str) -> Json:
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": _id(name, number),
        "metadata": {},
        "outputs": [],
        "source": _lines(text),
    }


def _lines(text: str) -> Json:
    return list(text.splitlines(keepends=True))


def _id(name: str, number: int) -> str:
    return hashlib.sha256(f"{name} {number}".encode()).hexdigest()[:12]


def _zeppelin(note: Note) -> Json:
    name = note.name
    texts = [f"%md\n{note.about}"]
    for query in note.queries:
        texts += [f"%md\n## {query.title}\n\n{query.words}", f"%jdbc\n{query.sql}"]
    return {
        "paragraphs": [_paragraph(name, number, text) for number, text in enumerate(texts)],
        "name": f"Headgate/{note.title}",
        "id": _id(name, 0)[:9].upper(),
        "defaultInterpreterGroup": "jdbc",
        "noteParams": {},
        "noteForms": {},
        "angularObjects": {},
        "config": {},
        "info": {},
    }


def _paragraph(name: str, number: int, text: str) -> Json:
    language = "markdown" if text.startswith("%md") else "sql"
    return {
        "text": text,
        "config": {
            "editorSetting": {"language": language, "editOnDblClick": language == "markdown"},
            "editorMode": f"ace/mode/{language}",
            "enabled": True,
        },
        "settings": {"params": {}, "forms": {}},
        "id": f"paragraph_{_id(name, number)}",
        "status": "READY",
    }
