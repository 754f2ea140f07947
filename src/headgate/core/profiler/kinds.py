"""The types of a file's columns on their way, and the columns that cannot go it."""

# pyarrow ships no types, so what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson
import pyarrow as pa

from headgate.core.kafka.json_nested import is_nested
from headgate.core.kafka.json_rows import can_write, is_long_decimal, written_as_text
from headgate.core.profiler.names import plain_names
from headgate.core.profiler.profile_model import Kind
from headgate.core.sql.bronze import OWN_NAMES
from headgate.declarations.spec_columns import RESERVED_COLUMNS, is_odd_name
from headgate.errors import OperationError

_TAKEN = frozenset(RESERVED_COLUMNS) | OWN_NAMES


def types_of(kind: pa.DataType) -> tuple[Kind, str, str]:
    """What it is, its type in the topic's JSON, and its type in bronze."""
    types = pa.types
    if types.is_dictionary(kind):
        return types_of(kind.value_type)
    if is_nested(kind):
        return "nested", "JSON", "STRING"
    if types.is_timestamp(kind):
        digits = 3 if kind.unit in ("s", "ms") else 6
        return "time", "STRING", f"{'TIMESTAMP_LTZ' if kind.tz else 'TIMESTAMP'}({digits})"
    if types.is_date(kind):
        return "date", "STRING", "DATE"
    if types.is_boolean(kind):
        return "boolean", "BOOLEAN", "BOOLEAN"
    if types.is_null(kind):
        return "nothing", "STRING", "STRING"
    if types.is_decimal(kind) and not is_long_decimal(kind):
        text = f"DECIMAL({max(kind.precision, kind.scale)}, {kind.scale})"
        return "decimal", text, text
    if types.is_floating(kind):
        return "real", "DOUBLE", "DOUBLE"
    return ("text", "STRING", "STRING") if written_as_text(kind) else _whole(kind)


def _whole(kind: pa.DataType) -> tuple[Kind, str, str]:
    if pa.types.is_uint64(kind):
        return "whole", "DECIMAL(20, 0)", "DECIMAL(20, 0)"
    text = "INT" if kind.bit_width < 32 or pa.types.is_int32(kind) else "BIGINT"
    return "whole", text, text


def require_columns(file: str, schema: pa.Schema) -> None:
    """Refuse a file with columns that no manifest can declare, all of them at once."""
    faults = [*_name_faults(schema.names), *_type_faults(schema)]
    if not schema.names:
        faults = ["it has no columns"]
    if not faults:
        return
    renamed = plain_names(schema.names, _TAKEN)
    raise OperationError(
        f"{file} cannot be declared as it is: {_count(len(faults))}",
        why="\n".join(faults),
        fix=_fix(file, schema, renamed),
    )


def _count(faults: int) -> str:
    return "one fault" if faults == 1 else f"{faults} faults"


def _name_faults(names: Sequence[str]) -> Iterator[str]:
    folded = Counter(name.lower() for name in names)
    for name in names:
        said = orjson.dumps(name).decode()
        if not name.strip():
            yield f"column {said} has no name"
        elif name != name.strip():
            yield f"column {said} has blanks around its name"
        elif is_odd_name(name):
            yield f"column {said} has a dot, a quote, `${{` or a control character in its name"
        elif name.lower() in _TAKEN:
            yield f"column {said} has a name that Headgate uses itself"
        elif folded[name.lower()] > 1:
            yield f"column {said} has another's name but for the case, which tables do not tell apart"


def _type_faults(schema: pa.Schema) -> Iterator[str]:
    for field in schema:
        if not can_write(field.type):
            yield f"column {orjson.dumps(field.name).decode()} is {field.type}: JSON has no bytes"


def _fix(file: str, schema: pa.Schema, renamed: tuple[str, ...]) -> str:
    """A command that writes the file anew; columns of bytes become hexadecimal text."""
    new = file.removesuffix(".parquet") + ".renamed.parquet"
    if all(can_write(field.type) for field in schema):
        steps = f"t.rename_columns({list(renamed)!r})"
        told = "rename the columns where the file is made, or in a copy of it:"
    else:
        kept = [i for i, field in enumerate(schema) if can_write(field.type)]
        steps = f"t.select({kept}).rename_columns({[renamed[i] for i in kept]!r})"
        told = (
            "write columns of bytes as text (hexadecimal, base64) where the file is made, "
            "or leave them out in a copy of it:"
        )
    return (
        f"{told}\n{_python()} -c \"import pyarrow.parquet as p; t = p.read_table('{file}'); "
        f"p.write_table({steps}, '{new}')\""
    )


def _python() -> str:
    """The interpreter that has pyarrow, as one types it here."""
    found, here = Path(sys.executable), Path.cwd()
    return str(found.relative_to(here) if found.is_relative_to(here) else found)
