"""The sources of an evaluation as a whole: where they end now, and their records up to a fixed end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from headgate.compile.fragments import table_name
from headgate.compile.rules.table_types import misfits
from headgate.engine.iceberg import ManagedTable
from headgate.engine.jvm import IcebergTable
from headgate.engine.stream import read_range
from headgate.engine.topics import Topics, TopicState
from headgate.errors import DeclarationError, Fault, UnavailableError
from headgate.jobs.rules_revision import RulesRevision, SourceRevision
from headgate.settings import Settings
from headgate.spec.ruleset import RuleTable
from headgate.spec.types import STRING, SqlType
from headgate.store.model import SNAPSHOT, WHOLE_SOURCE, Range

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Of a partition whose first records have expired: where it begins.
BEGIN = "begin"
EMPTY = -1


class WholeSources:
    """The one or two sources of a rule table."""

    def __init__(self, session: SparkSession, settings: Settings, rules: RulesRevision) -> None:
        self._session, self._settings, self._rules = session, settings, rules

    def check(self) -> None:
        """Refuse to begin where a table's columns are not what is declared of them."""
        table = self._rules.rule_set.table(self._rules.name)
        tables = [source for source in self._rules.sources if source.iceberg is not None]
        faults = [
            fault
            for source in tables
            for fault in self._misfits(source, _declared(table, source.side))
        ]
        if faults:
            raise DeclarationError(faults)

    def _misfits(self, source: SourceRevision, declared: Mapping[str, SqlType]) -> Iterator[Fault]:
        self._table(source)  # says in words when it is not there
        fields = self._session.table(table_name(str(source.iceberg))).schema.fields
        found = {field.name: field.dataType.simpleString() for field in fields}
        place = f"{self._rules.name}: {source.side}"
        return misfits(str(source.iceberg), place, declared, found)

    def range(self) -> Range:
        """All that the sources have now, as an intent keeps it."""
        names, ids, end = list[str](), list[str](), dict[str, int]()
        for source in self._rules.sources:
            name, id_, ends = self._end_of(source)
            names.append(name)
            ids.append(id_)
            end |= {f"{source.side}:{key}": offset for key, offset in ends.items()}
        return Range(f"{WHOLE_SOURCE}{','.join(names)}", ",".join(ids), {}, end)

    def has(self, range_: Range) -> bool:
        """Whether the records of an earlier range can all be read still."""
        now = self.range()
        if (now.source, now.source_id) != (range_.source, range_.source_id):
            return False
        return all(self._reaches(source, range_) for source in self._rules.sources)

    def records(self, range_: Range) -> int:
        """Offsets in the topics, and rows of the tables, up to this end."""
        return sum(self._count(source, range_) for source in self._rules.sources)

    def frames(self, range_: Range) -> dict[str, DataFrame]:
        """The records up to this end, by the view that the rules' SQL reads."""
        return {source.bound: self._frame(source, range_) for source in self._rules.sources}

    def dlq_topics(self) -> Mapping[str, str]:
        """Where the dead letters of each topic go."""
        rules, settings = self._rules, self._settings
        topics = [source for source in rules.sources if source.topic]
        return {rules.topic_of(s, settings): rules.dlq_topic_of(s, settings) for s in topics}

    def _end_of(self, source: SourceRevision) -> tuple[str, str, Mapping[str, int]]:
        if source.iceberg is not None:
            table = self._table(source)
            current = table.current()
            return source.iceberg, table.uuid, {SNAPSHOT: current.id if current else EMPTY}
        topic = self._topic(source)
        return topic.name, topic.topic_id, ends_of(topic)

    def _table(self, source: SourceRevision) -> IcebergTable:
        found = ManagedTable(self._session, table_name(str(source.iceberg)))
        if not found.exists():
            raise UnavailableError(
                f"{source.iceberg}, the {source.side} source of {self._rules.name}, is not there",
                fix="run the job that makes it first",
            )
        return found.look()

    def _topic(self, source: SourceRevision) -> TopicState:
        bootstrap = self._settings.need("bootstrap_servers")
        return Topics(bootstrap).found(self._rules.topic_of(source, self._settings))

    def _reaches(self, source: SourceRevision, range_: Range) -> bool:
        wanted = own_keys(range_, source.side)
        if source.iceberg is not None:
            snapshot = wanted[SNAPSHOT]
            return snapshot == EMPTY or self._table(source).snapshot(snapshot) is not None
        topic = self._topic(source)
        begin, end = begins(wanted), offsets(wanted)
        kept = all(topic.begin[int(p)] <= begin.get(p, 0) for p in end)
        return kept and all(topic.end[int(p)] >= offset for p, offset in end.items())

    def _count(self, source: SourceRevision, range_: Range) -> int:
        wanted = own_keys(range_, source.side)
        if source.iceberg is None:
            return sum(end - begins(wanted).get(p, 0) for p, end in offsets(wanted).items())
        found = self._table(source).snapshot(wanted[SNAPSHOT])
        return found.total if found else 0

    def _frame(self, source: SourceRevision, range_: Range) -> DataFrame:
        wanted = own_keys(range_, source.side)
        if source.iceberg is not None:
            name, snapshot = table_name(source.iceberg), wanted[SNAPSHOT]
            if snapshot == EMPTY:
                return self._session.table(name).limit(0)
            reader = self._session.read.format("iceberg")
            return reader.option("versionAsOf", str(snapshot)).load(name)
        topic = self._rules.topic_of(source, self._settings)
        bootstrap = str(self._settings.need("bootstrap_servers"))
        own = Range(f"kafka:{topic}", "", begins(wanted), offsets(wanted))
        return read_range(self._session, bootstrap, own)


def _declared(table: RuleTable, side: str) -> Mapping[str, SqlType]:
    """The columns that are read, the key among them even where a path was to find it."""
    source = {str(name): source for name, source in table.sources.items()}[side]
    return {table.pk: STRING, **source.types}


def ends_of(topic: TopicState) -> dict[str, int]:
    """Each partition's end, and its begin where records have expired."""
    ends = {str(p): end for p, end in topic.end.items()}
    return ends | {f"{p}:{BEGIN}": begin for p, begin in topic.begin.items() if begin}


def own_keys(range_: Range, side: str) -> dict[str, int]:
    """The part of the range that is of this side."""
    prefix = f"{side}:"
    return {k.removeprefix(prefix): n for k, n in range_.end.items() if k.startswith(prefix)}


def begins(wanted: Mapping[str, int]) -> dict[str, int]:
    suffix = f":{BEGIN}"
    return {k.removesuffix(suffix): n for k, n in wanted.items() if k.endswith(suffix)}


def offsets(wanted: Mapping[str, int]) -> dict[str, int]:
    return {key: n for key, n in wanted.items() if key.isdigit()}
