"""Compiles all filters of a source topic to one script, so that each record is parsed once for all of them.

A condition is split into equalities, which are looked up by a join with `router_keys`, and the rest, which is
evaluated only for events that the join found. A filter without equalities is evaluated for every event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TypeAlias

from headgate.conditions import builder as build
from headgate.conditions.ast import And, Column, Compare, Expr, Function, In, Literal
from headgate.conditions.literals import spark_identifier, spark_literal
from headgate.conditions.spark_sql import to_spark
from headgate.core.sql.script import case, indented, nested, select
from headgate.declarations.types import BOOLEAN, STRING
from headgate.filters.compile.conditions import OP
from headgate.filters.compile.spark_sql import (
    READ_VIEW,
    REFUSED_VIEW,
    SENT,
    CompiledFilter,
    events_view,
    paths_of,
    view,
    with_columns,
)

# A filter whose lists multiply to more rows of keys than this keeps the later ones as questions.
MOST_ROWS = 256


@dataclass(frozen=True)
class Cut:
    """`terms` are texts of the event; an event can match only if they are one of the `rows`."""

    terms: tuple[Expr, ...]
    rows: tuple[tuple[str, ...], ...]
    rest: Expr | None


def cut(condition: Expr) -> Cut:
    """The equalities among the parts that must all hold, and the rest of them."""
    wanted: dict[str, tuple[Expr, frozenset[str]]] = {}
    rest: list[Expr] = []
    for part in _parts(condition):
        found = _equality(part)
        if found is None or not _joined(wanted, *found):
            rest.append(part)
    if wanted.keys() <= {to_spark(OP)}:
        # Every event has an operation: looked up by that alone, each would find every filter.
        return Cut((), (), condition)
    terms = [wanted[key] for key in sorted(wanted)]
    rows = tuple(product(*(sorted(values) for _, values in terms)))
    left = build.conjunction(rest) if rest else None
    return Cut(tuple(term for term, _ in terms), rows, left)


def _parts(condition: Expr) -> Iterator[Expr]:
    if not isinstance(condition, And):
        yield condition
        return
    for item in condition.items:
        yield from _parts(item)


def _joined(
    wanted: dict[str, tuple[Expr, frozenset[str]]], term: Expr, values: frozenset[str]
) -> bool:
    """Whether the values could be taken in; of one term only what all its equalities allow is left."""
    key = to_spark(term)
    if key in wanted:
        wanted[key] = term, wanted[key][1] & values
        return True
    if prod(len(known) for _, known in wanted.values()) * len(values) > MOST_ROWS:
        return False
    wanted[key] = term, values
    return True


def _equality(part: Expr) -> tuple[Expr, frozenset[str]] | None:
    match part:
        case Compare(operator="=", left=left, right=Literal(value=str(value))) if _is_text(left):
            return left, frozenset({value})
        case In(item=item, options=options) if _is_text(item):
            return item, frozenset(str(option.value) for option in options)
        case _:
            return None


def _is_text(item: Expr) -> bool:
    return item.type == STRING and isinstance(item, Column | Function)


Key: TypeAlias = tuple[int, list[str], int, int | None]
KEYS_SCHEMA = "signature INT, terms ARRAY<STRING>, filter INT, question INT"
_GROUP = 16
_MOST_SHARING = 8
_PLACE = ("partition", "offset", "timestamp")
_SENT = (*_PLACE, *(spark_identifier(name) for name in SENT))
_TRUE = Literal(True, BOOLEAN)


@dataclass(frozen=True)
class RouterScript:
    """SQL over the bound views `router_source` and `router_keys`, to be run in this order.

    `keys` are the rows of `router_keys`, of the type `schema`; `filter` counts the filters from 0.
    """

    views: tuple[str, ...]
    keys: tuple[Key, ...]
    schema: str = KEYS_SCHEMA


@dataclass(frozen=True)
class _Set:
    """The filters cut apart; paths into the JSON column are columns of their own."""

    filters: tuple[CompiledFilter, ...]
    cuts: tuple[Cut, ...]
    paths: Mapping[str, Function]
    signatures: tuple[tuple[Expr, ...], ...]
    questions: tuple[Expr, ...]


def router_script(filters: Sequence[CompiledFilter]) -> RouterScript:
    """The script that routes through all these filters; without any it only reads the records."""
    made = _set(tuple(filters))
    views = (
        READ_VIEW,
        REFUSED_VIEW,
        events_view("router_events", made.paths),
        view("router_matched", _matched(made)),
        view("router_routed", _routed(made)),
    )
    return RouterScript(views, tuple(_keys(made)))


def _set(filters: tuple[CompiledFilter, ...]) -> _Set:
    paths = sorted({node for one in filters for node in paths_of(one.condition)}, key=to_spark)
    names = {node: f"_path_{at}" for at, node in enumerate(paths)}
    conditions = [with_columns(compiled.condition, names) for compiled in filters]
    cuts = _uncrowded(conditions, [cut(condition) for condition in conditions])
    return _Set(
        filters,
        cuts,
        {name: node for node, name in names.items()},
        tuple(dict.fromkeys(found.terms for found in cuts if found.terms)),
        tuple(dict.fromkeys(found.rest for found in cuts if found.terms and found.rest)),
    )


def _uncrowded(conditions: Sequence[Expr], cuts: Sequence[Cut]) -> tuple[Cut, ...]:
    """Without keys where many filters share one: each event would be copied for each of them."""
    shared = Counter((one.terms, row) for one in cuts if one.rest for row in one.rows)
    return tuple(
        Cut((), (), condition)
        if found.rest and any(shared[found.terms, row] > _MOST_SHARING for row in found.rows)
        else found
        for condition, found in zip(conditions, cuts, strict=True)
    )


def _keys(made: _Set) -> Iterator[Key]:
    signatures = {terms: at for at, terms in enumerate(made.signatures)}
    questions = {rest: at for at, rest in enumerate(made.questions)}
    for at, found in enumerate(made.cuts):
        question = questions[found.rest] if found.terms and found.rest else None
        for row in found.rows:
            yield signatures[found.terms], list(row), at, question


def _matched(made: _Set) -> str:
    """Each event with each filter that takes it, in one pass over the events."""
    held = [(at, found.rest or _TRUE) for at, found in enumerate(made.cuts) if not found.terms]
    if not made.filters:
        return select([*_SENT, "CAST(NULL AS INT) AS filter"], "FROM router_events", "WHERE FALSE")
    if not made.signatures:
        found = nested(_sought(made, held))
        return select(
            [*_SENT, "_sought.held AS filter"], f"FROM {found}", "WHERE _sought IS NOT NULL"
        )
    # What is asked of every event has found its filter before the join.
    join = "LEFT JOIN" if held else "JOIN"
    joined = select(
        ["/*+ BROADCAST(k) */ e.*", "coalesce(e._sought.held, k.filter) AS filter", "k.question"],
        f"FROM {nested(_sought(made, held), 'e')}",
        f"{join} router_keys k",
        "  ON k.signature = e._sought.signature AND k.terms = e._sought.terms",
    )
    wanted = "WHERE filter IS NOT NULL"
    if made.questions:
        wanted += f"\n  AND {_asked_of_found(made.questions)}"
    return select([*_SENT, "filter"], f"FROM {nested(joined)}", wanted)


def _asked_of_found(questions: Sequence[Expr]) -> str:
    """What is left to ask of an event by the filter that was found for it."""
    asked = [(f"question = {at}", to_spark(rest)) for at, rest in enumerate(questions)]
    if len(asked) <= _GROUP:
        return case(asked, "TRUE")
    # By groups, since a CASE tries its branches one after another.
    groups = [
        (f"question DIV {_GROUP} = {at // _GROUP}", nested(case(asked[at : at + _GROUP])))
        for at in range(0, len(asked), _GROUP)
    ]
    return case(groups, "TRUE")


def _sought(made: _Set, held: Sequence[tuple[int, Expr]]) -> str:
    """The events, once for each signature under which they are looked up, and each filter found."""
    structs = [
        f"struct({at} AS signature, array({', '.join(to_spark(term) for term in terms)}) AS terms,"
        " CAST(NULL AS INT) AS held)"
        for at, terms in enumerate(made.signatures)
    ]
    nowhere = "CAST(NULL AS INT) AS signature, CAST(NULL AS ARRAY<STRING>) AS terms"
    structs += [f"IF({to_spark(rest)}, struct({nowhere}, {at} AS held), NULL)" for at, rest in held]
    # Leaving out what was not found costs more than all the rest: only where something may be.
    sought = f"array(\n{indented(structs)}\n)"
    sought = f"array_compact({sought})" if held else sought
    return f"SELECT *\nFROM router_events\nLATERAL VIEW OUTER explode({sought}) sought AS _sought"


def _routed(made: _Set) -> str:
    fields = ", ".join(spark_identifier(name) for name in SENT)
    topics = ", ".join(spark_literal(compiled.topic) for compiled in made.filters)
    topic = f"element_at(array({topics}), filter + 1)" if topics else "CAST(NULL AS STRING)"
    value = f"to_json(struct({fields}), map('ignoreNullFields', 'false'))"
    return select(
        [
            *_PLACE,
            "filter",
            f"{topic} AS topic",
            "CAST(id AS BINARY) AS key",
            f"CAST({value} AS BINARY) AS value",
        ],
        "FROM router_matched",
    )
