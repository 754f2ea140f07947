"""The tables of a reconciled pair: states, one row for each change of a verdict, window partials."""

from __future__ import annotations

from headgate.compile.fragments import CATALOG, TABLE_PROPERTIES, dead_letter_table
from headgate.compile.rules.names import NAMESPACE, Names
from headgate.compile.rules.tables import PARTIALS, RESULTS, table_statement

READING = {
    "version": "TIMESTAMP",
    "partition": "INT",
    "offset": "BIGINT",
    "hash": "STRING",
    "hash_version": "INT",
    "action": "STRING",
    "read_at": "TIMESTAMP",
    "row": "STRING",
}
FIRST = {
    "version": "TIMESTAMP",
    "read_at": "TIMESTAMP",
    "partition": "INT",
    "offset": "BIGINT",
    "hash": "STRING",
}
END = {"partition": "INT", "offset": "BIGINT"}
# The ends of what the newest version's hashes are as numbers: unequal where it came with several.
HASHES = {"greatest": "BIGINT", "least": "BIGINT"}
SIDES = ("onprem", "cloud")
# Keys, hashes and times are another in every row: a dictionary of them only costs. One of statuses or
# actions stays far below this size.
ROWS_APART = {"write.parquet.dict-size-bytes": "16384"}


def _struct(fields: dict[str, str]) -> str:
    return f"STRUCT<{', '.join(f'{name}: {kind}' for name, kind in fields.items())}>"


def _side(side: str) -> dict[str, str]:
    return {
        side: _struct(READING),
        f"{side}_first": _struct(FIRST),
        f"{side}_least": "TIMESTAMP",
        f"{side}_end": _struct(END),
        f"{side}_hashes": _struct(HASHES),
    }


# What is known of a key in one window of the horizon: maxima and minima, so that rows merge.
STATE = {
    "pk": "STRING",
    "window_start": "TIMESTAMP",
    **_side("onprem"),
    **_side("cloud"),
    "records": "BIGINT",
}
STATES = {**STATE, "batch_time": "TIMESTAMP"}
CHANGES = {
    **RESULTS,
    "id": "STRING",
    "verdict": "STRING",
    "provisional": "STRING",
    "rollup": "STRING",
    "settled": "BOOLEAN",
    "within_grace": "BOOLEAN",
    "late": "BOOLEAN",
    "stale": "BOOLEAN",
    "conflict": "BOOLEAN",
    "onprem_version": "TIMESTAMP",
    "cloud_version": "TIMESTAMP",
    "onprem_read_at": "TIMESTAMP",
    "cloud_read_at": "TIMESTAMP",
    "deadline": "TIMESTAMP",
    "origin": "STRING",
}


def reconcile_tables(names: Names) -> list[str]:
    own = {**TABLE_PROPERTIES, **ROWS_APART}
    return [
        "-- The tables; their columns do not depend on the rules, so that new rules change none.\n"
        f"-- step: table\nCREATE NAMESPACE IF NOT EXISTS {CATALOG}.{NAMESPACE};",
        table_statement(names.states_table, STATES, own),
        table_statement(names.results_table, CHANGES, own),
        table_statement(names.partials_table, PARTIALS),
        dead_letter_table(),
    ]
