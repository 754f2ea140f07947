"""SQL of one side: its view in the form that is compared, equality of two values, and sums of its rows by segment.

Sums are for two tables that are not at one place: sums of row hashes by segment first, then only what differs. A
segment is chosen by the hash of the key, or of the row where there is no key. Its rows are summed
up as their number and four sums of 60 bits each of their hashes (version 2, SHA-256), which do not
depend on the order of rows and count a row as often as it is there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from headgate.conditions.literals import spark_identifier, spark_literal
from headgate.core.sql.fragments import call, comment, fold_lines
from headgate.core.sql.script import nested, select, statement, view
from headgate.errors import UsageError
from headgate.hashing.contract import HashContract, contract_of
from headgate.hashing.spark import row_hash_sql
from headgate.reconcile.table_compare.plan import SIDES, Compared, Plan, hash_type

VIEW = "dq_compare_{}"
PRESENT, REPEATED = "dq_present", VIEW.format("repeated")
REAL = ("float", "double")
MOMENT = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSX"


def head(plan: Plan, how: str) -> str:
    """What a reader needs first."""
    words = (
        f"{plan.onprem.name} (on-prem) against {plan.cloud.name} (cloud): {how}.",
        "NULL equals NULL, NaN equals NaN, -0.0 equals 0.0; numbers and times by value.",
        *plan.notes,
        *_left_out(plan),
    )
    return "\n".join(comment(line) for line in words)


def zone() -> str:
    """A cast between times with and without a zone means UTC."""
    return statement("zone", "Times without a zone are UTC.", "SET TIME ZONE 'UTC'")


def side_view(plan: Plan, side: str) -> str:
    """The side's rows: the key and the columns compared, by the names of the left table."""
    columns = [_named(column, side) for column in (*plan.key, *plan.columns)]
    table = plan.table(side)
    words = f"The rows of {table.name}, in the types that are compared."
    query = select([*columns, f"TRUE AS {PRESENT}"], f"FROM {table.source}")
    return view(VIEW.format(side), words, query, "view")


def equal(column: Compared) -> str:
    """When two values count as equal: `l` is on-prem, `r` the cloud."""
    name = spark_identifier(column.name)
    left, right = f"l.{name}", f"r.{name}"
    same = f"{left} <=> {right}"
    if column.tolerance is None:
        return same
    return f"({same} OR coalesce({_near(left, right, column.tolerance, column.type)}, FALSE))"


def _near(left: str, right: str, tolerance: Decimal | timedelta, type_: str) -> str:
    """NULL where a difference is too large to be a number, never an error."""
    if isinstance(tolerance, timedelta):
        apart = _interval(tolerance)
        return f"{left} BETWEEN {right} - {apart} AND {right} + {apart}"
    limit = f"{tolerance:f}{'D' if type_ in REAL else ''}"
    return f"try_subtract({left}, {right}) BETWEEN -{limit} AND {limit}"


