"""What was planted, and what must come of it: counted before anything is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from headgate.demo.quality.rule_feed import Defect
from headgate.quality.compile.model import JudgedRule, JudgedTable
from headgate.quality.compile.verdicts import all_rules
from headgate.quality.spec.rule_set import SEVERITIES

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
