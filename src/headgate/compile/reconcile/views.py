"""What is read of a reconciled pair: the named view of pairs, and the permanent views over the lake."""

from __future__ import annotations

from dataclasses import replace

from headgate.compile.reconcile.judging import Judging
from headgate.compile.reconcile.merging import merged_query
from headgate.compile.reconcile.messages import other_columns
from headgate.compile.reconcile.tables import CHANGES
from headgate.compile.rules.metrics import dimensions, metric_columns
from headgate.compile.rules.names import VIEWS, Names
from headgate.compile.rules.statement import nested, select, statement, view
from headgate.expr.literals import spark_column, spark_identifier

_NOW = "current_timestamp()"


def named_views(judging: Judging, names: Names) -> list[str]:
    """Views under names that the declaration asks for, as the documents have them."""
    table, found = judging.judged.table, list[str]()
    if table.reconcile is not None and table.reconcile.view is not None:
        words = "Each key with both hashes and its status."
        query = pairs_query(judging, names.verdicts)
        found.append(view(spark_identifier(table.reconcile.view), words, query, "verdict view"))
    return found


def pairs_query(judging: Judging, verdicts: str) -> str:
    """One row for each key, with what else the on-prem message says."""
    table, source = judging.judged.table, judging.sources["onprem"]
    others = [
        spark_column(name, source.declared.alias) for name in other_columns(table, "onprem", source)
    ]
    key = spark_identifier(table.pk)
    columns = ["pk" if key == "pk" else f"pk AS {key}", "hash_onprem", "hash_cloud", "dq_status"]
    return select([*others, *columns], f"FROM {verdicts}")


def reading_statements(judging: Judging, names: Names) -> list[str]:
    """The permanent views; they merge and judge now, so that they need no batch to be right."""
    now = replace(judging, at=_NOW, revision="CAST(NULL AS STRING)")
    table = judging.judged.table
    merged = select(
        ["*", "TRUE AS whole", "TRUE AS changed", "'now' AS origin"],
        f"FROM {nested(merged_query(names.states_table))}",
    )
    results = f"SELECT * EXCEPT (changed)\nFROM {nested(now.query(nested(merged)))}"
    found = [
        _permanent(names.results, "Every key with its verdict at this moment.", results),
        _permanent(names.audit, "Every change of a verdict, each once.", _audit(names)),
        _permanent(names.status, "How many keys have which status.", _status(names)),
        _permanent(names.metrics, "The changes in each window.", _metrics(judging, names)),
    ]
    if table.reconcile is not None and table.reconcile.view is not None:
        query = pairs_query(judging, f"{VIEWS}.{names.results}")
        words = "Each key with both hashes and its status."
        found.append(_permanent(table.reconcile.view, words, query))
    return found


def _audit(names: Names) -> str:
    """What is told of a key twice in a row is no change; what comes back after another is one."""
    order = "processing_time, onprem_version, cloud_version, settled"
    before = f"lag(id) OVER (PARTITION BY pk ORDER BY {order})"
    told = select([*CHANGES, f"{before} AS _before"], f"FROM {names.results_table}")
    return select(tuple(CHANGES), f"FROM {nested(told)}", "WHERE NOT id <=> _before")


def _status(names: Names) -> str:
    return select(
        ["dq_status", "rollup", "count(*) AS cnt"],
        f"FROM {VIEWS}.{names.results}",
        "GROUP BY dq_status, rollup",
    )


def _metrics(judging: Judging, names: Names) -> str:
    place = ["window_start", *dimensions(judging.judged)]
    return select(
        [*place, *metric_columns(judging.judged)],
        f"FROM {names.partials_table}",
        "WHERE kind IN ('rows', 'rule')",
        f"GROUP BY {', '.join(place)}",
    )


def _permanent(name: str, words: str, query: str) -> str:
    sql = f"CREATE OR REPLACE VIEW {VIEWS}.{spark_identifier(name)} AS\n{query}"
    return statement("reading", words, sql)
