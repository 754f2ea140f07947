"""Rule sets in the two older forms, put into that of version 2 with their lines kept."""

from __future__ import annotations

import re
from pathlib import Path

from headgate.declarations.spec_document import Document, Plain
from headgate.quality.spec.rules_moving import Moving
from headgate.quality.spec.rules_old_joined import dropped, joined
from headgate.quality.spec.rules_old_typed import typed

_ADVICE = "it still loads, but write version 2 (docs/rules.md says how)"


def converted(document: Document) -> tuple[Document, tuple[str, ...]]:
    """The document as version 2 writes it, and what to tell a person where it was not that."""
    data = document.data
    if not isinstance(data, dict) or data.get("version", 0) not in (0, 1) or "tables" in data:
        return document, ()
    table = table_name(document.file)
    if _is_typed(data):
        form, moved = "the old typed form", typed(Moving(document), data, table)
    elif data.get("version") == 1:
        form, moved = "the form of version 1", joined(Moving(document), data, table)
    else:
        return document, ()
    name = Path(document.file).name
    unused = () if _is_typed(data) else dropped(data)
    notes = (f"{name}: {key} says nothing here and is left out" for key in unused)
    return moved, (f"{name} is written in {form}: {_ADVICE}", *notes)


def table_name(file: str) -> str:
    """The name of the only table in an old file: the file's own."""
    name = re.sub(r"[^a-z0-9_]+", "_", Path(file).stem.lower()).strip("_")
    return name if name[:1].isalpha() else f"t_{name}"


def _is_typed(data: dict[str, Plain]) -> bool:
    rules = data.get("rules")
    listed = [rule for rule in rules if isinstance(rule, dict)] if isinstance(rules, list) else []
    return any("id" in rule or ("type" in rule and "name" not in rule) for rule in listed)
