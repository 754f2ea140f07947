"""The shared vectors: the generator gives the file, and Python gives every vector's hash."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tools import hash_vectors

from headgate.errors import OperationError
from headgate.hashing.typed_json import VECTORS_FILE, differences, read_vectors

ROOT = Path(__file__).parents[3]


def test_the_file_is_what_the_generator_writes() -> None:
    assert (ROOT / VECTORS_FILE).read_bytes() == hash_vectors.file_bytes(), (
        "run: python tools/hash_vectors.py"
    )


def test_python_makes_every_vector() -> None:
    read = list(read_vectors(ROOT / VECTORS_FILE))
    assert len(read) >= 2_000
    assert [found for vector in read for found in differences(vector)] == []


def test_every_trap_is_there_more_than_once() -> None:
    traps = Counter(vector.trap for vector in read_vectors(ROOT / VECTORS_FILE))
    assert len(traps) == len(hash_vectors.GROUPS)
    assert min(traps.values()) >= 20


def test_equal_texts_are_rare_enough_to_tell_something() -> None:
    found = list(read_vectors(ROOT / VECTORS_FILE))
    texts = {(str(vector.types), vector.text) for vector in found}
    assert len(texts) > 0.9 * len(found)


def test_a_line_that_is_no_vector_is_refused_with_its_number(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_bytes((ROOT / VECTORS_FILE).read_bytes().partition(b"\n")[0] + b'\n{"id": 1}\n')
    with pytest.raises(OperationError, match=r"line 2 of mine\.jsonl is no vector"):
        list(read_vectors(file))
