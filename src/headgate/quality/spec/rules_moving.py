"""Moves parts of a document to other places, each with the line it was written on."""

from __future__ import annotations

from headgate.declarations.spec_document import Document, Plain


class Moving:
    """A document under construction: what is put into it keeps its old lines."""

    def __init__(self, old: Document) -> None:
        self.old = old
        self._lines: dict[str, int] = {"": old.lines.get("", 1)}
        self._by_head: dict[str, list[tuple[str, int]]] = {}
        for pointer, line in old.lines.items():
            self._by_head.setdefault(_head(pointer), []).append((pointer, line))

    def line(self, new: str, old: str) -> None:
        """What stands at `new` was written at `old`, with all that is inside it."""
        for pointer, line in self._by_head.get(_head(old), ()):
            if pointer == old or pointer.startswith((f"{old}.", f"{old}[")):
                self._lines.setdefault(new + pointer.removeprefix(old), line)

    def refuse(self, pointer: str, what: str, fix: str) -> None:
        """A fault of the old document, at a place in it."""
        self.old.add(pointer, what, fix)

    def finish(self, data: dict[str, Plain]) -> Document:
        return Document(self.old.file, self.old.variables, data, self._lines, self.old.faults)


def _head(pointer: str) -> str:
    """The first step of a pointer: a key, or an item of a list."""
    return pointer.partition(".")[0]


def texts(value: Plain) -> list[str]:
    """The texts of a list, or the one text."""
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, str)]


def mapping(value: Plain) -> dict[str, Plain]:
    """The mapping, or an empty one for what is none."""
    return value if isinstance(value, dict) else {}


def mappings(value: Plain) -> list[tuple[int, dict[str, Plain]]]:
    """The mappings of a list with their places in it."""
    items = value if isinstance(value, list) else []
    return [(at, item) for at, item in enumerate(items) if isinstance(item, dict)]
