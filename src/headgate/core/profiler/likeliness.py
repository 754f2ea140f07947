"""How likely a column is part of what tells two events apart."""

from __future__ import annotations

import re

from headgate.core.profiler.names import snake_case
from headgate.core.profiler.profile_model import ColumnProfile

_IDENTIFIER = re.compile(r"(^|_)(id|ids|key|uuid|guid|code|no|nr|num|number|ref|sku|isbn|iata)$")
_MEASURE = re.compile(
    r"amount|price|cost|fee|fare|total|tax|qty|quantity|count|rate|ratio|score|distance|duration"
    r"|delay|temp|speed|weight|height|width|percent|avg|mean|sum|lat|lon|pressure|humid"
)
_PART_OF_DATE = re.compile(r"(^|_)(year|month|day|hour|minute|second|week|quarter)$")
_OF_KIND = {"whole": 3, "text": 2, "time": 7, "date": 7, "decimal": 6, "boolean": 7, "real": 9}


# Measures and further times are unique by accident: they are asked last.
UNLIKELY = 7


def unlikeliness(column: ColumnProfile, event_time: str) -> tuple[int, int]:
    """The lower the likelier; of equals, the one with more different values comes first."""
    name = snake_case(column.name)
    said = _OF_KIND.get(column.kind, 10)
    if column.name == event_time:
        said = 1
    elif _IDENTIFIER.search(name):
        said = 0 if column.kind != "real" else 4
    elif _PART_OF_DATE.search(name):
        said = 6
    elif _MEASURE.search(name):
        said += 4
    if column.nulls:
        said += 5
    if column.distinct <= 1:
        said += 10
    return said, -column.distinct
