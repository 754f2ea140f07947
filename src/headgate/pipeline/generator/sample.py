"""Make sample rows from their declaration: deterministic, any size, an exact count of what is planted.

A longer draw from the same random stream begins with the shorter one, so a sample of any size begins
with the rows of a smaller one. Written as a Parquet file with a sidecar of the planted counts, or as
the JSON lines that the generator would send.
"""

# pyarrow ships no types, so what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from headgate.core.kafka.arrow_json import Array, JsonRows, from_numpy
from headgate.core.runtime.journal import whole_file
from headgate.errors import UsageError
from headgate.pipeline.generator.declaration import (
    DEFAULT_SEED,
    After,
    Between,
    Choice,
    Code,
    Lognormal,
    Normal,
    Planting,
    Product,
    Sample,
    SampleColumn,
    Sum,
    Uniform,
    Value,
    When,
)

Made: TypeAlias = Mapping[str, Array]
Stream: TypeAlias = np.random.Generator

MICROSECONDS = 1_000_000
SECONDS_A_DAY = 86_400
# Without I, L, O and U, which a person misreads.
LETTERS = np.array(list("0123456789ABCDEFGHJKMNPQRSTVWXYZ"))
_TYPES: Mapping[str, type[np.generic]] = {
    "BIGINT": np.int64,
    "INT": np.int32,
    "DOUBLE": np.float64,
    "BOOLEAN": np.bool_,
    "STRING": np.object_,
    "TIMESTAMP(6)": np.int64,
}


def draw(column: SampleColumn, stream: Stream, rows: int, made: Made) -> Array:
    """The column's values; times are microseconds since 1970."""
    form = column.forms[0]
    values = _settled(_DRAWS[form](getattr(column, form), stream, rows, made), column)
    return _where(values, column.when, column.type, made) if column.when else values


def cell(value: Value, type_name: str) -> bool | int | float | str:
    """A declared value as the column stores it; `NaN` and `Infinity` are numbers of DOUBLE."""
    if type_name == "TIMESTAMP(6)":
        return microseconds(datetime.fromisoformat(str(value)))
    if type_name == "DOUBLE":
        return float(value or 0.0)
    if type_name in ("BIGINT", "INT"):
        return int(value or 0)
    return value if isinstance(value, bool) else str(value)


def microseconds(moment: datetime) -> int:
    """A zone-less time as Parquet stores it."""
    return round(moment.replace(tzinfo=UTC).timestamp()) * MICROSECONDS + moment.microsecond


def _settled(values: Array, column: SampleColumn) -> Array:
    if column.decimals is not None:
        values = np.round(values, column.decimals)
    elif column.type in ("BIGINT", "INT") and values.dtype.kind == "f":
        values = np.rint(values)
    return values.astype(_TYPES[column.type], copy=False)


def _where(values: Array, when: When, type_name: str, made: Made) -> Array:
    chosen = np.isin(made[when.column], np.array(when.one_of))
    return np.where(chosen, values, cell(when.otherwise, type_name)).astype(values.dtype)


def _choice(form: Choice, stream: Stream, rows: int, made: Made) -> Array:
    weights = form.weights or (1.0,) * len(form.values)
    values: Array = np.array(form.values, dtype=object if _text(form.values[0]) else None)
    return values[_pick(weights, stream.random(rows))]


def _text(value: Value) -> bool:
    return isinstance(value, str)


def _pick(weights: tuple[float, ...], uniform: NDArray[np.float64]) -> NDArray[np.intp]:
    edges = np.cumsum(np.array(weights, dtype=np.float64))
    return np.searchsorted(edges[:-1], uniform * float(edges[-1]), side="right")


def _constant(form: Value, stream: Stream, rows: int, made: Made) -> Array:
    return np.full(rows, form, dtype=object if _text(form) else None)


def _code(form: Code, stream: Stream, rows: int, made: Made) -> Array:
    drawn = LETTERS[(stream.random((rows, form.length)) * len(LETTERS)).astype(np.int64)]
    return np.array([form.prefix + "".join(letters) for letters in drawn], dtype=object)


def _uniform(form: Uniform, stream: Stream, rows: int, made: Made) -> Array:
    return form.low + (form.high - form.low) * stream.random(rows)


def _normal(form: Normal, stream: Stream, rows: int, made: Made) -> Array:
    return np.clip(form.mean + form.sigma * stream.standard_normal(rows), form.low, form.high)


def _lognormal(form: Lognormal, stream: Stream, rows: int, made: Made) -> Array:
    scaled = form.median * np.exp(form.sigma * stream.standard_normal(rows))
    return np.clip(scaled, form.low, form.high)


