"""Check a Parquet file against the manifest before anything is sent, and its rows against a JSON Schema.

All differences are raised at once. A refused row goes out in the envelope {error, row, timestamp}.
"""

# pyarrow ships no types, so what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, cast

import jsonschema_rs
import orjson
import pyarrow as pa

from headgate.core.kafka.arrow_json import can_write, is_long_decimal, written_as_text
from headgate.core.profiler.rows import open_parquet
from headgate.declarations.errors import Declared, suggestion
from headgate.errors import DeclarationError, Fault, OperationError
from headgate.pipeline.spec import Dataset

Row = dict[str, object]
_Tests = tuple[Callable[[pa.DataType], bool], ...]


class _Validator(Protocol):
    def is_valid(self, instance: object) -> bool: ...

    def validate(self, instance: object) -> None: ...


class RowContract:
    """A compiled JSON Schema."""

    def __init__(self, file: Path) -> None:
        self._validator = _compiled(file)

    def refusal(self, line: bytes) -> str | None:
        """Why this row is refused; None when it is accepted."""
        try:
            row: object = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            return f"not JSON: {_token(line) or error}"
        if self._validator.is_valid(row):
            return None
        return _complaint(self._validator, row)


def envelope(error: str, line: bytes, moment: datetime) -> bytes:
    """`{error, row, timestamp}`; the envelope is always JSON, also around a row that is not."""
    stamp = moment.astimezone(UTC).isoformat()
    return orjson.dumps({"error": error, "row": _readable(line), "timestamp": stamp})


def _readable(line: bytes) -> object:
    """The row as an object; what JSON cannot say is text there, and a broken row all text."""
    import json

    try:
        return cast("object", json.loads(line, parse_constant=str))
    except ValueError:
        return line.decode("utf-8", errors="backslashreplace")


def _token(line: bytes) -> str:
    found = [token for token in (b"NaN", b"-Infinity", b"Infinity") if b":" + token in line]
    return f"the token {found[0].decode()}" if found else ""


def _complaint(validator: _Validator, row: object) -> str:
    try:
        validator.validate(row)
    except jsonschema_rs.ValidationError as error:
        place = "/".join(str(step) for step in error.instance_path)
        return f"{place}: {error.message}" if place else str(error.message)
    return "refused by the schema"


def _compiled(file: Path) -> _Validator:
    try:
        schema: object = orjson.loads(file.read_bytes())
        return cast("_Validator", jsonschema_rs.validator_for(cast("Row", schema)))
    except OSError as error:
        what, fix = f"it cannot be read: {error.strerror}", "Check SCHEMA_PATH."
    except orjson.JSONDecodeError as error:
        what, fix = f"this is not JSON: {error}", "Correct it at that place."
    except ValueError as error:  # jsonschema-rs says so of a schema that is none
        what, fix = f"this is not a JSON Schema: {error}".partition("\n")[0], "Correct it."
    raise DeclarationError([Fault(str(file), None, "(whole file)", what, fix)])


class ParquetSource:
    """An open Parquet file with at least one row; `said` names what pointed to it."""

    def __init__(self, file: Path, said: str) -> None:
        self.file = file
        self._parquet = open_parquet(file, said)
        self.schema: pa.Schema = self._parquet.schema_arrow
        self.rows: int = self._parquet.metadata.num_rows
        if not self.rows:
            self.close()
            raise OperationError(
                f"{file} has no rows",
                why="an empty file would look like a success",
                fix="put the real file there, or make one with `headgate feed sample`",
            )

    def batches(self, size: int, limit: int) -> Iterator[pa.RecordBatch]:
        """The first `limit` rows; no more than a row group is ever held in memory."""
        left = limit
        try:
            for batch in self._parquet.iter_batches(batch_size=size, use_threads=False):
                yield batch.slice(0, left)
                left -= batch.num_rows
                if left <= 0:
                    return
        except (pa.ArrowException, OSError) as error:
            raise OperationError(
                f"{self.file} cannot be read to its end",
                why=str(error).partition("\n")[0],
                fix="the file is damaged: fetch it again",
            ) from error

    def close(self) -> None:
        self._parquet.close()


def require_fit(schema: pa.Schema, declared: Declared[Dataset]) -> None:
    """Refuse a file whose columns are not those of the manifest, all differences at once."""
    faults = (*_name_faults(schema, declared), *_type_faults(schema, declared))
    if faults:
        raise DeclarationError(faults)


def _name_faults(schema: pa.Schema, declared: Declared[Dataset]) -> Iterator[Fault]:
    names, columns = list(schema.names), [c.name for c in declared.value.columns]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield declared.fault("columns", f"the file has two columns `{name}`", "", "Rename one.")
    for index, name in enumerate(columns):
        if name not in names:
            left = [other for other in names if other not in columns]
            fix = suggestion(name, left or names, "columns of the file")
            yield declared.fault(
                f"columns[{index}].name", f"the file has no column `{name}`", "", fix
            )
    for name in names:
        if name not in columns:
            left = [other for other in columns if other not in names]
            fix = f"Declare it, or drop it from the file. {_nearest(name, left)}".rstrip()
            yield declared.fault("columns", f"the file's `{name}` is not declared", "", fix)


def _nearest(name: str, known: list[str]) -> str:
    said = suggestion(name, known, "columns")
    return said if said.startswith("Did") else ""


def _type_faults(schema: pa.Schema, declared: Declared[Dataset]) -> Iterator[Fault]:
    for index, column in enumerate(declared.value.columns):
        if column.name not in schema.names:
            continue
        kind, wanted = schema.field(column.name).type, column.kafka_type
        pointer = f"columns[{index}].kafka_type"
        if not can_write(kind):
            what = f"`{column.name}` is {kind} in the file"
            yield declared.fault(pointer, what, "JSON has no bytes", "Write it as text there.")
        elif not any(suits(kind) for suits in _FITTING.get(wanted.name, ())):
            what = f"`{column.name}` is {kind} in the file, not {wanted}"
            yield declared.fault(pointer, what, "", "Declare the type that the file has.")


def _of_values(*tests: Callable[[pa.DataType], bool]) -> _Tests:
    """Tests that also hold for a dictionary of such values, and for a column without any."""

    def holds(kind: pa.DataType) -> bool:
        inner = kind.value_type if pa.types.is_dictionary(kind) else kind
        return pa.types.is_null(inner) or any(test(inner) for test in tests)

    return (holds,)


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_floating(kind) or (pa.types.is_decimal(kind) and not is_long_decimal(kind))


_WHOLE = _of_values(pa.types.is_integer, pa.types.is_duration)
_NUMBER = (*_WHOLE, *_of_values(_is_number))
_TEXT = _of_values(written_as_text)
# What may stand in the file under each type of the manifest.
_FITTING: Mapping[str, _Tests] = {
    "STRING": _TEXT,
    "DATE": _TEXT,
    "TIMESTAMP": _TEXT,
    "TIMESTAMP_LTZ": _TEXT,
    "BOOLEAN": _of_values(pa.types.is_boolean),
    "INT": _WHOLE,
    "BIGINT": _WHOLE,
    "FLOAT": _NUMBER,
    "DOUBLE": _NUMBER,
    "DECIMAL": _NUMBER,
    "JSON": (can_write,),
}
