"""The rest of a batch: the records that its staged rows lack, found without reading all again.

The staged rows say which offsets they come from. Counted by blocks of neighbouring offsets, they
show where something is missing, and only those blocks have to be parsed a second time. When they
do not stand for exactly one offset of the range each, the whole batch is the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.engine.iceberg import ManagedTable
from headgate.engine.jvm import Snapshot
from headgate.engine.protocol import span
from headgate.engine.statements import sql
from headgate.store.model import Range

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BLOCK = 32  # A bit of a BIGINT for each offset.
# Beyond this share of the blocks it is as quick to parse all of them, and they may not fit memory.
MOST = 0.2


@dataclass(frozen=True)
class Rest:
    """Records in which all that are not staged can be found, and how many of them are staged."""

    frame: DataFrame
    staged: int

    def counts(self, condition: str) -> tuple[int, int]:
        """How many records these are, and how many of them fulfil the condition."""
        from pyspark.sql import functions as F

        row = self.frame.agg(
            F.count(F.lit(1)).alias("rows"), F.count_if(F.expr(condition)).alias("matching")
        ).first()
        return (int(row["rows"]), int(row["matching"])) if row else (0, 0)


@dataclass(frozen=True)
class Block:
    """Neighbouring offsets of which not all are staged."""

    partition: int
    number: int
    width: int
    staged: int


@contextmanager
def rest_of(
    batch: DataFrame, range_: Range, table: ManagedTable, staged: Snapshot
) -> Generator[Rest]:
    """The rest of this batch; it is kept while it is being used."""
    missing = span(range_) - staged.added
    # What the count alone shows to be too much, or doubtful, is not looked for.
    looked_for = 0 < missing <= MOST * span(range_)
    blocks = incomplete(table, staged, range_) if looked_for else []
    if not few(blocks, range_) or missing != sum(block.width - block.staged for block in blocks):
        yield Rest(batch, staged.added)
        return
    frame = batch.where(inside(blocks)).persist()
    try:
        yield Rest(frame, sum(block.staged for block in blocks))
    finally:
        frame.unpersist()


def incomplete(table: ManagedTable, staged: Snapshot, range_: Range) -> list[Block]:
    """The blocks of the range of which some offset is in no staged row."""
    from pyspark.sql import functions as F

    block = F.expr(f"kafka_offset DIV {BLOCK}").alias("block")
    rows = table.appended(staged).groupBy(F.col("kafka_partition").alias("partition"), block)
    # A bit for each offset, so that a row that stands there twice cannot hide one that is missing.
    offsets = F.expr(f"bit_count(bit_or(shiftleft(1L, CAST(kafka_offset % {BLOCK} AS INT))))")
    found = (
        sql(table.session, expected(range_))
        .join(rows.agg(offsets.alias("staged")), ["partition", "block"], "left")
        .selectExpr("partition", "block", "width", "coalesce(staged, 0) AS staged")
        .where("staged < width")
    )
    return [
        Block(int(r["partition"]), int(r["block"]), int(r["width"]), int(r["staged"]))
        for r in found.collect()
    ]


def blocks_with(table: ManagedTable, staged: Snapshot, condition: str) -> list[Block]:
    """The blocks of offsets in which a staged row fulfils the condition."""
    from pyspark.sql import functions as F

    block = F.expr(f"kafka_offset DIV {BLOCK}").alias("block")
    rows = table.appended(staged).where(condition)
    found = rows.groupBy(F.col("kafka_partition").alias("partition"), block).count()
    return [
        Block(int(r["partition"]), int(r["block"]), BLOCK, int(r["count"])) for r in found.collect()
    ]


def few(blocks: Sequence[Block], range_: Range) -> bool:
    """Whether these blocks are few enough of the range to be kept."""
    return len(blocks) <= MOST * sum(
        (end - 1) // BLOCK - start // BLOCK + 1 for _, start, end in _spans(range_)
    )


def expected(range_: Range) -> str:
    """Every block of the range, and how many of its offsets belong to the range."""
    spans = ", ".join(f"({p}, {start}L, {end}L)" for p, start, end in _spans(range_))
    return f"""
SELECT
  partition,
  block,
  least(until, (block + 1) * {BLOCK}) - greatest(since, block * {BLOCK}) AS width
FROM VALUES {spans} AS spans(partition, since, until)
LATERAL VIEW explode(sequence(since DIV {BLOCK}, (until - 1) DIV {BLOCK})) AS block"""


def inside(blocks: Iterable[Block]) -> str:
    """The condition on a record of the topic that it is in one of these blocks."""
    numbers: defaultdict[int, list[str]] = defaultdict(list)
    for block in blocks:
        numbers[block.partition].append(f"{block.number}L")
    parts = (
        f"(partition = {partition} AND offset DIV {BLOCK} IN ({', '.join(found)}))"
        for partition, found in numbers.items()
    )
    return " OR ".join(parts) or "FALSE"


def _spans(range_: Range) -> list[tuple[int, int, int]]:
    """Partition, start and end wherever the range has an offset."""
    found = ((int(p), range_.start.get(p, 0), end) for p, end in range_.end.items())
    return [(p, start, end) for p, start, end in found if end > start]
