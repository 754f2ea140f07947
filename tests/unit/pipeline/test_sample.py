"""The sample maker: same seed, same rows, at any size, and an exact count of what is planted."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.core.kafka.arrow_json import JsonRows
from headgate.errors import UsageError
from headgate.pipeline.generator.declaration import Sample, load_sample
from headgate.pipeline.generator.sample import (
    BLOCK_ROWS,
    SampleMaker,
    planted_file,
    refuse_to_overwrite,
    write_sample,
)

Row = dict[str, Any]

DECLARED = """\
columns:
  - {name: at, type: TIMESTAMP(6), time: {start: 2024-01-01T00:00:00, end: 2024-02-01T00:00:00}}
  - {name: until, type: TIMESTAMP(6), after: {column: at, seconds: lasting}}
  - {name: kind, type: STRING, choice: {values: [a, b], weights: [3, 1]}}
  - {name: number, type: STRING, code: {prefix: "N-", length: 10}}
  - {name: paid, type: BOOLEAN, choice: {values: [true, false]}}
  - {name: fee, type: DOUBLE, constant: 2.5, when: {column: kind, one_of: [b], otherwise: 0.0}}
  - {name: price, type: DOUBLE, lognormal: {median: 10, sigma: 0.5, high: 90}, decimals: 2}
  - {name: total, type: DOUBLE, sum: {of: [price, fee, tip], base: 1}, decimals: 2}
  - {name: tip, type: DOUBLE, product: {of: [price], factor: 0.1}, decimals: 2}
  - {name: lasting, type: BIGINT, helper: true, normal: {mean: 600, sigma: 100, low: 60}}
missing:
  - {share: 0.05, columns: [kind, tip]}
duplicates: 0.05
bad:
  - {kind: not_a_number, share: 0.02, set: {price: NaN}}
filtered:
  - {kind: refund, share: 0.03, negate: [total]}
  - {kind: other_month, share: 0.02, shift_days: {at: 31, until: 31}}
"""
ROWS = 1_000


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    file = tmp_path_factory.mktemp("sample") / "sample.yml"
    file.write_text(DECLARED)
    return load_sample(file).value


def table(sample: Sample, rows: int, seed: int = 42) -> pa.Table:
    return pa.Table.from_batches([block.batch for block in SampleMaker(sample, seed).blocks(rows)])


def lines(table: pa.Table) -> list[bytes]:
    """The rows as text: NaN is not equal to itself."""
    writer = JsonRows(table.schema)
    return [line for batch in table.to_batches() for line in writer.lines(batch)]


def test_the_same_seed_gives_the_same_rows_and_another_does_not(sample: Sample) -> None:
    assert lines(table(sample, 100)) == lines(table(sample, 100))
    assert lines(table(sample, 100)) != lines(table(sample, 100, seed=43))


@pytest.mark.parametrize("rows", [1, 7, 300, BLOCK_ROWS + 5])
def test_a_larger_sample_begins_with_the_rows_of_a_smaller_one(sample: Sample, rows: int) -> None:
    larger = table(sample, BLOCK_ROWS + 100)
    assert lines(larger.slice(0, rows)) == lines(table(sample, rows))


def test_a_new_column_changes_no_other(sample: Sample) -> None:
    fewer = Sample(columns=tuple(c for c in sample.columns if c.name != "paid"))
    whole = Sample(columns=sample.columns)
    assert table(fewer, 50).equals(table(whole, 50).drop_columns(["paid"]))


def test_what_was_planted_is_exactly_what_is_there(sample: Sample, tmp_path: Path) -> None:
    file = tmp_path / "sample.parquet"
    planted = write_sample(sample, file, ROWS).planted
    rows: list[Row] = pq.ParquetFile(file).read().to_pylist()
    bad = [row for row in rows if row["price"] != row["price"]]
    fine = [row for row in rows if row["price"] == row["price"]]
    filtered = [row for row in fine if row["total"] < 0 or row["at"].month != 1]
    kept = Counter(str(row) for row in fine if row["total"] >= 0 and row["at"].month == 1)
    assert planted.rows == len(rows) == ROWS
    assert planted.bad == len(bad) > 0
    assert planted.filtered == len(filtered) > 0
    assert planted.duplicates == kept.total() - len(kept) > 0
    assert planted.clean == len(kept)
    assert planted.kinds["refund"] == sum(row["total"] < 0 for row in fine)


def test_the_sidecar_holds_the_counts(sample: Sample, tmp_path: Path) -> None:
    file = tmp_path / "sample.parquet"
    planted = write_sample(sample, file, 500, seed=7).planted
    sidecar = orjson.loads(planted_file(file).read_bytes())
    assert sidecar["seed"] == 7
    assert sidecar["rows"] == 500
    assert sidecar["bad"] == planted.bad
    assert sidecar["kinds"] == planted.kinds
    assert sorted(path.name for path in tmp_path.iterdir()) == [file.name, planted_file(file).name]


def test_sums_products_conditions_and_offsets_hold_in_every_clean_row(sample: Sample) -> None:
    for row in table(sample.clean(), 300).to_pylist():
        tip = round(row["price"] * 0.1, 2) if row["tip"] is None else row["tip"]
        if row["kind"] is not None:
            assert row["fee"] == (2.5 if row["kind"] == "b" else 0.0)
        assert row["total"] == pytest.approx(row["price"] + row["fee"] + tip + 1, abs=0.011)
        assert 60 <= (row["until"] - row["at"]).total_seconds() < 1200
        assert row["price"] <= 90
        assert (row["kind"] is None) == (row["tip"] is None)


def test_codes_have_their_form_and_no_two_are_alike(sample: Sample) -> None:
    found = table(sample.clean(), 20_000).column("number").to_pylist()
    assert len(set(found)) == 20_000
    assert all(re.fullmatch("N-[0-9A-HJKMNP-TV-Z]{10}", text) for text in found)


def test_hourly_weights_leave_out_an_hour_of_weight_nought(tmp_path: Path) -> None:
    file = tmp_path / "sample.yml"
    hours = ", ".join("0" if hour < 12 else "1" for hour in range(24))
    file.write_text(
        "columns:\n  - name: at\n    type: TIMESTAMP(6)\n    time: {start: 2024-01-01T00:00:00, "
        f"end: 2024-02-01T00:00:00, hourly: [{hours}]}}\n"
    )
    times = [row["at"] for row in table(load_sample(file).value, 200).to_pylist()]
    assert {at.hour for at in times} == set(range(12, 24))
    assert {at.month for at in times} == {1}


def test_a_file_of_somebody_else_is_not_overwritten(sample: Sample, tmp_path: Path) -> None:
    file = tmp_path / "data.parquet"
    refuse_to_overwrite(file)
    write_sample(sample, file, 10)
    refuse_to_overwrite(file)
    file.write_bytes(b"theirs, put in the sample's place")
    with pytest.raises(UsageError, match="was not made by"):
        refuse_to_overwrite(file)
    planted_file(file).unlink()
    with pytest.raises(UsageError, match="was not made by"):
        refuse_to_overwrite(file)
