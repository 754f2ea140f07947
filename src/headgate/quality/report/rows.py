"""Failing rows that a report shows: some of each kind, at most a limit, the same ones for the same seed.

Values of sensitive columns are masked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar, cast

from headgate.quality.report.build import moment
from headgate.quality.report.model import MASK, SampledRow
from headgate.quality.spec.rule_set import RuleTable

OF_A_KIND = 5
MOST_ROWS = 200
LONGEST_VALUE = 200
Item = TypeVar("Item")


@dataclass(frozen=True)
class FailedRow:
    """A row of the results table as it stands there."""

    pk: str | None
    action: str | None
    status: str
    severity: str | None
    outcome: str
    rules: tuple[str, ...]
    reason: str | None
    event_time: datetime | None
    topic: str | None
    partition: int | None
    offset: int | None
    row: str | None

    @property
    def kind(self) -> tuple[str, str]:
        """Rows of one status by one rule are alike."""
        return self.status, self.rules[0] if self.rules else ""


def sample_sql(scan: str, where: str, seed: int, of_a_kind: int = OF_A_KIND) -> str:
    """Some rows of each status and first rule; md5 orders them alike in every version and on every machine."""
    key = f"md5(concat_ws('|', '{seed}', pk, kafka_partition, kafka_offset, processing_time))"
    return (
        "SELECT pk, action, dq_status, dq_severity, dq_outcome, dq_rules, dq_reason, event_time,\n"
        '  kafka_topic, kafka_partition, kafka_offset, "row"\n'
        f"FROM {scan}\n"
        f"WHERE dq_outcome <> 'clean' AND {where}\n"
        f"QUALIFY row_number() OVER (PARTITION BY dq_status, dq_rules[1] ORDER BY {key}) <= {of_a_kind}\n"
        f"ORDER BY dq_status, dq_rules[1], {key}"
    )


def failed_row(found: Sequence[object]) -> FailedRow:
    pk, action, status, severity, outcome, rules, reason, at, topic, part, offset, row = found
    return FailedRow(
        pk=_text(pk),
        action=_text(action),
        status=str(status),
        severity=_text(severity),
        outcome=str(outcome),
        rules=tuple(cast("list[str]", rules or [])),
        reason=_text(reason),
        event_time=at if isinstance(at, datetime) else None,
        topic=_text(topic),
        partition=part if isinstance(part, int) else None,
        offset=offset if isinstance(offset, int) else None,
        row=_text(row),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def spread(kinds: Sequence[Sequence[Item]], limit: int) -> tuple[Item, ...]:
    """One of each kind, then a second of each, until `limit`; kept together kind by kind."""
    taken = [0] * len(kinds)
    left = limit
    while left > 0 and any(n < len(kind) for n, kind in zip(taken, kinds, strict=True)):
        for at, kind in enumerate(kinds):
            if left > 0 and taken[at] < len(kind):
                taken[at] += 1
                left -= 1
    return tuple(item for n, kind in zip(taken, kinds, strict=True) for item in kind[:n])


def stratified(
    rows: Iterable[FailedRow], order: Sequence[str], limit: int = MOST_ROWS
) -> tuple[FailedRow, ...]:
    """Rows of every kind, the kinds in the order of the rules."""
    kinds: dict[tuple[str, str], list[FailedRow]] = {}
    for row in rows:
        kinds.setdefault(row.kind, []).append(row)
    rank = {name: at for at, name in enumerate(order)}
    ordered = sorted(kinds, key=lambda kind: (rank.get(kind[1], len(rank)), kind))
    return spread([kinds[kind] for kind in ordered], limit)


def shown_row(
    row: FailedRow, table: RuleTable, words: Mapping[str, str], hidden: frozenset[str]
) -> SampledRow:
    """The row as a person may see it: each rule that matches it in words, what is sensitive masked."""
    told = tuple(f"{name}: {words[name]}" if name in words else name for name in row.rules)
    timely = {source.event_time for source in table.sources.values()}
    return SampledRow(
        key=MASK if table.pk in hidden else short(row.pk or "(none)"),
        status=row.status,
        severity=row.severity,
        outcome=row.outcome,
        rules=row.rules,
        reasons=told or (row.reason or row.status,),
        event_time=MASK if timely & hidden else moment(row.event_time),
        origin=_origin(row),
        row=masked_values(row.row, hidden),
    )


def sensitive_columns(table: RuleTable) -> frozenset[str]:
    return frozenset(name for source in table.sources.values() for name in source.sensitive)


def masked_values(row: str | None, hidden: frozenset[str]) -> dict[str, str]:
    """The fields of a row's JSON; masked again, since a column may have been tagged later."""
    if row is None:
        return {}
    try:
        data = cast("object", json.loads(row))
    except ValueError:
        return {"row": MASK}
    if not isinstance(data, dict):
        return {"row": MASK}
    fields = cast("dict[str, object]", _masked(cast("object", data), hidden))
    return {name: _shown(value) for name, value in fields.items()}


def _masked(value: object, hidden: frozenset[str]) -> object:
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        return {k: MASK if is_hidden(k, hidden) else _masked(v, hidden) for k, v in fields.items()}
    if isinstance(value, list):
        return [_masked(item, hidden) for item in cast("list[object]", value)]
    return value


def is_hidden(name: str, hidden: frozenset[str]) -> bool:
    """With two sources a column is named with its source before it."""
    return name in hidden or name.partition(".")[2] in hidden


def _shown(value: object) -> str:
    if value is None:
        return "missing"
    return short(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def short(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def _origin(row: FailedRow) -> str:
    if row.topic is None or row.offset is None:
        return ""
    return f"{row.topic}/{row.partition}@{row.offset}"
