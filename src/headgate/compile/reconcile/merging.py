"""States in SQL: maxima and minima over messages, and over states that were kept before."""

from __future__ import annotations

from datetime import timedelta

from headgate.compile.fragments import call
from headgate.compile.reconcile.limits import Limits
from headgate.compile.reconcile.state import DELETE
from headgate.compile.reconcile.steady import steady
from headgate.compile.reconcile.tables import SIDES, STATE, STATES
from headgate.compile.rules.names import Names
from headgate.compile.rules.statement import nested, select, statement, view

# What is judged beside the state: all there is of a key, at the time of the batch.
JUDGED_NOW = (
    "TRUE AS whole",
    "TRUE AS changed",
    f"{steady('session.batch_time')} AS judged_at",
)
# A place on a topic as one number: the partition above so many bits of offset.
_BITS = 44
# The first arrival of the newest version, as something of which the greatest is taken.
_FIRST = "struct({0}version, -unix_micros({0}read_at) AS _micros, -{0}partition AS _partition, -{0}offset AS _offset, {0}hash)"


def said(of: str = "", hash_of: str | None = None) -> str:
    """What a version says, as one number: as far as a verdict asks, as `Reading.said` has it."""
    whose = of if hash_of is None else hash_of
    return f"xxhash64({whose}hash, {of}action <=> '{DELETE}', {of}hash_version)"


def batch_states_statement(names: Names, limits: Limits) -> str:
    words = (
        "The state of each key in each window of the horizon, of maxima and minima only: no order of"
        " the messages can change it. The same text is the aggregation of the streaming query. Times"
        " and places are numbers while they are compared, and what belongs together is brought"
        " together first: so it is sorted once less."
    )
    seconds = limits.horizon // timedelta(seconds=1)
    packed = select(
        [
            "/*+ REPARTITION(pk, window) */\npk",
            "side",
            "unix_micros(version) AS version",
            f"shiftleft(CAST(partition AS BIGINT), {_BITS}) + offset AS place",
            "hash",
            "hash_version",
            "action",
            "unix_micros(seen_at) AS micros",
            "row",
            f"window(seen_at, '{seconds} seconds') AS window",
        ],
        f"FROM {names.timed}",
    )
    columns = ["pk", "window.start AS window_start"]
    for side in SIDES:
        columns += _of_messages(side)
    grouped = select(
        [*columns, "count(*) AS records"], f"FROM {nested(packed)}", "GROUP BY pk, window"
    )
    made = ["pk", "window_start", *(sql for side in SIDES for sql in _unpacked(side)), "records"]
    return view(names.batch_states, words, select(made, f"FROM {nested(grouped)}"), "states view")


def _of_messages(side: str) -> list[str]:
    def of(value: str) -> str:
        return f"CASE WHEN side = '{side}' THEN {value} END"

    newest = "struct(version, place, hash, hash_version, action, micros, row)"
    first = "struct(version, -micros AS arrival, -place AS place, hash)"
    return [
        f"max({of(newest)}) AS _{side}",
        f"max({of(first)}) AS _{side}_first",
        f"min({of('micros')}) AS _{side}_least",
        f"max({of('place')}) AS _{side}_end",
        f"max({of(f'struct(version, {said()} AS hash)')}) AS _{side}_greatest",
        f"max({of(f'struct(version, ~{said()} AS hash)')}) AS _{side}_lowest",
    ]


def _unpacked(side: str) -> list[str]:
    """As the table of states has them."""
    newest, first, end = f"_{side}", f"_{side}_first", f"_{side}_end"
    reading = {
        "version": f"timestamp_micros({newest}.version)",
        **_place(f"{newest}.place"),
        "hash": f"{newest}.hash",
        "hash_version": f"{newest}.hash_version",
        "action": f"{newest}.action",
        "read_at": f"timestamp_micros({newest}.micros)",
        "row": f"{newest}.row",
    }
    arrival = {
        "version": f"timestamp_micros({first}.version)",
        "read_at": f"timestamp_micros(-{first}.arrival)",
        **_place(f"-{first}.place"),
        "hash": f"{first}.hash",
    }
    return [
        f"{_unless_null(newest, reading)} AS {side}",
        f"{_unless_null(first, arrival)} AS {side}_first",
        f"timestamp_micros(_{side}_least) AS {side}_least",
        f"{_unless_null(end, _place(end))} AS {side}_end",
        f"{_hashes(side)} AS {side}_hashes",
    ]


def _hashes(side: str) -> str:
    fields = {"greatest": f"_{side}_greatest.hash", "least": f"~_{side}_lowest.hash"}
    return _unless_null(f"_{side}_greatest", fields)


def _place(place: str) -> dict[str, str]:
    return {
        "partition": f"CAST(shiftright({place}, {_BITS}) AS INT)",
        "offset": f"{place} & {(1 << _BITS) - 1}L",
    }


def _unless_null(column: str, fields: dict[str, str]) -> str:
    listed = [f"'{name}', {sql}" for name, sql in fields.items()]
    return call("IF", [f"{column} IS NULL", "NULL", call("named_struct", listed)])


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
            f"max({_bounds(side, 'greatest')}) AS _{side}_greatest",
            f"max({_bounds(side, 'least')}) AS _{side}_lowest",
        ]
    columns.append("max(records) AS records")
    return _turned_back(select(columns, f"FROM {states}", "GROUP BY pk"))


def _bounds(side: str, end: str) -> str:
    """One end of what a state's version has said; rows from before there were ends have two hashes."""
    two = call(end, [said(f"{side}."), said(f"{side}.", f"{side}_first.")])
    found = call("coalesce", [f"{side}_hashes.{end}", two])
    hash_ = found if end == "greatest" else f"~{found}"
    return f"IF({side} IS NULL, NULL, struct({side}.version, {hash_} AS hash))"


def _turned_back(grouped: str) -> str:
    columns: list[str] = []
    for name in STATE:
        side, _, kind = name.partition("_")
        made = {"first": _first(f"_{name}"), "hashes": _hashes(side)}.get(kind)
        columns.append(f"{made} AS {name}" if made and side in SIDES else name)
    return select(columns, f"FROM {nested(grouped)}")


def _first(column: str) -> str:
    fields = {
        "version": f"{column}.version",
        "read_at": f"timestamp_micros(-{column}._micros)",
        "partition": f"-{column}._partition",
        "offset": f"-{column}._offset",
        "hash": f"{column}.hash",
    }
    return _unless_null(column, fields)


def states_statement(names: Names) -> str:
    """What is judged; the engine binds its own."""
    words = (
        "What is judged: here all there is of each key. The engine binds the states of a batch, of"
        " which the rest may stand in another window (whole is false there), or those that a sweep"
        " has merged."
    )
    query = select(
        ["*", *JUDGED_NOW, "'batch' AS origin"],
        f"FROM {nested(merged_query(names.batch_states))}",
    )
    return view(names.states, words, query, step="bound states")


def keep_statement(names: Names) -> str:
    columns = [name for name in STATES if name != "batch_time"]
    query = select(
        [*columns, f"{steady('session.batch_time')} AS batch_time"],
        f"FROM {names.batch_states}",
    )
    words = "The states are only ever added to: a key's state is the merge of all its rows."
    return statement("states", words, f"INSERT INTO {names.states_table} BY NAME\n{query}")
