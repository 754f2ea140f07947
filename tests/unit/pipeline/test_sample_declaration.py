"""A sample's declaration: what is wrong is said at its line, all at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.errors import DeclarationError, UsageError
from headgate.pipeline.generator.declaration import find_sample, load_sample
from headgate.pipeline.loader import load_dataset

ROOT = Path(__file__).parents[3]
VARIABLES = {"TOPIC": "t", "DLQ_TOPIC": "d"}


def faults(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / "sample.yml"
    file.write_text(text)
    with pytest.raises(DeclarationError) as caught:
        load_sample(file)
    return [f"{fault.line} {fault.field}: {fault.what}" for fault in caught.value.faults]


def test_every_shipped_sample_has_the_columns_of_its_dataset() -> None:
    for file in ROOT.glob("datasets/*/sample.yml"):
        dataset = load_dataset(file.with_name("dataset.yml"), VARIABLES).value
        written = [column.name for column in load_sample(file).value.written]
        assert written == [column.name for column in dataset.columns]


def test_faults_are_told_together_with_their_lines(tmp_path: Path) -> None:
    said = faults(
        tmp_path,
        """\
columns:
  - {name: a, type: DOUBLE, uniform: {low: 2, high: 1}}
  - {name: b, type: DOUBLE, sum: {of: [c]}}
  - {name: c, type: DOUBLE, sum: {of: [b]}}
  - {name: d, type: STRING, normal: {mean: 0, sigma: 1}, constant: x}
  - {name: e, type: BIGINT, choice: {values: [1, x], weights: [1]}}
missing:
  - {share: 0.1, columns: [aa]}
duplicates: 0.9
bad:
  - {kind: k, share: 0.2, set: {e: NaN}}
filtered:
  - {kind: k, share: 0.2}
""",
    )
    assert said == [
        "1 columns: these need each other: b → c → b",
        "2 columns[0].uniform.low: the low end is above the high end",
        "5 columns[3]: `d` has `constant` and `normal`",
        "6 columns[4].choice.values: `x` is no BIGINT",
        "6 columns[4].choice.weights: 2 values have 1 weights",
        "8 missing[0].columns: there is no column `aa`",
        "9 duplicates: the planted shares sum to 1.3",
        "11 bad[0].set.e: `NaN` is no BIGINT",
        "13 filtered[0].kind: `k` is used twice",
        "13 filtered[0]: nothing is changed",
    ]


def test_an_unknown_key_is_told_with_the_nearest_one(tmp_path: Path) -> None:
    good = "columns:\n  - {name: a, type: INT, constant: 1}\n"
    said = faults(tmp_path, good + "  - {name: b, type: INT, normal: {mean: 1, sigmaa: 2}}\n")
    assert said == [
        "3 columns[1].normal.sigma: the key `sigma` is missing",
        "3 columns[1].normal.sigmaa: the key `sigmaa` is unknown",
    ]


def test_a_dataset_without_a_sample_says_where_to_write_one(tmp_path: Path) -> None:
    folder = tmp_path / "datasets" / "orders"
    folder.mkdir(parents=True)
    (folder / "dataset.yml").write_text("name: orders\n")
    with pytest.raises(UsageError, match="declares no sample") as caught:
        find_sample(tmp_path, "orders")
    assert "datasets/orders/sample.yml" in caught.value.why
