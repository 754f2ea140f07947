"""Plants defects in the rows of a rule table, exactly as many as ordered, and counts what must come of them.

Everything is counted before anything is sent; same seed, same rows, same defects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Protocol

import numpy as np

from headgate.demo.quality.declaration import Change, Defect, RuleFeed
from headgate.demo.quality.rows import FeedRows, Message, Row, SideMessages, sample_of
from headgate.pipeline.generator.declaration import Sample
from headgate.quality.compile.resolve import JudgedRule, JudgedTable
from headgate.quality.compile.results import all_rules
from headgate.quality.spec.rule_set import SEVERITIES, Side

# Messages of a pair that say again what another has said.
DUPLICATES = "duplicates"


@dataclass(frozen=True)
class Judged:
    """How one row or key must be judged: its status and the rules that match, in order."""

    status: str
    rules: tuple[str, ...] = ()
    dead_letter: bool = False


@dataclass(frozen=True)
class PlantedDefect:
    """So many rows with this defect; `expected` in words."""

    name: str
    rows: int
    expected: str


@dataclass(frozen=True)
class RuleCount:
    """Rows whose status the rule gives (`n`), and all rows that it matches."""

    rule: str
    metric: str
    severity: str
    n: int
    matched: int


@dataclass(frozen=True)
class WindowCount:
    """The rows of one window, and its metrics by their namespaced names."""

    window_start: datetime
    rows: int
    metrics: Mapping[str, int]
    severities: Mapping[str, int]


@dataclass(frozen=True)
class Planted:
    """One feed: what was sent, and every count that must be found again.

    `counters` are of records that a pair's job counts beside their outcomes. The windows of a pair are
    those of the records' arrival, which nobody plants: there are none here.
    """

    table: str
    rows: int
    seed: int
    start: datetime
    messages: Mapping[str, int]
    defects: tuple[PlantedDefect, ...]
    results: int
    clean: int
    dead_letters: int
    refused: int
    tombstones: int
    outcomes: Mapping[str, int]
    counters: Mapping[str, int]
    statuses: Mapping[str, int]
    rules: tuple[RuleCount, ...]
    metrics: Mapping[str, int]
    severities: Mapping[str, int]
    windows: tuple[WindowCount, ...]


Windows = Mapping[datetime, Mapping[Judged, int]]


def judgements(defect: Defect | None, table: JudgedTable) -> tuple[Judged, ...]:
    """The result rows that one planted row makes; a copy in one source is a row of its own."""
    sound = Judged(table.clean_status, _verdict(table.clean_status, table))
    if defect is None:
        return (sound,)
    expect = defect.expect
    if expect.status is None:
        return ()
    rules = expect.rules or _verdict(expect.status, table)
    found = Judged(expect.status, rules, expect.dead_letter)
    copied = any(change.repeat for change in defect.changes)
    return (sound, found) if copied and not table.table.is_pair else (found,)


def _verdict(status: str, table: JudgedTable) -> tuple[str, ...]:
    """The verdict on a pair that no rule matches counts as a rule too."""
    verdicts = all_rules(table)[len(table.rules) :]
    return tuple(rule.name for rule in verdicts if rule.status == status)


class Tally:
    """Sums judgements into the counts that tables, metrics and ledger must show."""

    def __init__(self, table: JudgedTable) -> None:
        self._table = table
        self._rules = all_rules(table)

    def statuses(self, judged: Mapping[Judged, int]) -> dict[str, int]:
        counts: Counter[str] = Counter()
        for one, n in judged.items():
            counts[one.status] += n
        return dict(sorted(counts.items()))

    def rules(self, judged: Mapping[Judged, int]) -> tuple[RuleCount, ...]:
        """Every declared rule, and the verdicts that were given."""
        counted = [self._rule(rule, judged) for rule in self._rules]
        declared = len(self._table.rules)
        return tuple(one for at, one in enumerate(counted) if at < declared or one.matched)

    def _rule(self, rule: JudgedRule, judged: Mapping[Judged, int]) -> RuleCount:
        n = sum(count for one, count in judged.items() if one.rules[:1] == (rule.name,))
        matched = sum(count for one, count in judged.items() if rule.name in one.rules)
        return RuleCount(rule.name, rule.metric, rule.severity, n, matched)

    def metrics(self, judged: Mapping[Judged, int]) -> dict[str, int]:
        """Every metric of the table, 0 where nothing was planted."""
        namespace = self._table.rule_set.metrics.namespace
        counts = {f"{namespace}.{rule.metric}": 0 for rule in self._rules}
        for rule in self.rules(judged):
            counts[f"{namespace}.{rule.metric}"] += rule.n
        return counts

    def severities(self, judged: Mapping[Judged, int]) -> dict[str, int]:
        counts = dict.fromkeys(SEVERITIES, 0)
        for rule in self._rules:
            counts[rule.severity] += self._rule(rule, judged).n
        return {str(severity): n for severity, n in counts.items()}

    def window(self, start: datetime, judged: Mapping[Judged, int]) -> WindowCount:
        return WindowCount(
            start, sum(judged.values()), self.metrics(judged), self.severities(judged)
        )


def expected_words(defect: Defect) -> str:
    """What the defect must give, as one line."""
    expect = defect.expect
    parts = [expect.status] if expect.status else []
    if expect.rules:
        parts.append(f"({', '.join(expect.rules)})")
    if expect.dead_letter:
        parts.append("dead letter")
    parts += [f"{n} {word}" for n, word in ((expect.refused, "refused"),) if n]
    parts += ["tombstone"] if expect.tombstones else []
    return " ".join(parts)


def summed(windows: Iterable[Mapping[Judged, int]]) -> Counter[Judged]:
    total: Counter[Judged] = Counter()
    for window in windows:
        total.update(window)
    return total


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Block = Mapping[Side, list[Message]]


@dataclass(frozen=True)
class Order:
    """How many rows, from which seed, with event times from when on; shares by defect."""

    rows: int
    seed: int
    start: datetime
    shares: Mapping[str, float]


class Writer(Protocol):
    """Where records go."""

    def send(self, topic: str, values: list[bytes | None], keys: list[bytes | None]) -> None: ...

    def flush(self) -> None: ...


class Feeding:
    """One feed of one table: the counts are known before the first message is made."""

    def __init__(
        self, feed: RuleFeed, table: JudgedTable, order: Order, sample: Sample | None = None
    ) -> None:
        self._feed, self._table, self._order = feed, table, order
        self._rows = FeedRows(feed, sample_of(feed, order.start, sample), order.seed)
        self._sides: dict[Side, SideMessages] = {
            side: SideMessages(feed, side, table.table.pk) for side in table.table.sides
        }
        self._counts = counts_of(feed, order)
        self._roles = roles(self._counts, order)

    def blocks(self) -> Iterator[Block]:
        """The messages in the order of sending; copies come last."""
        again: dict[Side, list[Message]] = {side: [] for side in self._sides}
        number = 0
        for rows in self._rows.blocks(self._order.rows):
            yield {side: self._messages(side, rows, number, again[side]) for side in self._sides}
            number += len(rows)
        yield again

    def planted(self) -> Planted:
        """What is planted and must be found again."""
        windows, is_pair = self._windows(), self._table.table.is_pair
        judged, tally = summed(windows.values()), Tally(self._table)
        told = zip(self._feed.defects, self._counts, strict=True)
        return Planted(
            table=self._table.table.name,
            rows=self._order.rows,
            seed=self._order.seed,
            start=self._order.start,
            messages=self._sent(),
            defects=tuple(PlantedDefect(d.name, n, expected_words(d)) for d, n in told),
            results=judged.total(),
            clean=sum(n for one, n in judged.items() if one.status == self._table.clean_status),
            dead_letters=_dead(judged),
            refused=self._expected("refused"),
            tombstones=self._expected("tombstones"),
            outcomes=self._outcomes(judged),
            counters=self._counters(),
            statuses=tally.statuses(judged),
            rules=tally.rules(judged),
            metrics=tally.metrics(judged),
            severities=tally.severities(judged),
            windows=()
            if is_pair
            else tuple(tally.window(start, windows[start]) for start in sorted(windows)),
        )

    def _messages(
        self, side: Side, rows: list[Row], number: int, again: list[Message]
    ) -> list[Message]:
        writer, now = self._sides[side], list[Message]()
        for index, row in enumerate(rows):
            defect = self._defect(number + index)
            for message in writer.of(row, defect.change(side) if defect else None):
                (again if message.again else now).append(message)
        return now

    def _defect(self, row: int) -> Defect | None:
        role = int(self._roles[row])
        return self._feed.defects[role] if role >= 0 else None

    def _windows(self) -> dict[datetime, Counter[Judged]]:
        windows: dict[datetime, Counter[Judged]] = {}
        number = 0
        for rows in self._rows.blocks(self._order.rows):
            for index, row in enumerate(rows):
                defect = self._defect(number + index)
                start = self._window(row, defect)
                windows.setdefault(start, Counter()).update(judgements(defect, self._table))
            number += len(rows)
        return {start: judged for start, judged in windows.items() if judged}

    def _window(self, row: Row, defect: Defect | None) -> datetime:
        moment = row[self._feed.event_time.field]
        assert isinstance(moment, datetime)
        return window_of(moment - _late(self._table, defect), self._table.rule_set.metrics.window)

    def _sent(self) -> dict[str, int]:
        """How many messages go to each topic."""
        sides = self._table.table.sides
        return {
            str(source.topic): sum(n * times(d, side) for d, n in self._roles_counted())
            for side, source in sides.items()
        }

    def _outcomes(self, judged: Counter[Judged]) -> dict[str, int]:
        """What must become of the messages; a pair accepts every one that it can read."""
        bad = {
            "refused": self._expected("refused"),
            "tombstone": self._expected("tombstones"),
        }
        if self._table.table.is_pair:
            return {"accepted": sum(self._sent().values()) - sum(bad.values()), **bad}
        dead = _dead(judged)
        return {"accepted": judged.total() - dead, "dead_letter": dead, **bad}

    def _counters(self) -> dict[str, int]:
        """What a pair's job counts of messages, by their offsets."""
        if not self._table.table.is_pair:
            return {}
        changes = (
            (change, n)
            for defect, n in self._roles_counted()
            if defect
            for change in defect.changes
        )
        return {DUPLICATES: sum(n for change, n in changes if change.repeat)}

    def _roles_counted(self) -> list[tuple[Defect | None, int]]:
        sound = self._order.rows - sum(self._counts)
        return [(None, sound), *zip(self._feed.defects, self._counts, strict=True)]

    def _expected(self, what: str) -> int:
        told = zip(self._feed.defects, self._counts, strict=True)
        return sum(n * int(getattr(defect.expect, what)) for defect, n in told)


