"""All filters of a source topic as one script: each record is read once, whatever their number.

What a filter asks to be equal becomes rows of `router_keys`, joined as data; what is left of it is
asked only of the events that the join gives it. A filter without equalities is asked of every event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from headgate.compile.filters.compile import SENT
from headgate.compile.filters.model import CompiledFilter
from headgate.compile.filters.reading import (
    REASONS,
    RECORD,
    TOMBSTONE,
    json_text,
    json_value,
    parsed,
    read,
)
from headgate.compile.filters.terms import Cut, cut
from headgate.compile.rules.statement import case, indented, nested, select
from headgate.expr.json_conditions import TEXT, VALUE
from headgate.expr.literals import spark_identifier, spark_literal
from headgate.expr.spark import to_spark
from headgate.expr.tree import Column, Expr, Function, Literal, mapped, walk
from headgate.spec.filter import COLUMNS, JSON_COLUMN
from headgate.spec.types import STRING

Key: TypeAlias = tuple[int, list[str], int, int]
KEYS_SCHEMA = "signature INT, terms ARRAY<STRING>, filter INT, question INT"
NO_QUESTION = -1
_PLACE = ("partition", "offset", "timestamp")


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
    views = {
        "router_parsed": parsed("router_source"),
        "router_read": read("router_parsed"),
        "router_events": select(
            [*RECORD[:3], *map(spark_identifier, COLUMNS)],
            "FROM router_read",
            "WHERE refusal IS NULL",
        ),
        "router_refused": _refused(),
        "router_tombstones": select(
            ["partition", "offset"], "FROM router_read", f"WHERE refusal = '{TOMBSTONE}'"
        ),
        "router_asked": _asked(made),
        "router_matched": _matched(made),
        "router_routed": _routed(made),
    }
    texts = (
        f"CREATE OR REPLACE TEMPORARY VIEW {name} AS\n{query}" for name, query in views.items()
    )
    return RouterScript(tuple(texts), tuple(_keys(made)))


def _set(filters: tuple[CompiledFilter, ...]) -> _Set:
    paths: dict[str, Function] = {}
    for compiled in filters:
        for node in walk(compiled.condition):
            if isinstance(node, Function) and node.name in (TEXT, VALUE):
                paths.setdefault(to_spark(node), node)
    names = {text: f"_path_{at}" for at, text in enumerate(sorted(paths))}
    cuts = tuple(cut(_with_columns(compiled.condition, names)) for compiled in filters)
    return _Set(
        filters,
        cuts,
        {names[text]: paths[text] for text in sorted(paths)},
        tuple(dict.fromkeys(found.terms for found in cuts if found.terms)),
        tuple(dict.fromkeys(found.rest for found in cuts if found.terms and found.rest)),
    )


def _with_columns(condition: Expr, names: Mapping[str, str]) -> Expr:
    def change(node: Expr) -> Expr:
        name = names.get(to_spark(node)) if isinstance(node, Function) else None
        return node if name is None else Column(name, STRING)

    return mapped(condition, change)


def _keys(made: _Set) -> Iterator[Key]:
    for at, found in enumerate(made.cuts):
        if not found.terms:
            continue
        question = made.questions.index(found.rest) if found.rest else NO_QUESTION
        signature = made.signatures.index(found.terms)
        for row in found.rows:
            yield signature, list(row), at, question


def _refused() -> str:
    words = case([(f"refusal = '{code}'", spark_literal(said)) for code, said in REASONS.items()])
    return select(
        ["partition", "offset", "refusal AS code", f"{words} AS words"],
        "FROM router_read",
        f"WHERE refusal <> '{TOMBSTONE}'",
    )


def _asked(made: _Set) -> str:
    """The events with the values at the paths that some filter asks for."""
    inner = select(["*", f"try_parse_json({JSON_COLUMN}) AS _header"], "FROM router_events")
    columns = [f"{_path(node)} AS {name}" for name, node in made.paths.items()]
    return select(["*", *columns], f"FROM {nested(inner)}")


def _path(node: Function) -> str:
    path = to_spark(node.arguments[1])
    return json_text("_header", path) if node.name == TEXT else json_value("_header", path)


def _matched(made: _Set) -> str:
    """Each event with each filter that takes it."""
    parts = [*_by_key(made), *_by_question(made)]
    if not parts:
        return "SELECT *, CAST(NULL AS INT) AS filter FROM router_asked WHERE FALSE"
    return "\nUNION ALL\n".join(parts)


def _by_key(made: _Set) -> Iterator[str]:
    if not made.signatures:
        return
    structs = [
        f"struct({at} AS signature, array({', '.join(to_spark(term) for term in terms)}) AS terms)"
        for at, terms in enumerate(made.signatures)
    ]
    exploded = select(
        ["*", f"explode(array(\n{indented(structs)}\n)) AS _sought"], "FROM router_asked"
    )
    joined = select(
        ["/*+ BROADCAST(k) */ e.*", "k.filter", "k.question"],
        f"FROM {nested(exploded, 'e')}",
        "JOIN router_keys k",
        "  ON k.signature = e._sought.signature AND k.terms = e._sought.terms",
    )
    questions = [(f"question = {at}", to_spark(rest)) for at, rest in enumerate(made.questions)]
    asked = [f"WHERE {case(questions, 'TRUE')}"] if questions else []
    yield select(_columns(made), f"FROM {nested(joined)}", *asked)


def _by_question(made: _Set) -> Iterator[str]:
    alone = [(at, found.rest) for at, found in enumerate(made.cuts) if not found.terms]
    if not alone:
        return
    held = [f"IF({to_spark(rest or _TRUE)}, {at}, NULL)" for at, rest in alone]
    exploded = select(
        ["*", f"explode(array_compact(array(\n{indented(held)}\n))) AS filter"],
        "FROM router_asked",
    )
    yield select(_columns(made), f"FROM {nested(exploded)}")


_TRUE = Literal(True, replace(STRING, name="BOOLEAN"))


def _columns(made: _Set) -> list[str]:
    return [*_PLACE, *map(spark_identifier, SENT), "filter"]


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