def _sum(form: Sum, stream: Stream, rows: int, made: Made) -> Array:
    total = np.full(rows, form.base)
    for name in form.of:
        total = total + made[name]
    return total


def _product(form: Product, stream: Stream, rows: int, made: Made) -> Array:
    result = np.full(rows, form.factor)
    for name in form.of:
        result = result * made[name]
    return result


def _time(form: Between, stream: Stream, rows: int, made: Made) -> Array:
    seconds = round((form.end - form.start).total_seconds())
    if not form.hourly:
        offsets = np.floor(seconds * stream.random(rows))
    else:
        day, hour, second = stream.random((rows, 3)).T
        days = np.floor(max(1, seconds // SECONDS_A_DAY) * day)
        offsets = (days * 24 + _pick(form.hourly, hour)) * 3600 + np.floor(3600 * second)
    return microseconds(form.start) + offsets.astype(np.int64) * MICROSECONDS


def _after(form: After, stream: Stream, rows: int, made: Made) -> Array:
    return made[form.column] + np.rint(made[form.seconds]).astype(np.int64) * MICROSECONDS


_DRAWS: Mapping[str, Callable[[Any, Stream, int, Made], Array]] = {  # each form has its own model
    "choice": _choice,
    "constant": _constant,
    "code": _code,
    "uniform": _uniform,
    "normal": _normal,
    "lognormal": _lognormal,
    "sum": _sum,
    "product": _product,
    "time": _time,
    "after": _after,
}


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


BLOCKS_A_ROW_GROUP = 16


@dataclass(frozen=True)
class SampleFile:
    """One written sample."""

    file: str
    sidecar: str
    seed: int
    bytes: int
    elapsed_seconds: float
    planted: Planted


def planted_file(file: Path) -> Path:
    """The sidecar of a sample file."""
    return file.with_name(file.name + ".planted.json")


def refuse_to_overwrite(file: Path) -> None:
    """A file that no sample maker wrote is somebody's data."""
    if file.exists() and _noted_size(planted_file(file)) != file.stat().st_size:
        raise UsageError(
            f"{file} exists and was not made by `feed sample`",
            why="writing the sample there would destroy it",
            fix="choose another file with --out, or give --yes to overwrite it",
        )


def write_sample(
    sample: Sample,
    file: Path,
    rows: int,
    seed: int = DEFAULT_SEED,
    advance: Callable[[int], None] = lambda rows: None,
) -> SampleFile:
    """Write the sample and its sidecar, each whole or not at all."""
    started = time.monotonic()
    maker = SampleMaker(sample, seed)
    with whole_file(file) as part, _writer(part, maker.schema) as writer:
        planted = maker.planted(_write_blocks(maker, writer, rows, advance))
    size = file.stat().st_size
    _write_sidecar(planted_file(file), seed, size, planted)
    elapsed = round(time.monotonic() - started, 3)
    return SampleFile(
        file=str(file),
        sidecar=str(planted_file(file)),
        seed=seed,
        bytes=size,
        elapsed_seconds=elapsed,
        planted=planted,
    )


def _write_sidecar(file: Path, seed: int, size: int, planted: Planted) -> None:
    content = {"seed": seed, "bytes": size, **asdict(planted)}
    with whole_file(file) as part:
        part.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n")


def _noted_size(sidecar: Path) -> int | None:
    """The size that the sample had when it was made: another file has another one."""
    if not sidecar.exists():
        return None
    return orjson.loads(sidecar.read_bytes()).get("bytes")


def _write_blocks(
    maker: SampleMaker, writer: pq.ParquetWriter, rows: int, advance: Callable[[int], None]
) -> Counter[int]:
    counts: Counter[int] = Counter()
    group: list[pa.RecordBatch] = []
    for block in maker.blocks(rows):
        roles, sizes = np.unique(block.roles, return_counts=True)
        counts.update(dict(zip(roles.tolist(), sizes.tolist(), strict=True)))
        group.append(block.batch)
        if len(group) == BLOCKS_A_ROW_GROUP:
            writer.write_table(pa.Table.from_batches(group))
            group = []
        advance(block.batch.num_rows)
    if group or not rows:
        writer.write_table(pa.Table.from_batches(group, schema=maker.schema))
    return counts


def _writer(file: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Nothing of the machine or the moment goes into the file: same rows, same bytes."""
    return pq.ParquetWriter(file, schema, compression="zstd", version="2.6", store_schema=False)


def sample_lines(sample: Sample, seed: int, rows: int) -> list[bytes]:
    """One JSON object a row."""
    maker = SampleMaker(sample, seed)
    written = JsonRows(maker.schema)
    return [line for block in maker.blocks(rows) for line in written.lines(block.batch)]
