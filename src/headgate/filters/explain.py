"""Explains a filter in words: its events, conditions, output topic, SQL, and what each revision judged and sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headgate.conditions.ast import Expr, IsNull, Not, walk
from headgate.conditions.builder import negation
from headgate.conditions.describe import describe_condition, listed
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.sql.fragments import fold_lines
from headgate.errors import count_of
from headgate.filters.compile.conditions import condition_of
from headgate.filters.compile.spark_sql import (
    CompiledFilter,
    named,
    path_name,
    paths_of,
    where,
    with_columns,
)
from headgate.filters.spec import AllOf, AnyCondition, AnyOf, Condition, Filter, NotOf
from headgate.filters.store.model import RevisionCount
from headgate.filters.store.routing import RoutingStore

SHORT = 12
_OPS = {"c": "create", "u": "update", "d": "delete", "r": "snapshot read"}
_SINCE = {
    "none": "from its deployment onwards",
    "earliest": "including those from before its deployment",
}
_ALL, _ANY = "all of these are true", "at least one of these is true"
_NOT_ALL, _NONE = "not all of these are true", "none of these is true"
_MISSING = "a condition on a missing value is neither true nor false, and neither is its opposite"


@dataclass(frozen=True)
class ExplainedCondition:
    """A condition in words, or a group: then `words` say how its `parts` combine."""

    words: str
    parts: tuple[ExplainedCondition, ...] = ()


@dataclass(frozen=True)
class ExplainedRevision:
    """The counts of a revision; its standing in the router is empty unless it was deployed last."""

    revision: str
    standing: str
    judged: int
    sent: int
    refused: int


@dataclass(frozen=True)
class ExplainedFilter:
    """A filter's document explained; `counts` are empty where there is no ops store to read."""

    filter: str
    name: str
    file: str
    revision: str
    source: str
    ops: tuple[str, ...]
    enabled: bool
    backfill: str
    condition: ExplainedCondition
    has_negation: bool
    topic: str
    consumer: str
    sql: str
    counts: tuple[ExplainedRevision, ...]


def explain_filter(
    declared: Filter, compiled: CompiledFilter, file: str, counts: Sequence[ExplainedRevision]
) -> ExplainedFilter:
    """The explanation of a document and of what it compiles to."""
    return ExplainedFilter(
        filter=declared.id,
        name=declared.name,
        file=file,
        revision=compiled.revision,
        source=declared.source,
        ops=compiled.ops,
        enabled=declared.enabled,
        backfill=declared.backfill,
        condition=_explain_all(declared),
        has_negation=_has_negation(compiled.condition),
        topic=declared.output_topic,
        consumer=declared.consumer_id,
        sql=fold_lines(where(named(compiled.condition))),
        counts=tuple(counts),
    )


def read_counts(store: OpsStore, filter: str, revision: str) -> tuple[ExplainedRevision, ...]:
    """The counts of every revision that judged or was deployed, and of this one in any case."""
    routing = store.part(RoutingStore)
    seen = routing.seen_filter(filter)
    counted = {one.revision: one for one in routing.revision_counts(filter)}
    for known in (seen.revision if seen else revision, revision):
        counted.setdefault(known, RevisionCount(known, 0, 0, 0))
    return tuple(
        ExplainedRevision(
            revision=one.revision,
            standing=str(seen.standing) if seen and seen.revision == one.revision else "",
            judged=one.judged,
            sent=one.sent,
            refused=one.refused,
        )
        for one in counted.values()
    )


def _explain_all(declared: Filter) -> ExplainedCondition:
    if len(declared.conditions) == 1:
        return _explain(declared.conditions[0])
    words = _ALL if declared.condition_logic == "AND" else _ANY
    return _explain_group(words, declared.conditions)


def _explain(item: AnyCondition, *, holds: bool = True) -> ExplainedCondition:
    """A condition or group; under an odd number of `not`, when it is false."""
    match item:
        case AllOf():
            return _explain_group(_ALL if holds else _NOT_ALL, item.all)
        case AnyOf():
            return _explain_group(_ANY if holds else _NONE, item.any)
        case NotOf():
            return _explain(item.not_, holds=not holds)
        case Condition():
            condition = _with_path_names(condition_of(item))
            return ExplainedCondition(
                describe_condition(condition if holds else negation(condition))
            )


def _explain_group(words: str, items: Sequence[AnyCondition]) -> ExplainedCondition:
    return ExplainedCondition(words, tuple(_explain(item) for item in items))


def _with_path_names(condition: Expr) -> Expr:
    """The condition over columns that are called as the document calls its fields."""
    return with_columns(condition, {node: path_name(node) for node in paths_of(condition)})


def _has_negation(condition: Expr) -> bool:
    """Whether anything is negated that can be NULL: readers take a missing value to pass then."""
    return any(isinstance(n, Not) and not isinstance(n.item, IsNull) for n in walk(condition))


def explanation_lines(explained: ExplainedFilter) -> Iterator[str]:
    """The explanation for a terminal, line by line."""
    yield f"{explained.filter}: {explained.name}"
    yield from _labelled("file", [explained.file])
    yield from _labelled("takes", [_takes(explained)])
    yield from _labelled("matches", _condition_lines(explained))
    yield from _labelled("sends to", [f"{explained.topic}, for {explained.consumer}"])
    yield from _labelled("SQL", explained.sql.split("\n"))
    yield from _labelled("counts", [_counts_words(c, explained) for c in explained.counts])


def _labelled(label: str, lines: Sequence[str]) -> Iterator[str]:
    labels = [label, *("" for _ in lines[1:])]
    return (f"  {shown:<10}{line}" for shown, line in zip(labels, lines, strict=False))


def _takes(explained: ExplainedFilter) -> str:
    ops = listed([f"{_OPS[op]} ({op})" for op in explained.ops])
    events = f"{ops} events from {explained.source}, {_SINCE[explained.backfill]}"
    if explained.enabled:
        return events
    return f"nothing while `enabled` is false; once it is true, {events}"


def _condition_lines(explained: ExplainedFilter) -> list[str]:
    first, *rest = _tree_lines(explained.condition)
    note = [f"({_MISSING})"] if explained.has_negation else []
    return [f"when {first}", *rest, *note]


def _tree_lines(condition: ExplainedCondition) -> Iterator[str]:
    yield f"{condition.words}:" if condition.parts else condition.words
    for part in condition.parts:
        yield from (f"  {line}" for line in _tree_lines(part))


def _counts_words(counts: ExplainedRevision, explained: ExplainedFilter) -> str:
    about = ["this document"] if counts.revision == explained.revision else []
    about += [counts.standing] if counts.standing else []
    named_revision = f"revision {counts.revision[:SHORT]}" + f" ({', '.join(about)})" * bool(about)
    if not counts.judged:
        return f"{named_revision}: nothing judged yet"
    refused = f", refused {counts.refused:,}" if counts.refused else ""
    judged = count_of(counts.judged, "record")
    return f"{named_revision}: judged {judged}, sent {counts.sent:,}{refused}"
