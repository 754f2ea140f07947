"""A sample as the JSON that the generator would send, without a file in between."""

# pyarrow ships no types, so what comes from it is unknown to the checker.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from headgate.core.kafka.json_rows import JsonRows
from headgate.pipeline.generator.feeds_sample import SampleMaker
from headgate.pipeline.generator.spec_sample import Sample


def sample_lines(sample: Sample, seed: int, rows: int) -> list[bytes]:
    """One JSON object a row."""
    maker = SampleMaker(sample, seed)
    written = JsonRows(maker.schema)
    return [line for block in maker.blocks(rows) for line in written.lines(block.batch)]
