"""Two tables without a key: two multisets of rows, compared exactly and counted on both sides."""

from __future__ import annotations

from headgate.conditions.expr_literals import spark_identifier, spark_literal
from headgate.core.sql.compile_fragments import call, fold_lines
from headgate.core.sql.statement import nested, select, statement
from headgate.reconcile.table_compare.compare_sides import VIEW, head, readable, sides, zone
from headgate.reconcile.table_compare.model import SIDES, Plan

DIFFERENCES = VIEW.format("differences")
ROW, ONPREM_ROWS, CLOUD_ROWS, BOTH = "dq_row", "onprem_rows", "cloud_rows", "dq_both"


def unkeyed_sql(plan: Plan) -> str:
    """The whole script: how often each row stands on either side."""
    parts = [head(plan, "as multisets of rows"), zone(), *sides(plan)]
    return fold_lines("\n\n".join([*parts, _kept(plan), _counts()]))


def unkeyed_samples_sql(plan: Plan, limit: int) -> str:
    return select(
        [readable(plan, plan.columns, ROW), ONPREM_ROWS, CLOUD_ROWS],
        f"FROM {DIFFERENCES}",
        f"WHERE {ROW} IS NOT NULL",
        f"ORDER BY {ROW}",
        f"LIMIT {limit}",
    )


def _kept(plan: Plan) -> str:
    names = [spark_identifier(column.name) for column in plan.columns]
    every = "\nUNION ALL\n".join(
        select([*names, f"'{side}' AS dq_side"], f"FROM {VIEW.format(side)}") for side in SIDES
    )
    counted = select(
        [
            *names,
            f"count_if(dq_side = 'onprem') AS {ONPREM_ROWS}",
            f"count_if(dq_side = 'cloud') AS {CLOUD_ROWS}",
        ],
        f"FROM {nested(every)}",
        f"GROUP BY {', '.join(names)}",
    )
    fields = [f"{spark_literal(c.name)}, {n}" for c, n in zip(plan.columns, names, strict=True)]
    equal = f"{ONPREM_ROWS} = {CLOUD_ROWS}"
    query = select(
        [
            f"{call('IF', [equal, 'NULL', call('named_struct', fields)])} AS {ROW}",
            f"sum({ONPREM_ROWS}) AS {ONPREM_ROWS}",
            f"sum({CLOUD_ROWS}) AS {CLOUD_ROWS}",
            f"sum(least({ONPREM_ROWS}, {CLOUD_ROWS})) AS {BOTH}",
        ],
        f"FROM {nested(counted)}",
        "GROUP BY 1",
    )
    words = "Rows that stand equally often on both sides are one row here; each other has its own."
    return statement("differences", words, f"CACHE TABLE {DIFFERENCES} AS\n{query}")


def _counts() -> str:
    query = select(
        [
            f"sum({BOTH}) AS match",
            f"sum({ONPREM_ROWS} - {BOTH}) AS missing_cloud",
            f"sum({CLOUD_ROWS} - {BOTH}) AS missing_onprem",
        ],
        f"FROM {DIFFERENCES}",
    )
    return statement("counts", "How many rows stand on both sides, and on one alone.", query)
