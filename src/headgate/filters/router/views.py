"""Binds the views of a filter set to the records of a batch, and counts matches and refusals of each filter.

The views of a set stay in the session while the records change. Also here: headers of routed records, and the
SQL of dead letters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.conditions.literals import spark_literal
from headgate.core.engine.batch import Faults
from headgate.core.lake.spark import session_id, sql
from headgate.core.ledger.model import Intent, canonical
from headgate.core.ledger.ranges import TopicRange, expect_range
from headgate.errors import OperationError
from headgate.filters.router.sets import FilterSet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SOURCE, KEYS, READ = "router_source", "router_keys", "router_read"
ROUTED, REFUSED = "router_routed", "router_refused"
FILTERS, JUDGED = "router_filters", "router_judged"
# What Kafka adds at most to the bytes of a record: its batch's head, and lengths.
OVERHEAD, PER_HEADER = 128, 10
# Headers of a record that is sent on; nothing of this is in its value.
HEADERS = (
    ("headgate.origin", "concat_ws('/', {source}, partition, offset)"),
    ("headgate.source_id", "{source_id}"),
    ("headgate.filter", "name"),
    ("headgate.revision", "revision"),
    ("headgate.set", "{set_id}"),
)
_SUMS = f"""
SELECT filter, count_if(NOT too_large) AS n, count_if(too_large) AS refused
FROM {JUDGED}
GROUP BY filter
UNION ALL
SELECT -1, count(DISTINCT partition, offset), 0
FROM {JUDGED}
UNION ALL
SELECT -2, count(*), count_if(reason_code = 'tombstone')
FROM {READ}
UNION ALL
SELECT -3, count_if(reason_code <> 'tombstone'), 0
FROM {READ}"""


@dataclass(frozen=True)
class Sums:
    """How many records there are, what became of them, and per index of a filter what it sent on."""

    read: int
    routed: int
    refused: int
    tombstones: int
    filters: Mapping[int, tuple[int, int]]

    @property
    def too_large(self) -> int:
        return sum(refused for _, refused in self.filters.values())


class RouterViews:
    """Binds sets to records; in one session the views of a set stay while the records change."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._session: SparkSession | None = None
        self._bound: tuple[str, FilterSet] | None = None
        self._filters = ""

    def bind(self, frame: DataFrame, set_: FilterSet) -> None:
        session = self._session = frame.sparkSession
        frame.createOrReplaceTempView(SOURCE)
        wanted = session_id(session), set_
        if self._bound == wanted:
            return
        self._bound, self._filters = None, ""
        keys = session.createDataFrame(list(set_.script.keys), set_.script.schema)  # pyright: ignore[reportUnknownMemberType]  # PySpark's overloads lose their types
        keys.createOrReplaceTempView(KEYS)
        for view in set_.script.views:
            sql(session, view)
        self._bound = wanted

    def read(self) -> DataFrame:
        """Every record with its event's columns, or why it has none."""
        return self._in_use().table(READ)

    def _in_use(self) -> SparkSession:
        if self._session is None:
            raise OperationError("no records are bound to the views of the router")
        return self._session

    def judged(self, intent: Intent, set_: FilterSet, largest: Mapping[str, int]) -> DataFrame:
        """Every record with each filter that matches it, as it is to be sent on."""
        filters = _filters_view(set_, largest)
        if filters != self._filters:
            sql(self._in_use(), filters)
            self._filters = filters
        told = _told(intent)
        headers = ",\n    ".join(_header(n, v.format(**told)) for n, v in HEADERS)
        rows = sql(
            self._in_use(),
            f"""
SELECT /*+ BROADCAST({FILTERS}) */
  partition,
  offset,
  timestamp,
  filter,
  name,
  {ROUTED}.topic,
  key,
  {self._value(set_)} AS value,
  largest,
  array(
    {headers}
  ) AS headers
FROM {ROUTED}
JOIN {FILTERS} USING (filter)""",
        )
        sized = rows.selectExpr("*", f"{_size()} AS size")
        return sized.selectExpr("*", "size > largest AS too_large")

    def _value(self, set_: FilterSet) -> str:
        """The record's value; that of a filter that a test makes raise cannot be had."""
        bad = self._faults.raising_filter()
        if bad not in {one.filter for one in set_.members}:
            return "value"
        self._faults.witness()
        return f"IF(name = {spark_literal(bad)}, CAST(raise_error('a fault') AS BINARY), value)"

    def sums(self, judged: DataFrame) -> Sums:
        """What the batch says in numbers: one job."""
        judged.createOrReplaceTempView(JUDGED)
        found = {
            int(row["filter"]): (int(row["n"]), int(row["refused"]))
            for row in sql(self._in_use(), _SUMS).collect()
        }
        (routed, _), (read, tombstones), (refused, _) = (found.pop(n) for n in (-1, -2, -3))
        return Sums(read, routed, refused, tombstones, found)