def roles(counts: list[int], order: Order) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The defect of each row, -1 for sound ones: exactly so many of each, at seeded places."""
    marks = np.full(order.rows, -1, dtype=np.int64)
    planted = np.repeat(np.arange(len(counts)), counts)
    places = np.random.default_rng(order.seed).permutation(order.rows)[: len(planted)]
    marks[places] = planted
    return marks


def window_of(moment: datetime, width: timedelta) -> datetime:
    """The start of the window: they are counted from 1970."""
    return EPOCH + (moment - EPOCH) // width * width


def times(defect: Defect | None, side: Side) -> int:
    """How many messages one row has on this side."""
    change = (defect.change(side) if defect else None) or Change()
    return 0 if change.drop else 1 + int(change.repeat) + int(change.older_first)


def _late(table: JudgedTable, defect: Defect | None) -> timedelta:
    """How far the row's event time is moved back: the first source that has the row says it."""
    for side in table.table.sides:
        change = (defect.change(side) if defect else None) or Change()
        if not (change.drop or change.garble or change.tombstone):
            return change.late or timedelta(0)
    return timedelta(0)


def _dead(judged: Counter[Judged]) -> int:
    return sum(n for one, n in judged.items() if one.dead_letter)


def counts_of(feed: RuleFeed, order: Order) -> list[int]:
    """So many rows of each defect; the sums are rounded, so that they never pass the rows."""
    shares = [order.shares.get(defect.name, defect.share) for defect in feed.defects]
    ends = [round(sum(shares[:at]) * order.rows) for at in range(len(shares) + 1)]
    return [end - begin for begin, end in pairwise(ends)]
