"""Two tables that are not at one place: sums of row hashes by segment first, then only what differs.

A segment is chosen by the hash of the key, or of the row where there is no key. Its rows are summed
up as their number and four sums of 60 bits each of their hashes (version 2, SHA-256), which do not
depend on the order of rows and count a row as often as it is there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from headgate.core.sql.compile_fragments import fold_lines
from headgate.core.sql.statement import nested, select, statement
from headgate.errors import UsageError
from headgate.hashing.hash_contract import HashContract, contract_of
from headgate.hashing.spark import row_hash_sql
from headgate.reconcile.table_compare.compare_sides import VIEW, head, side_view, zone
from headgate.reconcile.table_compare.model import Compared, Plan
from headgate.reconcile.table_compare.types import hash_type

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
