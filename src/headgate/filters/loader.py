"""Loads a filter from a file, a text or a JSON value; raises DeclarationError with all faults and their lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from headgate.declarations.document import text_of
from headgate.declarations.errors import MOST_FAULTS, suggestion
from headgate.declarations.names import SOURCE
from headgate.errors import DeclarationError, Fault, UsageError
from headgate.filters.document_text import (
    MOST_BYTES,
    JsonText,
    NotJsonError,
    lines_of,
    read_json,
)
from headgate.filters.spec import Filter, id_from_name
from headgate.filters.validation import Found, faults_of

FOLDER = Path("schemas") / "v1" / "filters"
WHOLE = "(whole file)"
BODY = "filter"


def filter_files(root: Path) -> tuple[Path, ...]:
    """The filters declared under `root`, sorted."""
    return tuple(sorted((root / FOLDER).glob("*.json")))


def find_filter(root: Path, name: str) -> Path:
    """The document of that filter; an unknown one is refused with those there are."""
    path = root / FOLDER / f"{name}.json"
    if path in filter_files(root):
        return path
    raise UsageError(
        f"there is no filter `{name}`",
        why=f"{FOLDER / path.name} does not exist",
        fix=suggestion(name, [file.stem for file in filter_files(root)], "filters"),
    )


def load_filter(path: Path) -> Filter:
    """The filter in `path`; raises DeclarationError with all faults and their lines."""
    return parse_text(filter_text(path), str(path))


def filter_text(path: Path) -> str:
    """The text of a filter's file; one that is larger than a filter may be is not read."""
    try:
        is_large = path.stat().st_size > MOST_BYTES
    except OSError:
        is_large = False  # `text_of` says why it cannot be read
    if is_large:
        what = f"the file has more than {MOST_BYTES:,} bytes"
        fix = "Split the filter into several."
        raise DeclarationError([Fault(str(path), None, WHOLE, what, fix)])
    return text_of(path)


def parse_text(text: str, file: str = BODY) -> Filter:
    """The filter that a JSON text declares."""
    try:
        parsed = read_json(text)
    except NotJsonError as error:
        raise DeclarationError([Fault(file, error.line, WHOLE, error.what, error.fix)]) from None
    return filter_of(parsed, text, file)


def filter_of(parsed: JsonText, text: str, file: str = BODY) -> Filter:
    """The filter that a JSON text declares which was read already."""
    try:
        declared = make_filter(parsed.data)
    except FilterFaultsError as error:
        raise _declaration_error(text, file, error.faults) from None
    if parsed.repeats_key:
        raise _declaration_error(text, file, ())
    return declared


def parse_filter(data: object, file: str = BODY) -> Filter:
    """The filter that a JSON value declares; without an id it gets one from its name."""
    try:
        return make_filter(data)
    except FilterFaultsError as error:
        raise DeclarationError([_fault(one, file or BODY, {}) for one in error.faults]) from None


class FilterFaultsError(ValueError):
    """The first faults of a filter's document, at most MOST_FAULTS and one that says so."""

    def __init__(self, faults: Iterable[Found]) -> None:
        super().__init__("the filter is not valid")
        listed = list(islice(faults, MOST_FAULTS + 1))
        if len(listed) > MOST_FAULTS:
            what = f"there are more faults; the first {MOST_FAULTS} are listed"
            listed[MOST_FAULTS:] = [Found((), what, "Correct these first.")]
        self.faults = tuple(listed)


def make_filter(data: object) -> Filter:
    """The model of a document, or FilterFaultsError."""
    error = FilterFaultsError(faults_of(data))
    if error.faults:
        raise error
    plain = {key: value for key, value in cast("dict[str, Any]", data).items() if value is not None}
    plain.setdefault("id", id_from_name(plain["name"]))
    plain.setdefault("source", SOURCE)
    if not plain["id"]:
        fix = 'Write "id", of lower-case letters, digits and hyphens.'
        raise FilterFaultsError([Found(("id",), "it has no id", fix)])
    try:
        return Filter.model_validate(plain)
    except ValidationError as error:
        # The checks above have better words; this is for what they do not look at.
        raise FilterFaultsError(_of_pydantic(one) for one in error.errors()) from None


def _of_pydantic(detail: ErrorDetails) -> Found:
    message = detail["msg"]
    return Found(detail["loc"], f"{message[:1].lower()}{message[1:]}", "Write another value.")


def _declaration_error(text: str, file: str, faults: Sequence[Found]) -> DeclarationError:
    """The faults with their lines, and keys that are given twice beside them."""
    lines = lines_of(text, [fault.pointer for fault in faults])
    twice = [
        Fault(file, line, at, "the key is given twice", "Keep one.") for at, line in lines.twice
    ]
    placed = [*twice, *(_fault(fault, file, lines.found) for fault in faults)]
    return DeclarationError(sorted(placed, key=lambda fault: fault.line or 0))


def _fault(found: Found, file: str, lines: Mapping[str, int]) -> Fault:
    return Fault(file, line_at(lines, found.pointer), found.pointer or "/", found.what, found.fix)


def line_at(lines: Mapping[str, int], pointer: str) -> int | None:
    """The line of the pointer, or of the nearest thing around it."""
    while pointer and pointer not in lines:
        pointer = pointer.rpartition("/")[0]
    return lines.get(pointer)
