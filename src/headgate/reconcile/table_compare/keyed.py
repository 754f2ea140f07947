"""Two tables with a key, compared in one pass: all columns of a pair at once, differing rows kept.

Which columns differ is one bit each of a number. Rows that match are only counted; every other one
is kept with its key and both rows, so that counts and samples come out of the same pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.conditions.literals import spark_identifier, spark_literal
from headgate.core.sql.fragments import call, fold_lines
from headgate.core.sql.script import case, select, statement, view
from headgate.reconcile.table_compare.plan import (
    MATCH,
    MISMATCH,
    MISSING_CLOUD,
    MISSING_ONPREM,
    Plan,
)
from headgate.reconcile.table_compare.sides import (
    PRESENT,
    REPEATED,
    VIEW,
    equal,
    head,
    readable,
    sides,
    zone,
)

BESIDE = "\n  | "
PAIRS, VERDICTS, DIFFERENCES = (VIEW.format(n) for n in ("pairs", "verdicts", "differences"))
KEY, STATUS, ROWS, ONPREM, CLOUD = "dq_key", "dq_status", "dq_rows", "dq_onprem", "dq_cloud"
HASHED, SORTED = "SHUFFLE_HASH", "MERGE"
# What a task holds in memory of a hashed side: about so many values.
VALUES_PER_PARTITION = 8_000_000


@dataclass(frozen=True)
class Bits:
    """Names as bits of as many numbers as are needed."""

    names: tuple[str, ...]
    width: int = 62

    @property
    def numbers(self) -> list[str]:
        count = max(1, -(-len(self.names) // self.width))
        return [f"dq_differing_{at}" for at in range(1, count + 1)]

    def place(self, at: int) -> tuple[str, int]:
        """Which number, and which bit of it, tells of the name at this place."""
        return self.numbers[at // self.width], 1 << at % self.width

    def expressions(self, equal: Sequence[str]) -> list[str]:
        """The numbers, a bit set for each condition that does not hold."""
        found: dict[str, list[str]] = {number: [] for number in self.numbers}
        for at, condition in enumerate(equal):
            number, bit = self.place(at)
            found[number].append(f"IF({condition}, 0L, {bit}L)")
        return [f"{BESIDE.join(parts) or '0L'} AS {number}" for number, parts in found.items()]

    def counted(self, table: str, weight: str) -> str:
        """How often each bit is set."""
        sums = (
            f"coalesce(sum(IF({number} & {bit}L <> 0, {weight}, 0)), 0) AS {spark_identifier(name)}"
            for name, (number, bit) in zip(
                self.names, map(self.place, range(len(self.names))), strict=True
            )
        )
        return select([*sums], f"FROM {table}", f"WHERE {STATUS} = '{MISMATCH}'")

    def set_in(self, numbers: Sequence[int]) -> tuple[str, ...]:
        """The names whose bits are set."""
        whole = sum(number << at * self.width for at, number in enumerate(numbers))
        return tuple(name for at, name in enumerate(self.names) if whole >> at & 1)


def keyed_bits(plan: Plan) -> Bits:
    return Bits(tuple(column.name for column in plan.columns))


def keyed_sql(
    plan: Plan, partitions: int | None = None, join: str = HASHED, *, repeated: bool = False
) -> str:
    """The whole script. `join` is the hint: hashed is quicker, sorted needs no memory.

    With `repeated`, keys that stand more than once are left to another script.
    """
    named = ", ".join(column.name for column in plan.key)
    parts = [head(plan, f"by {named}"), zone(), *_partitions(partitions), *sides(plan)]
    made = [_pairs(plan, join, repeated), _verdicts(plan), _kept(plan), *_answers(plan)]
    return fold_lines("\n\n".join([*parts, *made]))


def partitions_for(plan: Plan, rows: int) -> int:
    """As many as keep a hashed partition small; Spark joins those that turn out tiny."""
    return -(-rows * (len(plan.columns) + len(plan.key)) // VALUES_PER_PARTITION)


def readable_query(plan: Plan) -> str:
    """All that was kept, as a client takes it."""
    return select([STATUS, *_readable(plan), ROWS], f"FROM {DIFFERENCES}")


def samples_sql(plan: Plan, status: str, limit: int) -> str:
    """Some rows of a status, those with the least keys."""
    return select(
        _readable(plan),
        f"FROM {DIFFERENCES}",
        f"WHERE {STATUS} = {spark_literal(status)}",
        f"ORDER BY {KEY}",
        f"LIMIT {limit}",
    )


def key_names(plan: Plan) -> list[str]:
    return [spark_identifier(column.name) for column in plan.key]


def coalesced_key(plan: Plan, left: str = "l.{}", right: str = "r.{}") -> str:
    found = [
        (name, f"coalesce({_in(left, name)}, {_in(right, name)})")
        for name in (column.name for column in plan.key)
    ]
    return _struct(found)


def status_case(bits: Bits) -> str:
    equal = " AND ".join(f"{number} = 0" for number in bits.numbers)
    return case(
        [
            ("in_cloud IS NULL", f"'{MISSING_CLOUD}'"),
            ("on_onprem IS NULL", f"'{MISSING_ONPREM}'"),
            (equal, f"'{MATCH}'"),
        ],
        f"'{MISMATCH}'",
    )


def _partitions(count: int | None) -> list[str]:
    if count is None:
        return []
    words = "Small enough that a task holds its part of one side in memory."
    return [statement("partitions", words, f"SET spark.sql.shuffle.partitions = {count}")]


def _pairs(plan: Plan, join: str, repeated: bool) -> str:
    keys = key_names(plan)
    query = select(
        [
            *(f"{side}.{spark_identifier(name)} AS {_of(side, name)}" for side, name in _all(plan)),
            f"l.{PRESENT} AS on_onprem",
            f"r.{PRESENT} AS in_cloud",
            *keyed_bits(plan).expressions([equal(c) for c in plan.columns]),
        ],
        f"FROM {_rows('onprem', keys, repeated)} AS l",
        f"FULL OUTER JOIN {_rows('cloud', keys, repeated)} AS r",
        f"  ON {' AND '.join(f'l.{key} <=> r.{key}' for key in keys)}",
    )
    words = "Both sides beside each other; a bit is set for each column that differs."
    return view(PAIRS, words, query.replace("SELECT", f"SELECT /*+ {join}(r) */", 1), "view")


def _rows(side: str, keys: Sequence[str], repeated: bool) -> str:
    name = VIEW.format(side)
    if not repeated:
        return name
    on = " AND ".join(f"s.{key} <=> k.{key}" for key in keys)
    return f"(SELECT * FROM {name} AS s LEFT ANTI JOIN {REPEATED} AS k ON {on})"


def _verdicts(plan: Plan) -> str:
    query = select(["*", f"{status_case(keyed_bits(plan))} AS {STATUS}"], f"FROM {PAIRS}")
    return view(VERDICTS, "The status of each pair.", query, "view")


def _readable(plan: Plan) -> list[str]:
    return [
        readable(plan, plan.key, KEY),
        readable(plan, plan.columns, ONPREM),
        readable(plan, plan.columns, CLOUD),
        *keyed_bits(plan).numbers,
    ]


def kept_query(plan: Plan) -> str:
    """What a pass keeps: matches as one row, every other pair with its key and both sides."""
    return select(
        [
            STATUS,
            *(f"IF({STATUS} = '{MISMATCH}', {n}, 0L) AS {n}" for n in keyed_bits(plan).numbers),
            _unless_match(coalesced_key(plan, "l_{}", "r_{}"), KEY),
            _unless_match(_row(plan, "l"), ONPREM),
            _unless_match(_row(plan, "r"), CLOUD),
            f"count(*) AS {ROWS}",
        ],
        f"FROM {VERDICTS}",
        "GROUP BY ALL",
    )


def _kept(plan: Plan) -> str:
    words = "All that match are one row; each other row stands here with its key and both sides."
    return statement("differences", words, f"CACHE TABLE {DIFFERENCES} AS\n{kept_query(plan)}")


def _answers(plan: Plan) -> list[str]:
    counts = select(
        [STATUS, f"sum({ROWS}) AS {ROWS}", f"count(DISTINCT {KEY}) AS dq_keys"],
        f"FROM {DIFFERENCES}",
        f"GROUP BY {STATUS}",
    )
    found = [statement("counts", "How many rows, and keys, have which status.", counts)]
    if plan.columns:
        columns = keyed_bits(plan).counted(DIFFERENCES, ROWS)
        found.append(statement("columns", "In how many rows each column differs.", columns))
    return found


def _all(plan: Plan) -> list[tuple[str, str]]:
    names = [column.name for column in (*plan.key, *plan.columns)]
    return [(side, name) for side in "lr" for name in names]


def _of(side: str, name: str) -> str:
    return spark_identifier(f"{side}_{name}")


def _in(form: str, name: str) -> str:
    """A column by `l.name` or by `l_name`, in backticks where it must be."""
    prefix = form.removesuffix("{}")
    if prefix.endswith("."):
        return f"{prefix}{spark_identifier(name)}"
    return spark_identifier(f"{prefix}{name}")


def _row(plan: Plan, side: str) -> str:
    return _struct([(column.name, _of(side, column.name)) for column in plan.columns])


def _struct(values: Sequence[tuple[str, str]]) -> str:
    """NULL where there is nothing to hold: Spark has no struct without fields."""
    given = [f"{spark_literal(name)}, {value}" for name, value in values]
    return call("named_struct", given) if given else "NULL"


def _unless_match(value: str, name: str) -> str:
    matched = f"{STATUS} = '{MATCH}'"
    return f"{call('IF', [matched, 'NULL', value])} AS {name}"