def _told(intent: Intent) -> dict[str, str]:
    return {
        "source": spark_literal(expect_range(intent.range, TopicRange).topic),
        "source_id": spark_literal(intent.range.source_id),
        "set_id": spark_literal(intent.revisions[0]),
    }


def _header(name: str, value: str) -> str:
    return f"struct({spark_literal(name)} AS key, CAST({value} AS BINARY) AS value)"


def _filters_view(set_: FilterSet, largest: Mapping[str, int]) -> str:
    """What the rows of a filter need of it; an empty set needs a row that matches none."""
    rows = [
        f"({n}, {spark_literal(one.filter)}, {spark_literal(one.revision)}, {largest[one.topic]})"
        for n, one in enumerate(set_.members)
    ] or ["(-1, '', '', 0)"]
    values = ",\n  ".join(rows)
    return (
        f"CREATE OR REPLACE TEMPORARY VIEW {FILTERS} AS\n"
        f"SELECT * FROM VALUES\n  {values}\nAS filters(filter, name, revision, largest)"
    )


def _size() -> str:
    """An upper bound of the record's bytes on its topic."""
    headers = (
        f"aggregate(headers, {OVERHEAD}, (sum, header) -> sum + {PER_HEADER}"
        " + octet_length(header.key) + octet_length(header.value))"
    )
    return f"octet_length(key) + octet_length(value) + {headers}"


def letters(intent: Intent, table: str, unreadable: bool) -> str:
    """The statement that makes dead letters: records that are no events, and those too large to send."""
    reasons = [
        f"""  SELECT
    partition,
    offset,
    'record_too_large' AS reason_code,
    concat(
      'filter ', name, ': about ', size, ' bytes with its headers, and ', topic,
      ' takes ', largest
    ) AS reason
  FROM {JUDGED}
  WHERE too_large"""
    ]
    if unreadable:
        reasons.append(f"  SELECT partition, offset, reason_code, reason\n  FROM {REFUSED}")
    found = "\n  UNION ALL\n".join(reasons)
    return f"""INSERT INTO {table}
SELECT
  {spark_literal(intent.job)} AS job,
  {spark_literal(intent.revisions[0])} AS revision,
  reason_code,
  reason,
  topic AS kafka_topic,
  partition AS kafka_partition,
  offset AS kafka_offset,
  timestamp AS kafka_timestamp,
  key AS kafka_key,
  value AS kafka_value,
  headers AS kafka_headers,
  {spark_literal(intent.batch_time)} AS refused_at
FROM {SOURCE}
JOIN (
{found}
) AS bad USING (partition, offset)"""


def counters(set_: FilterSet, sums: Sums) -> dict[str, int]:
    """The counts per filter as the commit of the dead letters carries them."""
    return {
        canonical([set_.members[n].filter, what]): count
        for n, found in sorted(sums.filters.items())
        for what, count in zip(("n", "refused"), found, strict=True)
        if count
    }
