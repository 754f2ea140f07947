"""A sample as the JSON that the generator would send, without a file in between."""

# pyarrow ships no types, so what comes from it is unknown to the checker.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from headgate.feeds.json_rows import JsonRows
from headgate.feeds.sample import SampleMaker
from headgate.spec.sample import Sample


def sample_lines(sample: Sample, seed: int, rows: int) -> list[bytes]:
    """One JSON object a row."""
    maker = SampleMaker(sample, seed)
    written = JsonRows(maker.schema)
    return [line for block in maker.blocks(rows) for line in written.lines(block.batch)]