def _interval(length: timedelta) -> str:
    seconds, micros = divmod(length // timedelta(microseconds=1), 1_000_000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    text = f"{days} {hour:02d}:{minute:02d}:{second:02d}.{micros:06d}"
    return f"INTERVAL '{text}' DAY TO SECOND"


def zoned(plan: Plan) -> frozenset[str]:
    """The columns that hold points in time."""
    return frozenset(c.name for c in (*plan.key, *plan.columns) if c.type == "timestamp")


def readable(plan: Plan, columns: Sequence[Compared], struct: str) -> str:
    """A struct of these columns as a client takes it: points in time as text, which has no zone to guess."""
    timely = zoned(plan)
    if not any(column.name in timely for column in columns):
        return struct
    fields = (
        f"{spark_literal(column.name)}, "
        + (_text if column.name in timely else str)(f"{struct}.{spark_identifier(column.name)}")
        for column in columns
    )
    return f"{call('named_struct', [*fields])} AS {struct}"


def _text(moment: str) -> str:
    return f"date_format({moment}, {spark_literal(MOMENT)})"


def _named(column: Compared, side: str) -> str:
    name, expression = spark_identifier(column.name), column.of(side)
    return name if expression == name else f"{expression} AS {name}"


def _left_out(plan: Plan) -> list[str]:
    told = {
        "only on-prem": plan.only_onprem,
        "only in the cloud": plan.only_cloud,
        "of types that cannot be compared": tuple(unlike.name for unlike in plan.unlike),
    }
    return [f"Not compared, {where}: {', '.join(names)}." for where, names in told.items() if names]


def sides(plan: Plan) -> list[str]:
    return [side_view(plan, side) for side in SIDES]


SEGMENTS = 1_024
LANES, DIGITS = 4, 15
KEY_HASH, ROW_HASH, SEGMENT = "key_hash", "row_hash", "segment"


@dataclass(frozen=True)
class Sums:
    """What is known of a segment without its rows."""

    rows: int
    keys: int
    lanes: tuple[Decimal, ...]


def differing(onprem: Mapping[int, Sums], cloud: Mapping[int, Sums]) -> tuple[int, ...]:
    """The segments whose rows are not the same ones, equally often, on both sides."""
    return tuple(
        segment
        for segment in sorted(onprem.keys() | cloud.keys())
        if onprem.get(segment) != cloud.get(segment)
    )


def sums_sql(plan: Plan, side: str, segments: int = SEGMENTS) -> str:
    """The script that one side carries out where it is."""
    table = plan.table(side)
    lanes = (
        f"sum(CAST(conv(substring({ROW_HASH}, {1 + lane * DIGITS}, {DIGITS}), 16, 10)"
        f" AS DECIMAL(20, 0))) AS sum_{lane + 1}"
        for lane in range(LANES)
    )
    query = select(
        [
            f"{_segment(segments)} AS {SEGMENT}",
            "count(*) AS dq_rows",
            f"count(DISTINCT {KEY_HASH}) AS dq_keys",
            *lanes,
        ],
        f"FROM {nested(_hashed(plan, side))}",
        "GROUP BY 1",
    )
    words = f"Number and sums of the hashes of {table.name}'s rows, by segment."
    title = head(plan, f"sums of row hashes in {segments:,} segments, {side}")
    made = [side_view(plan, side), statement("sums", words, query)]
    return fold_lines("\n\n".join([title, zone(), *made]))


def fetch_sql(plan: Plan, side: str, wanted: Collection[int], segments: int = SEGMENTS) -> str:
    """The rows of some segments, as the side's view has them."""
    listed = ", ".join(str(segment) for segment in sorted(wanted))
    key = _hash(plan, plan.key or plan.columns, side)
    where = _segment(segments).replace(KEY_HASH, key)
    return fold_lines(select(["*"], f"FROM {VIEW.format(side)}", f"WHERE {where} IN ({listed})"))


def _hashed(plan: Plan, side: str) -> str:
    every = (*plan.key, *plan.columns)
    return select(
        [
            f"{_hash(plan, plan.key or every, side)} AS {KEY_HASH}",
            f"{_hash(plan, every, side)} AS {ROW_HASH}",
        ],
        f"FROM {VIEW.format(side)}",
    )


def _segment(segments: int) -> str:
    return f"pmod(CAST(conv(substring({KEY_HASH}, 1, 8), 16, 10) AS BIGINT), {segments})"


def _hash(plan: Plan, columns: Sequence[Compared], side: str) -> str:
    found = {column.name: plan.common_type(column.name) for column in columns}
    return row_hash_sql(_contract(found), found)


def _contract(types: Mapping[str, str]) -> HashContract:
    """The columns in the order of their names, so that both sides have one order."""
    kinds = {name: hash_type(type_) for name, type_ in sorted(types.items())}
    odd = [f"{name} ({types[name]})" for name, kind in kinds.items() if kind is None]
    if odd:
        raise UsageError(
            f"these columns cannot be summed up: {', '.join(odd)}",
            why="the hash contract has no form for their types",
            fix="ignore them, or compare the tables at one place, without sums",
        )
    return contract_of("compare", {name: kind for name, kind in kinds.items() if kind})
