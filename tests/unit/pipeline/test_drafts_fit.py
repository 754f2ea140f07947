"""Any file is refused in words, or its draft passes the check and fits what the generator sends."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import jsonschema_rs
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import parquet_files as odd

from headgate.core.kafka.arrow_json import JsonRows
from headgate.core.profiler.draft import Draft, Wishes, draw_up
from headgate.errors import OperationError
from headgate.pipeline.cli.draft import DraftFiles
from headgate.pipeline.generator.source import require_fit
from headgate.pipeline.loader import load_dataset

ROOT = Path(__file__).parents[3]
WORDS = [
    "id",
    "order",
    "null",
    "no",
    "a: b",
    "# x",
    "it's",
    "naïve",
    "数量",
    "%s",
    "event_date",
    "f_id",
]
NAMES = st.lists(st.sampled_from(WORDS) | st.text(min_size=1, max_size=8), min_size=1, max_size=8, unique=True)  # fmt: skip
# pyarrow loads pandas for its first array, so not before the test runs.
KINDS = st.deferred(lambda: st.sampled_from(list(odd.every_kind(4).values())))


def drafted(file: Path) -> Draft | None:
    """The draft; None for a file that was refused, in words and with what to do."""
    try:
        return draw_up(Wishes("f", file))
    except OperationError as error:
        refused = error
    assert "column" in refused.why
    assert refused.fix
    return None


@given(names=NAMES, kinds=st.lists(KINDS, min_size=8, max_size=8), rows=st.integers(0, 4))  # fmt: skip
@settings(max_examples=6, deadline=None)
def test_a_draft_fits_its_file(names: list[str], kinds: list[pa.Array], rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        columns = {name: kind[:rows] for name, kind in zip(names, kinds, strict=False)}
        file = odd.write_parquet(Path(folder) / "f.parquet", columns)
        draft = drafted(file)
        if draft is None:
            return
        manifest, schema = DraftFiles(ROOT, "f").texts(draft)
        (Path(folder) / "dataset.yml").write_text(manifest)
        stored = pq.read_table(file)
        require_fit(stored.schema, load_dataset(Path(folder) / "dataset.yml", {}))
        validator = jsonschema_rs.validator_for(json.loads(schema))
        batches = stored.to_batches()
        lines = [line for batch in batches for line in JsonRows(stored.schema).lines(batch)]
        assert len(lines) == stored.num_rows
        assert [line for line in lines if not validator.is_valid(json.loads(line))] == []
