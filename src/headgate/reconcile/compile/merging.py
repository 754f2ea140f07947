"""The state of a key in SQL: one aggregation of maxima and minima, over messages and over states alike.

A message is the state of a key of which one message is known. So the columns that make a state of each
message stand once (`message_columns`), and the aggregation that merges states (`merge_columns`) serves
the messages of a batch, the windows of a stream and the table of states. No order of its input changes
its result, and a row that comes twice adds nothing.
"""

from __future__ import annotations

from datetime import timedelta

from headgate.core.sql.statement import select, statement, view
from headgate.quality.compile.names import Names
from headgate.quality.spec.limits import Limits
from headgate.reconcile.compile.tables import FIRST, NEWEST, SIDES
from headgate.reconcile.reconcile_state import DELETE

# The least of these is the first arrival of the newest version.
VERSION_DESC = "-unix_micros(version)"
# What a version says, as far as a verdict asks, as one number: see `Reading.content` of the state.
_LINE = 112
CONTENT = f"xxhash64(hash, action <=> '{DELETE}', hash_version)"


def message_columns(side: str) -> list[str]:
    """One message as the state of its key, as SQL over the view of messages; NULL for the other side."""
    parts = {
        side: f"struct({', '.join(map(_message_field, NEWEST))})",
        f"{side}_first": f"struct({', '.join(map(_message_field, FIRST))})",
        f"{side}_end": "struct(partition, offset)",
        f"{side}_greatest": f"struct(version, {CONTENT} AS content)",
        f"{side}_least": f"struct({VERSION_DESC} AS version_desc, {CONTENT} AS content)",
    }
    own = f"side = '{side}'"
    return [f"{_if(own, sql)} AS {name}" for name, sql in parts.items()]


def _if(condition: str, value: str) -> str:
    whole = f"IF({condition}, {value}, NULL)"
    return whole if len(whole) <= _LINE else f"IF({condition},\n  {value}, NULL)"


def _message_field(name: str) -> str:
    renamed = {"version_desc": VERSION_DESC, "read_at": "seen_at"}
    return f"{renamed[name]} AS {name}" if name in renamed else name


def merge_columns(side: str) -> list[str]:
    """Both parts of a state merged, as aggregates over states of one key."""
    columns = {side: "max", f"{side}_first": "min", f"{side}_end": "max"}
    columns |= {f"{side}_greatest": "max", f"{side}_least": "min"}
    return [f"{function}({name}) AS {name}" for name, function in columns.items()]


def merged_query(states: str, *more: str) -> str:
    """The state of each key: the merge of all its rows in `states`, and `more` aggregates of them."""
    columns = ["pk", "max(window_start) AS window_start"]
    columns += [column for side in SIDES for column in merge_columns(side)]
    return select([*columns, *more], f"FROM {states}", "GROUP BY pk")


def state_statements(names: Names) -> list[str]:
    """Messages as states, and the state of each key, for the file that people read."""
    messages = select(
        ["*", *(column for side in SIDES for column in message_columns(side))],
        f"FROM {names.timed}",
    )
    columns = ["pk", *(column for side in SIDES for column in merge_columns(side))]
    columns += [
        "TRUE AS whole",
        "TRUE AS ended",
        "session.batch_time AS judged_at",
        "'batch' AS origin",
    ]
    states = select(columns, f"FROM {names.message_states}", "GROUP BY pk")
    return [
        view(
            names.message_states,
            "Each message as the state that its key would have if this were its only message. version_desc is"
            " negated, so that a minimum finds the newest version.",
            messages,
        ),
        view(
            names.states,
            "The state of each key. Per side: the newest version, when that version first arrived (_first), the"
            " highest partition and offset (_end), and the content of the newest version, which differs between"
            " _greatest and _least if that version came with two. Maxima and minima only, so the order of arrival"
            " changes nothing. Here all"
            " records are known (whole) and no more will come (ended), so every key is due; a job replaces this"
            " view with the states of its batch, whose keys may have to wait.",
            states,
        ),
    ]


def window_states_statement(names: Names, limits: Limits) -> str:
    """The aggregation of the streaming query: states of keys in windows of the horizon."""
    seconds = limits.horizon // timedelta(seconds=1)
    columns = ["pk", "window.start AS window_start"]
    columns += [column for side in SIDES for column in merge_columns(side)]
    query = select(
        [*columns, "count(*) AS records"], f"FROM {names.message_states}", "GROUP BY pk, window"
    )
    words = (
        f"The states of the streaming query, one for each key and window of {seconds:,} seconds: when a window"
        " has ended, Spark drops its states. The table below keeps them."
    )
    return view(names.window_states, words, query, step="states view")


def keep_statement(names: Names) -> str:
    words = (
        "States are only ever added: the state of a key is the merge of all its rows. The job replaces this"
        " view with the states of the batch and the batch's time."
    )
    keep = f"INSERT INTO {names.states_table} BY NAME\nSELECT *\nFROM {names.window_states}"
    return statement("states", words, keep)
