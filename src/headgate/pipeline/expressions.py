"""The faults of a manifest's expressions, told together with its others.

A manifest with faults gives no dataset, so its expressions are read from the document as it was
written; what refers to a column that is itself at fault is left for when that is mended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from headgate.conditions.faults import ExprError
from headgate.conditions.parser import parse_condition, parse_value
from headgate.declarations.declared import Declared
from headgate.declarations.refusal import Refusal
from headgate.declarations.spec_columns import RECORD_TIME
from headgate.declarations.spec_document import Document, Plain, read_document
from headgate.declarations.spec_types import TIMESTAMP_LTZ, SqlType, parse_type
from headgate.errors import DeclarationError, Fault
from headgate.pipeline.spec import Dataset
from headgate.pipeline.spec_loader import load_dataset


def load_checked(path: Path, variables: Mapping[str, str]) -> Declared[Dataset]:
    """The dataset in `path`; raises the faults of all its keys, those of expressions among them."""
    try:
        return load_dataset(path, variables)
    except DeclarationError as error:
        more = tuple(_expression_faults(path, variables))
        faults = sorted((*error.faults, *more), key=lambda fault: fault.line or 0)
        raise DeclarationError(faults) from None


def _expression_faults(path: Path, variables: Mapping[str, str]) -> Iterator[Fault]:
    if not path.is_file():
        return
    text = path.read_text(encoding="utf-8", errors="replace")
    document = read_document(str(path), text, variables)
    if not isinstance(document.data, dict):
        return
    columns = _columns(document.data)
    types = {name: kind for name, kind in columns.items() if kind} | {RECORD_TIME: TIMESTAMP_LTZ}
    unknown = [name for name, kind in columns.items() if kind is None]
    for pointer, written, parse in _expressions(document.data):
        if not any(name in written for name in unknown):
            yield from _refused(document, pointer, lambda p=parse, w=written: p(w, types))


def _columns(manifest: Mapping[str, Plain]) -> dict[str, SqlType | None]:
    listed = manifest.get("columns")
    found: dict[str, SqlType | None] = {}
    for column in listed if isinstance(listed, list) else []:
        if isinstance(column, dict) and isinstance(name := column.get("name"), str):
            found[name] = _type(column.get("bronze_type"))
    return found


def _type(text: Plain) -> SqlType | None:
    try:
        return parse_type(text) if isinstance(text, str) else None
    except Refusal:
        return None


_Parse = Callable[[str, Mapping[str, SqlType]], object]


def _expressions(manifest: Mapping[str, Plain]) -> Iterator[tuple[str, str, _Parse]]:
    filters = manifest.get("quality_filters")
    for at, text in enumerate(filters if isinstance(filters, list) else []):
        if isinstance(text, str) and text:
            yield f"quality_filters[{at}]", text, parse_condition
    day = manifest.get("partition_date_expr")
    if isinstance(day, str) and day:
        yield "partition_date_expr", day, parse_value


def _refused(document: Document, pointer: str, parse: Callable[[], object]) -> Iterator[Fault]:
    declared = Declared(None, document.file, document.lines)
    try:
        parse()
    except ExprError as error:
        for fault in error.faults:
            yield declared.fault(pointer, fault.what, fault.why, fault.fix)
