"""Writes a sample as a Parquet file, and beside it what was planted."""

# pyarrow ships no types, so what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from headgate.core.runtime.whole_file import whole_file
from headgate.errors import UsageError
from headgate.pipeline.generator.feeds_sample import Planted, SampleMaker
from headgate.pipeline.generator.spec_sample import DEFAULT_SEED, Sample

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
