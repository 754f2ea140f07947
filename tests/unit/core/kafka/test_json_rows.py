"""Rows as JSON: what orjson writes for the row, and nothing lost that JSON cannot say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest

from headgate.core.kafka.arrow_json import JsonRows, can_write, from_numpy, keys

DOUBLES = [0.0, -0.0, 1.0, 0.1, 1e16, 1e-7, 1.5e300, 5e-324, -2.5, 123456789.125, 1 / 3]
TEXTS = ["", "N", 'a"b', "back\\slash", "tab\tnew\nline", "\x00\x1f\x7f", "żółć 🎉", "null", "%s"]
TIMES = [0, 1_704_069_167_000_000, 1_704_069_167_000_001, -1, -1_000_000, 1_500_000]


def array(values: Sequence[object], kind: pa.DataType, dtype: Any) -> pa.Array:
    absent = np.array([value is None for value in values])
    filled = [values[0] if value is None else value for value in values]
    return from_numpy(np.array(filled, dtype=dtype), kind, absent)


def batch(columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def lines(columns: Mapping[str, pa.Array]) -> list[bytes]:
    rows = batch(columns)
    return JsonRows(rows.schema).lines(rows)


def numbers(*values: float | None) -> pa.Array:
    return array(values, pa.float64(), np.float64)


def moment(microseconds: int) -> datetime:
    return datetime(1970, 1, 1) + timedelta(microseconds=microseconds)


def zoned(microseconds: int) -> datetime:
    return moment(microseconds).replace(tzinfo=UTC)


def day(days: int) -> date:
    return date(1970, 1, 1) + timedelta(days=days)


def same(value: object) -> object:
    return value


# Name, stored values, type, numpy type, and what Python reads the stored value as.
COLUMNS: tuple[tuple[str, Sequence[Any], pa.DataType, Any, Callable[[Any], object]], ...] = (
    ("whole %", [0, -1, 2**63 - 1, -(2**63)], pa.int64(), np.int64, same),
    ("small", [7, -7], pa.int32(), np.int32, same),
    ('double "quoted"', DOUBLES, pa.float64(), np.float64, same),
    ("single", [0.1, 1.0, 3e38], pa.float32(), np.float32, lambda v: float(np.float32(v))),
    ("text", TEXTS, pa.string(), object, same),
    ("at", TIMES, pa.timestamp("us"), np.int64, moment),
    ("milli", [0, 1, 1_704_069_167_123], pa.timestamp("ms"), np.int64, lambda v: moment(v * 1000)),
    ("zoned", TIMES, pa.timestamp("us", tz="UTC"), np.int64, zoned),
    ("day", [0, 19_723, -1], pa.date32(), np.int32, day),
    ("flag", [True, False], pa.bool_(), bool, same),
)


def random_batch(seed: int, rows: int = 40) -> tuple[pa.RecordBatch, list[dict[str, object]]]:
    """A batch, and its rows as Python reads them."""
    rng = np.random.default_rng(seed)
    columns: dict[str, pa.Array] = {}
    read: list[dict[str, object]] = [{} for _ in range(rows)]
    for name, values, kind, dtype, as_python in COLUMNS:
        wide = (rng.standard_normal(9) * 10.0 ** rng.integers(-20, 20, 9)).tolist()
        choices = [*values, *wide] if kind == pa.float64() else values
        picked = [choices[i] for i in rng.integers(0, len(choices), rows)]
        stored = [picked[0], *(None if rng.random() < 0.2 else v for v in picked[1:])]
        columns[name] = array(stored, kind, dtype)
        for row, value in zip(read, stored, strict=True):
            row[name] = None if value is None else as_python(value)
    return batch(columns), read


@pytest.mark.parametrize("seed", range(5))
def test_a_row_reads_as_orjson_writes_it(seed: int) -> None:
    stored, rows = random_batch(seed)
    assert JsonRows(stored.schema).lines(stored) == [orjson.dumps(row) for row in rows]


def test_a_slice_of_a_batch_reads_as_its_own_rows() -> None:
    stored, _ = random_batch(9)
    writer = JsonRows(stored.schema)
    assert writer.lines(stored.slice(11, 13)) == writer.lines(stored)[11:24]
    assert writer.lines(stored.slice(0, 0)) == []


def test_what_json_cannot_say_is_written_as_a_token_and_never_as_null() -> None:
    values = numbers(float("nan"), float("inf"), float("-inf"), None, 1.0)
    assert lines({"a": values, "b": numbers(1.0, 2.0, 3.0, 4.0, 5.0)}) == [
        b'{"a":NaN,"b":1.0}',
        b'{"a":Infinity,"b":2.0}',
        b'{"a":-Infinity,"b":3.0}',
        b'{"a":null,"b":4.0}',
        b'{"a":1.0,"b":5.0}',
    ]


def test_times_have_a_fraction_only_where_there_is_one() -> None:
    at = array([1_704_069_167_000_000_000, 500_000_000, 7], pa.timestamp("ns"), np.int64)
    assert lines({"at": at}) == [
        b'{"at":"2024-01-01T00:32:47"}',
        b'{"at":"1970-01-01T00:00:00.500000"}',
        b'{"at":"1970-01-01T00:00:00.000000007"}',
    ]


def test_bytes_that_are_no_utf8_stay_as_they_are() -> None:
    data = pa.Array.from_buffers(
        pa.string(),
        1,
        [None, pa.py_buffer(np.array([0, 3], dtype=np.int32)), pa.py_buffer(b'\xff"\xfe')],
    )
    assert lines({"a": data}) == [b'{"a":"\xff\\"\xfe"}']


def test_decimals_keep_all_their_digits() -> None:
    cents = array([110, 5, None], pa.int64(), np.int64).cast(pa.decimal128(21, 2))
    assert lines({"a": cents}) == [b'{"a":110.00}', b'{"a":5.00}', b'{"a":null}']


def test_a_key_is_plain_text_and_absent_where_the_value_is_null() -> None:
    assert keys(array([132, None], pa.int64(), np.int64)) == [b"132", None]
    assert keys(array(['a"b', None, "null", ""], pa.string(), object)) == [
        b'a"b',
        None,
        b"null",
        b"",
    ]
    assert keys(array([0], pa.timestamp("us"), np.int64)) == [b"1970-01-01T00:00:00"]


def values(items: Sequence[object], kind: pa.DataType) -> pa.Array:
    return pa.array(items, kind)


NESTED: tuple[tuple[pa.DataType, Sequence[object], Sequence[str]], ...] = (
    (pa.list_(pa.int64()), [[1, None], [], None], ["[1,null]", "[]", "null"]),
    (pa.large_list(pa.string()), [['a"'], None], ['["a\\""]', "null"]),
    (pa.list_(pa.float64(), 2), [[1.5, 2.0], None, [0.0, None]], ["[1.5,2.0]", "null", "[0.0,null]"]),
    (
        pa.struct([("a %", pa.int8()), ("at", pa.timestamp("s"))]),
        [{"a %": 1, "at": datetime(2024, 1, 1)}, None, {"a %": None}],
        ['{"a %":1,"at":"2024-01-01T00:00:00"}', "null", '{"a %":null,"at":null}'],
    ),
    (pa.map_(pa.string(), pa.int64()), [[("x", 1), ("y", None)], None, []], ['{"x":1,"y":null}', "null", "{}"]),
    (pa.map_(pa.int32(), pa.bool_()), [[(7, True)]], ['{"7":true}']),
    (pa.list_(pa.list_(pa.decimal128(38, 2))), [[[Decimal("1.10")], []]], ["[[1.10],[]]"]),
)  # fmt: skip


@pytest.mark.parametrize(("kind", "items", "texts"), NESTED)
def test_lists_structs_and_maps_are_written_whole(
    kind: pa.DataType, items: Sequence[object], texts: Sequence[str]
) -> None:
    column = values(items, kind)
    assert lines({"a": column}) == [f'{{"a":{text}}}'.encode() for text in texts]
    assert lines({"a": column.slice(1)}) == [f'{{"a":{text}}}'.encode() for text in texts[1:]]


SCALARS: tuple[tuple[pa.DataType, Sequence[object], Sequence[str]], ...] = (
    (pa.uint64(), [2**64 - 1, None], ["18446744073709551615", "null"]),
    (pa.decimal128(38, 0), [Decimal(10**37)], [str(10**37)]),
    (pa.decimal256(60, 0), [Decimal(10**50), None], [f'"{10**50}"', "null"]),
    (
        pa.decimal128(38, 20),
        [Decimal("1.5E-19"), Decimal(0)],
        ["0.00000000000000000015", f"0.{'0' * 20}"],
    ),
    (pa.time64("ns"), [1_000, 1_000_000_000, None], ['"00:00:00.000001000"', '"00:00:01"', "null"]),
    (pa.duration("ms"), [5, None], ["5", "null"]),
    (pa.dictionary(pa.int8(), pa.int64()), [7, None], ["7", "null"]),
    (pa.dictionary(pa.int8(), pa.string()), ["x", None], ['"x"', "null"]),
    (pa.string_view(), ["x"], ['"x"']),
    (pa.float16(), [0.5, None], ["0.5", "null"]),
    (pa.timestamp("ms", tz="America/New_York"), [0, None], ['"1970-01-01T00:00:00+00:00"', "null"]),
    (pa.timestamp("ns", tz="Asia/Kolkata"), [1], ['"1970-01-01T00:00:00.000000001+00:00"']),
)


@pytest.mark.parametrize(("kind", "items", "texts"), SCALARS)
def test_rarer_types_lose_nothing(
    kind: pa.DataType, items: Sequence[object], texts: Sequence[str]
) -> None:
    assert lines({"a": values(items, kind)}) == [f'{{"a":{text}}}'.encode() for text in texts]


def test_a_uuid_is_written_as_people_write_it() -> None:
    column = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(range(16))], pa.binary(16)))
    assert lines({"a": column}) == [b'{"a":"00010203-0405-0607-0809-0a0b0c0d0e0f"}']


def test_bytes_are_no_column_of_an_event() -> None:
    for kind in (pa.binary(), pa.binary(4), pa.list_(pa.large_binary())):
        assert not can_write(kind)
        with pytest.raises(TypeError, match="cannot be written"):
            JsonRows(pa.schema([("a", kind)]))
