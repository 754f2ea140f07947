"""States in SQL: maxima and minima over messages, and over states that were kept before."""

from __future__ import annotations

from datetime import timedelta

from headgate.compile.fragments import call
from headgate.compile.reconcile.limits import Limits
from headgate.compile.reconcile.tables import END, READING, SIDES, STATE, STATES
from headgate.compile.rules.names import Names
from headgate.compile.rules.statement import nested, select, statement, view

# The first arrival of the newest version, as something of which the greatest is taken.
_FIRST = "struct({0}version, -unix_micros({0}read_at) AS _micros, -{0}partition AS _partition, -{0}offset AS _offset, {0}hash)"


def batch_states_statement(names: Names, limits: Limits) -> str:
    words = (
        "The state of each key in each window of the horizon, of maxima and minima only: no order of"
        " the messages can change it. The same text is the aggregation of the streaming query."
    )
    seconds = limits.horizon // timedelta(seconds=1)
    columns = ["pk", "window.start AS window_start"]
    for side in SIDES:
        columns += _of_messages(side)
    grouped = select(
        [*columns, "count(*) AS records"],
        f"FROM {names.timed}",
        f"GROUP BY pk, window(seen_at, '{seconds} seconds')",
    )
    return view(names.batch_states, words, _turned_back(grouped), step="states view")


def _of_messages(side: str) -> list[str]:
    where = f"FILTER (WHERE side = '{side}')"
    return [
        f"max(struct({', '.join(READING)})) {where} AS {side}",
        f"max({_FIRST.format('')}) {where} AS _{side}_first",
        f"min(read_at) {where} AS {side}_least",
        f"max(struct({', '.join(END)})) {where} AS {side}_end",
    ]


def merged_query(states: str) -> str:
    """The state of each key: the merge of all its rows in `states`."""
    columns = ["pk", "max(window_start) AS window_start"]
    for side in SIDES:
        first = _FIRST.format(f"{side}_first.")
        columns += [
            f"max({side}) AS {side}",
            f"max({first}) FILTER (WHERE {side}_first IS NOT NULL) AS _{side}_first",
            f"min({side}_least) AS {side}_least",
            f"max({side}_end) AS {side}_end",
        ]
    columns.append("max(records) AS records")
    return _turned_back(select(columns, f"FROM {states}", "GROUP BY pk"))


def _turned_back(grouped: str) -> str:
    columns: list[str] = []
    for name in STATE:
        side = name.removesuffix("_first")
        columns.append(name if side == name else f"{_first(f'_{name}')} AS {name}")
    return select(columns, f"FROM {nested(grouped)}")


def _first(column: str) -> str:
    fields = [
        f"'version', {column}.version",
        f"'read_at', timestamp_micros(-{column}._micros)",
        f"'partition', -{column}._partition",
        f"'offset', -{column}._offset",
        f"'hash', {column}.hash",
    ]
    return call("IF", [f"{column} IS NULL", "NULL", call("named_struct", fields)])


def states_statement(names: Names) -> str:
    """What is judged; the engine binds its own."""
    words = (
        "What is judged: here all there is of each key. The engine binds the states of a batch, of"
        " which the rest may stand in another window (whole is false there), or those that a sweep"
        " has merged."
    )
    query = select(
        ["*", "TRUE AS whole", "TRUE AS changed", "'batch' AS origin"],
        f"FROM {nested(merged_query(names.batch_states))}",
    )
    return view(names.states, words, query, step="bound states")


def keep_statement(names: Names) -> str:
    columns = [name for name in STATES if name != "batch_time"]
    query = select(
        [*columns, "session.batch_time AS batch_time"],
        f"FROM {names.batch_states}",
    )
    words = "The states are only ever added to: a key's state is the merge of all its rows."
    return statement("states", words, f"INSERT INTO {names.states_table} BY NAME\n{query}")
