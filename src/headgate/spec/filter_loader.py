"""Reads a filter's document: every fault at once, each with its JSON pointer and its line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from headgate.errors import DeclarationError, Fault, UsageError
from headgate.spec.document import text_of
from headgate.spec.filter import SOURCE, Filter, id_from_name
from headgate.spec.filter_checks import Found, faults_of
from headgate.spec.filter_lines import NotJsonError, lines_of, read_json
from headgate.spec.refusal import suggestion

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
    return parse_text(text_of(path), str(path))


def parse_text(text: str, file: str = BODY) -> Filter:
    """The filter that a JSON text declares."""
    try:
        data = read_json(text)
    except NotJsonError as error:
        fix = "Check commas, quotes and brackets."
        raise DeclarationError([Fault(file, error.line, WHOLE, error.what, fix)]) from None
    lines = lines_of(text)
    twice = [
        Fault(file, line, at, "the key is given twice", "Keep one.") for at, line in lines.twice
    ]
    return _made(data, file, lines.found, twice)


def parse_filter(data: object, file: str = BODY) -> Filter:
    """The filter that a JSON value declares; without an id it gets one from its name."""
    return _made(data, file or BODY, {})


def _made(
    data: object, file: str, lines: Mapping[str, int], beside: Sequence[Fault] = ()
) -> Filter:
    faults = [*beside, *(_fault(found, file, lines) for found in faults_of(data))]
    if faults:
        raise DeclarationError(sorted(faults, key=lambda fault: fault.line or 0))
    plain = {key: value for key, value in cast("dict[str, Any]", data).items() if value is not None}
    plain.setdefault("id", id_from_name(plain["name"]))
    plain.setdefault("source", SOURCE)
    if not plain["id"]:
        fix = 'Write "id", of lower-case letters, digits and hyphens.'
        raise DeclarationError([Fault(file, lines.get("/name"), "/id", "it has no id", fix)])
    return Filter.model_validate(plain)


def _fault(found: Found, file: str, lines: Mapping[str, int]) -> Fault:
    return Fault(file, line_at(lines, found.pointer), found.pointer or "/", found.what, found.fix)


def line_at(lines: Mapping[str, int], pointer: str) -> int | None:
    """The line of the pointer, or of the nearest thing around it."""
    while pointer and pointer not in lines:
        pointer = pointer.rpartition("/")[0]
    return lines.get(pointer)
