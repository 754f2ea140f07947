"""Every entry of the composition root names something that is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

import pytest

from headgate import app


def entries(value: object) -> Iterator[str]:
    """The strings `module:attribute` in a table, however it is nested."""
    if isinstance(value, str) and value.startswith("headgate.") and ":" in value:
        yield value
    elif isinstance(value, Mapping):
        yield from entries(tuple(cast("Mapping[str, object]", value).values()))
    elif isinstance(value, tuple):
        for item in cast("tuple[object, ...]", value):
            yield from entries(item)


TABLES = {name: value for name, value in vars(app).items() if name.isupper()}


@pytest.mark.parametrize("entry", sorted(set(entries(tuple(TABLES.values())))))
def test_each_entry_can_be_loaded(entry: str) -> None:
    assert app.load(entry) is not None
