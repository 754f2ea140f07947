"""Compares every planted key with its verdict, and every sum with every place that counts it.

The places: result views, history in the lake, both rows, topics, metrics, ledger, and the recount.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import cast

import orjson

from headgate.config.settings import Settings
from headgate.core.kafka.reader import Stretch, committed_records
from headgate.core.kafka.topics import Topics
from headgate.core.lake.duckdb_reader import Lake
from headgate.core.ledger.ops_store import OpsStore, utc_now
from headgate.core.metrics.prometheus import parse_samples
from headgate.core.runtime.http import read_text
from headgate.core.sql.fragments import job_name
from headgate.demo.reconcile.planting import ExpectedKey, Sums
from headgate.demo.reconcile.recount import Recount, recounted, topic_records
from headgate.quality.spec.reconcile_checks import Limits
from headgate.reconcile.report.gather import UNEQUAL
from headgate.reconcile.row_diff import RowDifference
from headgate.reconcile.state import Side
from headgate.terminal.report import counted

Counts = Mapping[str, int]
MOST_TOLD = 20


@dataclass(frozen=True)
class FoundKey:
    """One key as the results have it; `history` are its statuses, oldest first."""

    pk: str
    status: str
    stale: bool = False
    conflict: bool = False
    kinds: frozenset[str] = frozenset()
    columns: frozenset[str] = frozenset()
    history: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wrong:
    """A key of which something else was found than was planted."""

    pk: str
    role: str
    what: str
    planted: str
    found: str

    def sentence(self) -> str:
        return f"{self.pk} ({self.role}): {self.what}: planted {self.planted}, found {self.found}"


@dataclass(frozen=True)
class Line:
    """One count: what was planted, and what each place says that knows of it.

    `least` is given where a place may count fewer, since how batches were cut decides it.
    """

    subject: str
    name: str
    planted: int
    found: Counts
    least: int | None = None

    @property
    def holds(self) -> bool:
        return all(map(self._is_right, self.found.values()))

    @property
    def planted_text(self) -> str:
        """The planted number, or the ends of what may be counted."""
        if self.least is None or self.least == self.planted:
            return f"{self.planted:,}"
        return f"{self.least:,}–{self.planted:,}"

    def sentence(self) -> str:
        places = (f"{n:,} in {p}" for p, n in self.found.items() if not self._is_right(n))
        return f"{self.subject} {self.name}: planted {self.planted_text}, found {', '.join(places)}"

    def _is_right(self, count: int) -> bool:
        return (self.planted if self.least is None else self.least) <= count <= self.planted


def wrong_keys(expected: Iterable[ExpectedKey], found: Mapping[str, FoundKey]) -> tuple[Wrong, ...]:
    """Every key that is not as planted; a key that nobody planted is wrong too."""
    planned = {key.pk: key for key in expected}
    wrong = [one for key in planned.values() for one in _wrong(key, found.get(key.pk))]
    strange = (key for pk, key in found.items() if pk not in planned)
    return (*wrong, *(Wrong(key.pk, "not planted", "key", "none", key.status) for key in strange))


def _wrong(key: ExpectedKey, found: FoundKey | None) -> Iterable[Wrong]:
    end = key.expected
    for what, planted, seen in (
        ("status", _one(end.status), found.status if found else ""),
        ("kind", _one(end.kind), _all(found.kinds) if found else ""),
        ("column", _one(end.column), _all(found.columns) if found else ""),
        ("stale", end.stale, bool(found and found.stale)),
        ("conflict", end.conflict, bool(found and found.conflict)),
    ):
        if planted is not None and planted != seen:
            yield Wrong(key.pk, key.role, what, str(planted), str(seen))
    if found and not _in_order(end.path, found.history):
        path, history = " → ".join(end.path), " → ".join(found.history)
        yield Wrong(key.pk, key.role, "history", path, history)


def _one(word: str | None) -> str:
    return word or ""


def _all(words: frozenset[str]) -> str:
    return ", ".join(sorted(words))


def _in_order(path: Sequence[str], history: Sequence[str]) -> bool:
    """Whether all of the path is in the history, in its order."""
    rest = iter(history)
    return all(status in rest for status in path)


def lines_of(subject: str, planted: Counts, found: Mapping[str, Counts]) -> tuple[Line, ...]:
    """Every count beside what each place says; what nobody planted is counted as none."""
    names = dict.fromkeys(planted)
    for counts in found.values():
        names |= dict.fromkeys(name for name, n in sorted(counts.items()) if n)
    return tuple(
        Line(subject, name, planted.get(name, 0), {p: c.get(name, 0) for p, c in found.items()})
        for name in names
    )


def statuses_of(found: Iterable[FoundKey]) -> dict[str, int]:
    return dict(sorted(Counter(key.status for key in found).items()))


def text(lines: Sequence[Line]) -> str:
    """The counts as a person reads them: one column a place."""
    blocks: list[str] = []
    for subject in dict.fromkeys(line.subject for line in lines):
        own = [line for line in lines if line.subject == subject]
        places = list(dict.fromkeys(place for line in own for place in line.found))
        rows = [[subject, "planted", *places], *(_row(line, places) for line in own)]
        blocks.append("\n".join(f"  {line}" for line in counted(rows)))
    return "\n\n".join(blocks)


def _row(line: Line, places: Sequence[str]) -> list[str]:
    mark = "✓" if line.holds else "✗"
    found = [f"{line.found[place]:,}" if place in line.found else "" for place in places]
    return [f"{mark} {line.name}", line.planted_text, *found]


SECONDS = 30.0
# Runs a query on the engine; its rows by column.
Ask = Callable[[str], Sequence[Mapping[str, object]]]
Why = Callable[[Sequence[str]], Sequence[RowDifference]]


@dataclass(frozen=True)
class Places:
    """Where to ask: the engine, the rows of both sides, the topics."""

    table: str
    ask: Ask
    why: Why
    topics: Mapping[Side, str]
    status_topic: str | None
    audit_topic: str | None
    limits: Limits


class PairGathering:
    """One look at all places."""

    def __init__(self, settings: Settings, store: OpsStore, places: Places) -> None:
        self._settings, self._store, self._places = settings, store, places
        self._bootstrap = settings.need("bootstrap_servers")
        self._job = job_name("reconcile", places.table)

    def keys(self) -> dict[str, FoundKey]:
        """Every key of the results, with its story, and of unequal ones why they differ."""
        view = f"dq_results_{self._places.table}"
        rows = self._places.ask(f"SELECT pk, dq_status, stale, conflict FROM {view}")
        told = self._histories()
        found = {
            pk: FoundKey(
                pk,
                str(row["dq_status"]),
                row["stale"] is True,
                row["conflict"] is True,
                history=told.get(pk, ()),
            )
            for row in rows
            for pk in (str(row["pk"]),)
        }
        for row in self._places.why([k.pk for k in found.values() if k.status in UNEQUAL]):
            columns = frozenset(difference.column for difference in row.differences)
            kinds = frozenset[str](row.kinds)
            found[row.pk] = replace(found[row.pk], kinds=kinds, columns=columns)
        return found

    def _histories(self) -> dict[str, tuple[str, ...]]:
        """All statuses of each key as the lake keeps them, oldest first."""
        with Lake.open(self._settings) as lake:
            rows = lake.query(
                "SELECT pk, list(dq_status ORDER BY processing_time, settled)"
                f" FROM {self._changes(lake)} GROUP BY pk"
            )
        return {str(pk): tuple(cast("list[str]", told)) for pk, told in rows}

    def _changes(self, lake: Lake) -> str:
        return lake.scan_sql(f"dq.results_{self._places.table}")

    def recount(self) -> Recount:
        """All records of both topics, judged without Spark."""
        records = topic_records(self._bootstrap, self._places.topics)
        return recounted(records, self._places.limits.horizon)

    def lines(self, sums: Sums, keys: Mapping[str, FoundKey], recount: Recount) -> tuple[Line, ...]:
        """Every sum beside what each place says."""
        settled = utc_now() + timedelta(days=1)
        twin = Counter(v.status for v in recount.verdicts(settled, self._places.limits).values())
        statuses: dict[str, Counts] = {
            "results": statuses_of(keys.values()),
            "plain Python": twin,
            "dq_status view": self._counted(f"dq_status_{self._places.table}"),
            "gauge": self._gauge(),
        }
        if self._places.status_topic:
            statuses["dq-metrics"] = self._status_topic(self._places.status_topic)
        return (
            *lines_of("keys", sums.statuses, statuses),
            *lines_of("differences", sums.kinds, {"both rows": _kinds(keys)}),
            *lines_of("dead letters", sums.letters, {"table": self._letters()}),
            *self._records(sums),
            *self._told(),
            repeated_line(sums.again, recount, self._duplicates()),
        )

    def _counted(self, view: str) -> Counts:
        rows = self._places.ask(f"SELECT dq_status, cnt FROM {view}")
        return {str(row["dq_status"]): int(str(row["cnt"])) for row in rows}

    def _letters(self) -> Counts:
        rows = self._places.ask(
            "SELECT reason_code, count(*) AS n FROM lake.headgate.dead_letters"
            f" WHERE job = '{self._job}' GROUP BY reason_code"
        )
        return {str(row["reason_code"]): int(str(row["n"])) for row in rows}

    def _records(self, sums: Sums) -> Iterator[Line]:
        """Records by outcome: what was refused and what were tombstones is known, the rest is accepted."""
        outcomes: Counter[str] = Counter()
        for row in self._store.ledger(self._job):
            outcomes.update(row.outcomes)
        topics = Topics(self._bootstrap)
        states = [topics.found(topic) for topic in self._places.topics.values()]
        produced = sum(s.end[p] - s.begin[p] for s in states for p in s.end)
        refused = sum(sums.letters.values())
        accepted = produced - refused - sums.tombstones
        planted = {"accepted": accepted, "refused": refused, "tombstone": sums.tombstones}
        yield from lines_of("records", planted, {"ledger": outcomes})

    def _told(self) -> Iterator[Line]:
        """Changes other than to MATCH: those of the lake are on the audit topic, each once."""
        if not self._places.audit_topic:
            return
        with Lake.open(self._settings) as opened:
            rows = opened.query(
                f"SELECT dq_status, count(DISTINCT id) FROM {self._changes(opened)}"
                " WHERE settled AND dq_status <> 'MATCH' GROUP BY dq_status"
            )
        lake = {str(status): int(str(n)) for status, n in rows}
        ids: dict[str, str] = {}
        for body in self._bodies(self._places.audit_topic):
            if body["status"] != "MATCH":
                ids[str(body["id"])] = str(body["status"])
        yield from lines_of("changes told", lake, {"audit topic": Counter(ids.values())})

    def stands(self, statuses: Counts) -> bool:
        """Whether what is told now and then has caught up with the keys: gauge, topics."""
        topic = self._places.status_topic
        told = self._status_topic(topic) if topic else statuses
        return self._gauge() == statuses == told and all(line.holds for line in self._told())

    def _status_topic(self, topic: str) -> Counts:
        """The counts that were told last, all at one time."""
        bodies = list(self._bodies(topic))
        last = max((str(body["at"]) for body in bodies), default="")
        counts = {str(b["dq_status"]): int(str(b["cnt"])) for b in bodies if b["at"] == last}
        return {status: n for status, n in counts.items() if n}

    def _bodies(self, topic: str) -> Iterator[Mapping[str, object]]:
        stretch = Stretch.whole(Topics(self._bootstrap).found(topic))
        for one in committed_records(self._bootstrap, stretch, SECONDS):
            if one.value is not None:
                yield cast("Mapping[str, object]", orjson.loads(one.value))

    def _gauge(self) -> Counts:
        return {
            labels["status"]: int(value)
            for name, labels, value in self._page()
            if name == "dq_keys" and labels.get("job") == self._job and value
        }

    def _duplicates(self) -> int:
        return int(sum(v for name, _, v in self._page() if name == "dq_duplicates_total"))

    def _page(self) -> Iterator[tuple[str, dict[str, str], float]]:
        return parse_samples(read_text(self._settings.need("metrics_url"), SECONDS))


def repeated_line(onprem: int, recount: Recount, counter: int) -> Line:
    """Repeated records: on-prem as planted; in the cloud as often as two readers said the same.

    A reader that is slow repeats a version after the other has brought a newer one, and a repetition
    may come in the next window of the horizon. Whether the job counts those depends on how batches
    are cut: see docs/reconcile_job.md.
    """
    certain = recount.certain_duplicates
    return Line(
        "repeated",
        "records",
        onprem + recount.duplicates.get("cloud", 0),
        {"counter": counter},
        least=min(onprem, certain.get("onprem", 0)) + certain.get("cloud", 0),
    )


def _kinds(keys: Mapping[str, FoundKey]) -> Counts:
    return Counter(kind for key in keys.values() for kind in key.kinds)
