"""The tables of a reconciled pair: states, one row for each change of a verdict, window partials."""

from __future__ import annotations

from headgate.core.sql.compile_fragments import TABLE_PROPERTIES
from headgate.quality.compile.names import Names
from headgate.quality.compile.rules_tables import (
    NAMESPACE_STATEMENT,
    PARTIALS,
    RESULTS,
    dead_letter_tables,
    table_statement,
)

NEWEST = {
    "version": "TIMESTAMP",
    "partition": "INT",
    "offset": "BIGINT",
    "hash": "STRING",
    "hash_version": "INT",
    "action": "STRING",
    "read_at": "TIMESTAMP",
    "row": "STRING",
}
# Its least is the first arrival of the newest version: so the version stands there turned round.
FIRST = {
    "version_desc": "BIGINT",
    "read_at": "TIMESTAMP",
    "partition": "INT",
    "offset": "BIGINT",
    "hash": "STRING",
}
END = {"partition": "INT", "offset": "BIGINT"}
# The ends of what the newest version has said: unequal where it has said several things.
GREATEST = {"version": "TIMESTAMP", "content": "BIGINT"}
LEAST = {"version_desc": "BIGINT", "content": "BIGINT"}
SIDES = ("onprem", "cloud")
# Keys, hashes and times are another in every row: a dictionary of them only costs. One of statuses or
# actions stays far below this size.
ROWS_APART = {"write.parquet.dict-size-bytes": "16384"}


def _struct(fields: dict[str, str]) -> str:
    return f"STRUCT<{', '.join(f'{name}: {kind}' for name, kind in fields.items())}>"


def _side(side: str) -> dict[str, str]:
    return {
        side: _struct(NEWEST),
        f"{side}_first": _struct(FIRST),
        f"{side}_end": _struct(END),
        f"{side}_greatest": _struct(GREATEST),
        f"{side}_least": _struct(LEAST),
    }


# What is known of a key in one window of the horizon: maxima and minima, so that rows merge.
STATE = {
    "pk": "STRING",
    "window_start": "TIMESTAMP",
    **_side("onprem"),
    **_side("cloud"),
}
STATES = {**STATE, "records": "BIGINT", "batch_time": "TIMESTAMP"}
CHANGES = {
    **RESULTS,
    "id": "STRING",
    "verdict": "STRING",
    "provisional": "STRING",
    "rollup": "STRING",
    "settled": "BOOLEAN",
    "settled_by": "STRING",
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
    """The statements that make the tables of a pair; their columns do not depend on the rules."""
    own = {**TABLE_PROPERTIES, **ROWS_APART}
    return [
        NAMESPACE_STATEMENT,
        table_statement(names.states_table, STATES, own),
        table_statement(names.results_table, CHANGES, own),
        table_statement(names.partials_table, PARTIALS),
        *dead_letter_tables(),
    ]
