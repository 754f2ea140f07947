"""SQL that compares multisets of rows: keys that stand more than once on a side, and tables without a key."""

from __future__ import annotations

from headgate.conditions.literals import spark_identifier, spark_literal
from headgate.core.sql.fragments import call, fold_lines
from headgate.core.sql.script import nested, select, statement, view
from headgate.reconcile.table_compare.keyed import (
    KEY,
    STATUS,
    Bits,
    coalesced_key,
    key_names,
    status_case,
)
from headgate.reconcile.table_compare.plan import MATCH, SIDES, Plan
from headgate.reconcile.table_compare.sides import (
    PRESENT,
    REPEATED,
    VIEW,
    head,
    readable,
    sides,
    zone,
)

ROWS_TOGETHER = "(rows together)"
COPIES, TOGETHER = "dq_copies", "dq_together"
DIFFERENCES = VIEW.format("repeated_differences")


def repeated_bits(plan: Plan) -> Bits:
    return Bits((*(column.name for column in plan.columns), ROWS_TOGETHER))


def repeated_keys_sql(plan: Plan) -> str:
    """The script that finds the keys that stand more than once on a side."""
    found = "\nUNION\n".join(
        select(key_names(plan), f"FROM {VIEW.format(side)}", "GROUP BY ALL", "HAVING count(*) > 1")
        for side in SIDES
    )
    cached = statement(
        "repeated",
        "Keys that stand more than once on a side.",
        f"CACHE TABLE {REPEATED} AS\n{found}",
    )
    return fold_lines("\n\n".join([head(plan, "keys that repeat"), zone(), *sides(plan), cached]))


def repeated_sql(plan: Plan) -> str:
    """The script that judges them, once they are found."""
    parts = [*(_together(plan, side) for side in SIDES), _kept(plan), *_answers(plan)]
    title = head(plan, "keys that repeat, all rows of a key together")
    return fold_lines("\n\n".join([title, *parts]))


def repeated_samples_sql(plan: Plan, limit: int) -> str:
    """Some of them that do not match: key, status and how often they stand on each side."""
    return select(
        [readable(plan, plan.key, KEY), STATUS, "onprem_copies", "cloud_copies"],
        f"FROM {DIFFERENCES}",
        f"WHERE {STATUS} <> '{MATCH}'",
        f"ORDER BY {KEY}",
        f"LIMIT {limit}",
    )


def _together(plan: Plan, side: str) -> str:
    names = [spark_identifier(column.name) for column in plan.columns]
    fields = [f"{spark_literal(c.name)}, {n}" for c, n in zip(plan.columns, names, strict=True)]
    whole = call("named_struct", fields) if fields else "TRUE"
    keys = key_names(plan)
    on = " AND ".join(f"s.{key} <=> k.{key}" for key in keys)
    query = select(
        [
            *(f"s.{key}" for key in keys),
            *(f"sort_array(collect_list(named_struct('v', {name}))) AS {name}" for name in names),
            f"sort_array(collect_list({whole})) AS {TOGETHER}",
            f"count(*) AS {COPIES}",
            f"TRUE AS {PRESENT}",
        ],
        f"FROM {VIEW.format(side)} AS s",
        f"LEFT SEMI JOIN {REPEATED} AS k",
        f"  ON {on}",
        f"GROUP BY {', '.join(f's.{key}' for key in keys)}",
    )
    return view(f"{VIEW.format(side)}_together", f"All rows of a key, {side}.", query, "view")


def _kept(plan: Plan) -> str:
    bits, keys = repeated_bits(plan), key_names(plan)
    conditions = [
        *(f"l.{n} <=> r.{n}" for n in (spark_identifier(c.name) for c in plan.columns)),
        f"l.{TOGETHER} <=> r.{TOGETHER}",
    ]
    pairs = select(
        [
            f"{coalesced_key(plan)} AS {KEY}",
            f"l.{PRESENT} AS on_onprem",
            f"r.{PRESENT} AS in_cloud",
            f"coalesce(l.{COPIES}, 0) AS onprem_copies",
            f"coalesce(r.{COPIES}, 0) AS cloud_copies",
            *bits.expressions(conditions),
        ],
        f"FROM {VIEW.format('onprem')}_together AS l",
        f"FULL OUTER JOIN {VIEW.format('cloud')}_together AS r",
        f"  ON {' AND '.join(f'l.{key} <=> r.{key}' for key in keys)}",
    )
    last = bits.numbers[-1]
    query = select(
        [
            f"* EXCEPT ({last})",
            f"{_only_together(bits)} AS {last}",
            f"{status_case(bits)} AS {STATUS}",
        ],
        f"FROM {nested(pairs)}",
    )
    words = "The status of each key that repeats."
    return statement("differences", words, f"CACHE TABLE {DIFFERENCES} AS\n{query}")


def _only_together(bits: Bits) -> str:
    """The last number without the bit of `ROWS_TOGETHER`, unless no column differs by itself."""
    *others, last = bits.numbers
    _, bit = bits.place(len(bits.names) - 1)
    alone = " AND ".join([*(f"{number} = 0" for number in others), f"{last} = {bit}L"])
    return f"IF({alone}, {last}, {last} & ~{bit}L)"


def _answers(plan: Plan) -> list[str]:
    counts = select(
        [
            STATUS,
            "count(*) AS dq_keys",
            "count_if(onprem_copies > 1) AS onprem_repeated",
            "count_if(cloud_copies > 1) AS cloud_repeated",
        ],
        f"FROM {DIFFERENCES}",
        f"GROUP BY {STATUS}",
    )
    columns = repeated_bits(plan).counted(DIFFERENCES, "1")
    return [
        statement("counts", "How many of these keys have which status.", counts),
        statement("columns", "For how many of these keys each column differs.", columns),
    ]


ROW_DIFFERENCES = VIEW.format("differences")
ROW, ONPREM_ROWS, CLOUD_ROWS, BOTH = "dq_row", "onprem_rows", "cloud_rows", "dq_both"


def unkeyed_sql(plan: Plan) -> str:
    """The whole script: how often each row stands on either side."""
    parts = [head(plan, "as multisets of rows"), zone(), *sides(plan)]
    return fold_lines("\n\n".join([*parts, _cache_row_counts(plan), _counts()]))


def unkeyed_samples_sql(plan: Plan, limit: int) -> str:
    return select(
        [readable(plan, plan.columns, ROW), ONPREM_ROWS, CLOUD_ROWS],
        f"FROM {ROW_DIFFERENCES}",
        f"WHERE {ROW} IS NOT NULL",
        f"ORDER BY {ROW}",
        f"LIMIT {limit}",
    )


def _cache_row_counts(plan: Plan) -> str:
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
    return statement("differences", words, f"CACHE TABLE {ROW_DIFFERENCES} AS\n{query}")


def _counts() -> str:
    query = select(
        [
            f"sum({BOTH}) AS match",
            f"sum({ONPREM_ROWS} - {BOTH}) AS missing_cloud",
            f"sum({CLOUD_ROWS} - {BOTH}) AS missing_onprem",
        ],
        f"FROM {ROW_DIFFERENCES}",
    )
    return statement("counts", "How many rows stand on both sides, and on one alone.", query)
