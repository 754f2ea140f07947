"""Each side as a view in the form that is compared, and when two values count as equal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal

from headgate.conditions.expr_literals import spark_identifier, spark_literal
from headgate.core.sql.compile_fragments import call, comment
from headgate.core.sql.statement import select, statement, view
from headgate.reconcile.table_compare.model import SIDES, Compared, Plan

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
