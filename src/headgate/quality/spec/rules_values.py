"""The lists of values that a rule set keeps in files beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson

from headgate.declarations.refusal import Refusal
from headgate.declarations.spec_document import Document, Plain

MAX_VALUES = 10_000
_FORM = 'Write a JSON list of texts or numbers: ["a", "b"].'


def fill_values(document: Document, folder: Path) -> None:
    """Puts the list of each `values_file` in its place; a `url` is refused."""
    for pointer, rule in _rules(document.data):
        if "url" in rule:
            document.add(
                f"{pointer}.url",
                "a list is not fetched from elsewhere, since its revision could not be kept",
                "Save it as JSON beside this file and write values_file: name.json.",
            )
            del rule["url"]
            rule.setdefault("values", ["?"])
        name = rule.get("values_file")
        if isinstance(name, str) and "values" not in rule:
            try:
                rule["values"] = _read(folder, name)
                del rule["values_file"]
            except Refusal as refusal:
                document.add(f"{pointer}.values_file", refusal.what, refusal.fix)


def _rules(data: Plain) -> Iterator[tuple[str, dict[str, Plain]]]:
    given = data if isinstance(data, dict) else {}
    yield from _listed("rules", given.get("rules"))
    tables = given.get("tables")
    for at, table in enumerate(tables if isinstance(tables, list) else []):
        if isinstance(table, dict):
            yield from _listed(f"tables[{at}].rules", table.get("rules"))


def _listed(place: str, rules: Plain) -> Iterator[tuple[str, dict[str, Plain]]]:
    for at, rule in enumerate(rules if isinstance(rules, list) else []):
        if isinstance(rule, dict):
            yield f"{place}[{at}]", rule


def _read(folder: Path, name: str) -> list[Plain]:
    path = folder / name
    if not name.isprintable():
        raise Refusal(f"{name!r} has a control character", "Write the name of a file beside this.")
    if not path.resolve().is_relative_to(folder.resolve()):
        raise Refusal(f"`{name}` is not beside this file", "Put it there and write its name alone.")
    try:
        found: Plain = orjson.loads(path.read_bytes())
    except OSError as error:
        raise Refusal(f"`{name}` cannot be read: {error.strerror}", "Check its name.") from None
    except orjson.JSONDecodeError as error:
        raise Refusal(f"`{name}` is not JSON: {error}", _FORM) from None
    if not isinstance(found, list) or not found:
        raise Refusal(f"`{name}` is not a list with values", _FORM)
    if len(found) > MAX_VALUES:
        raise Refusal(f"`{name}` has more than {MAX_VALUES:,} values", "Join with a table instead.")
    return found
