"""Makes sample data: deterministic, of any size, with an exact count of what was planted in it."""

# pyarrow ships no types, so what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headgate.core.kafka.arrow import Array, from_numpy
from headgate.pipeline.generator.draws import MICROSECONDS, SECONDS_A_DAY, cell, draw
from headgate.pipeline.generator.spec_sample import Planting, Sample

BLOCK_ROWS = 8_192
# What a row was made as; the n-th planting is PLANTED + n.
CLEAN, DUPLICATE, PLANTED = 0, 1, 2
_ARROW: Mapping[str, pa.DataType] = {
    "BIGINT": pa.int64(),
    "INT": pa.int32(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "STRING": pa.string(),
    "TIMESTAMP(6)": pa.timestamp("us"),
}


@dataclass(frozen=True)
class Planted:
    """What stands in a sample: every row is clean, a duplicate, bad or filtered."""

    rows: int
    clean: int
    duplicates: int
    bad: int
    filtered: int
    kinds: Mapping[str, int]


@dataclass(frozen=True)
class Block:
    """Some rows of a sample; `roles` says of each row what it was planted as."""

    batch: pa.RecordBatch
    roles: Array


class SampleMaker:
    """The rows of one declared sample under one seed."""

    def __init__(self, sample: Sample, seed: int) -> None:
        self._sample, self._seed = sample, seed
        self._columns = sample.in_order_of_making
        self._plantings = (*sample.bad, *sample.filtered)
        self.schema = pa.schema([(c.name, _ARROW[c.type]) for c in sample.written])

    def blocks(self, rows: int) -> Iterator[Block]:
        """All rows, in blocks that depend on nothing but the seed and their number."""
        for number, start in enumerate(range(0, rows, BLOCK_ROWS)):
            yield self._block(number, min(BLOCK_ROWS, rows - start))

    def planted(self, counts: Mapping[int, int]) -> Planted:
        """The count of each role in words."""
        kinds = {p.kind: counts.get(PLANTED + i, 0) for i, p in enumerate(self._plantings)}
        bad = sum(kinds[planting.kind] for planting in self._sample.bad)
        return Planted(
            rows=sum(counts.values()),
            clean=counts.get(CLEAN, 0),
            duplicates=counts.get(DUPLICATE, 0),
            bad=bad,
            filtered=sum(kinds.values()) - bad,
            kinds=kinds,
        )

    def _block(self, number: int, rows: int) -> Block:
        made: dict[str, Array] = {}
        for column in self._columns:
            made[column.name] = draw(column, self._stream(number, column.name), rows, made)
        absent = {column.name: np.zeros(rows, dtype=bool) for column in self._sample.written}
        self._leave_out(number, absent)
        roles, sources = self._roles(number, rows)
        for index, planting in enumerate(self._plantings):
            self._plant(planting, roles == PLANTED + index, made, absent)
        arrays = [
            from_numpy(made[name][sources], self.schema.field(name).type, absent[name][sources])
            for name in self.schema.names
        ]
        return Block(pa.RecordBatch.from_arrays(arrays, schema=self.schema), roles)

    def _stream(self, block: int, name: str) -> np.random.Generator:
        """A stream per block and name: a new column changes no other."""
        entropy = (self._seed, block, zlib.crc32(name.encode()))
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))

    def _leave_out(self, block: int, absent: dict[str, Array]) -> None:
        for index, missing in enumerate(self._sample.missing):
            rows = len(absent[missing.columns[0]])
            chosen = self._stream(block, f"missing {index}").random(rows) < missing.share
            for name in missing.columns:
                absent[name] |= chosen

    def _roles(self, block: int, rows: int) -> tuple[Array, Array]:
        """Each row's role, and the row whose values it has: a duplicate has an earlier one's."""
        chance, pick = self._stream(block, "roles").random((rows, 2)).T
        shares = (self._sample.duplicates, *(planting.share for planting in self._plantings))
        edges = np.cumsum(shares)
        roles = np.searchsorted(edges, chance, side="right") + DUPLICATE
        roles[chance >= edges[-1]] = CLEAN
        clean = np.flatnonzero(roles == CLEAN)
        earlier = np.searchsorted(clean, np.arange(rows))
        roles[(roles == DUPLICATE) & (earlier == 0)] = CLEAN
        repeated = roles == DUPLICATE
        sources = np.arange(rows)
        sources[repeated] = clean[(pick * earlier).astype(np.int64)[repeated]]
        return roles, sources

    def _plant(
        self, planting: Planting, where: Array, made: dict[str, Array], absent: dict[str, Array]
    ) -> None:
        types = {column.name: column.type for column in self._sample.written}
        for name, value in planting.set.items():
            absent[name][where] = value is None
            if value is not None:
                made[name] = np.where(where, cell(value, types[name]), made[name])
        for name in planting.negate:
            made[name] = np.where(where, -made[name], made[name])
        for name, days in planting.shift_days.items():
            made[name] = made[name] + where * (days * SECONDS_A_DAY * MICROSECONDS)
