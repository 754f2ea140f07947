"""Asks every place that knows of keys: views, history, both rows, topics, metrics, ledger."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import cast
from urllib.request import urlopen

import orjson

from headgate.config.settings import Settings
from headgate.core.kafka.engine_topics import Topics
from headgate.core.kafka.reader import Stretch, committed_records
from headgate.core.lake.duckdb_reader import Lake
from headgate.core.ledger.ops_store import OpsStore, utc_now
from headgate.core.sql.compile_fragments import job_name
from headgate.demo.reconcile.oracle import Sums
from headgate.demo.reconcile.reconcile_planted import Counts, FoundKey, Line, lines_of, statuses_of
from headgate.demo.reconcile.reconcile_recount import Recount, recounted
from headgate.demo.reconcile.reconcile_topics import topic_records
from headgate.quality.spec.limits import Limits
from headgate.reconcile.differences import RowDifference
from headgate.reconcile.reconcile_state import Side
from headgate.reconcile.report.gather import UNEQUAL

SECONDS = 30.0
_SAMPLE = re.compile(r"^(?P<name>\w+)\{(?P<labels>.*)\} (?P<value>\S+)$", re.M)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
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

    def _page(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        with urlopen(self._settings.need("metrics_url"), timeout=SECONDS) as answer:
            page = cast("bytes", answer.read()).decode()
        for sample in _SAMPLE.finditer(page):
            yield sample["name"], dict(_LABEL.findall(sample["labels"])), float(sample["value"])


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
