"""A table under maintenance: its facts, read from its metadata, and Iceberg's procedures on it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from headgate.conditions.literals import spark_identifier, spark_literal
from headgate.core.lake.commits import Marker, marker
from headgate.core.lake.spark import Files, IcebergTable, sql
from headgate.core.lake.table import own_marker
from headgate.maintenance.selection import (
    BYTES_AT_ONCE,
    SMALL_BYTES,
    TARGET_BYTES,
    History,
    Part,
    SnapshotFact,
    small_bytes,
)

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

# Iceberg would add snapshots of its own choice to the ones that are named; none is this old.
NEVER = "TIMESTAMP '1970-01-01 00:00:00'"
ORPHANS_VIEW = "headgate_orphans"


@dataclass(frozen=True)
class Orphan:
    """A file in the table's folder that no snapshot knows."""

    path: str
    bytes: int


class MaintainedTable:
    """One table as it stood when it was looked at."""

    def __init__(self, session: SparkSession, name: str) -> None:
        self.name = name
        self._session = session
        self._catalog = name.partition(".")[0]
        self._table = IcebergTable(session, name).refresh()
        self._metadata: dict[str, Any] = self._table.metadata()

    @property
    def uuid(self) -> str:
        return str(self._metadata["table-uuid"])

    @property
    def location(self) -> str:
        return str(self._metadata["location"])

    @property
    def snapshots(self) -> Sequence[Mapping[str, Any]]:
        return self._metadata.get("snapshots", [])

    @property
    def current(self) -> int | None:
        found = self._metadata.get("current-snapshot-id")
        return found if any(s["snapshot-id"] == found for s in self.snapshots) else None

    def history(self) -> History:
        refs = {name: int(ref["snapshot-id"]) for name, ref in self._metadata["refs"].items()}
        return History(self.current, tuple(_fact(s) for s in self.snapshots), refs)

    def marker(self, snapshot_id: int) -> Marker | None:
        """The snapshot's marker, or that of the staged one it was published from."""
        found = self._table.snapshot(snapshot_id)
        return own_marker(self._table, found) if found else None

    def metadata_files(self) -> int:
        names = Files(self._session, self.location).names("metadata")
        return sum(name.endswith(".metadata.json") for name in names)

    def manifests(self) -> int:
        return self._table.manifests()

    def total(self, what: str) -> int:
        """A total that the current snapshot tells of itself, such as `data-files`."""
        summaries = {s["snapshot-id"]: s.get("summary", {}) for s in self.snapshots}
        return int(summaries.get(self.current, {}).get(f"total-{what}", "0"))

    def parts(self) -> tuple[Part, ...]:
        """The data files of the current snapshot, by partition date."""
        column = self._date_column()
        by = f"partition.{spark_identifier(column)}" if column else "CAST(NULL AS DATE)"
        small = f"file_size_in_bytes < {SMALL_BYTES}"
        rows = self._rows(f"""
SELECT
  {by} AS day,
  count(*) AS files,
  sum(file_size_in_bytes) AS bytes,
  count_if({small}) AS small_files,
  coalesce(sum(file_size_in_bytes) FILTER (WHERE {small}), 0) AS small_bytes
FROM {self.name}.files
WHERE content = 0
GROUP BY ALL""")
        return tuple(
            Part(r["day"], r["files"], r["bytes"], r["small_files"], r["small_bytes"], bool(column))
            for r in rows
        )

    def _date_column(self) -> str | None:
        """The column whose dates are the partitions; None when the table has no such."""
        specs = {spec["spec-id"]: spec for spec in self._metadata["partition-specs"]}
        fields = specs[self._metadata["default-spec-id"]]["fields"]
        dates = [f["name"] for f in fields if f["transform"] == "identity"]
        return str(dates[0]) if len(fields) == 1 and dates else None

    def rewrite(self, parts: Collection[Part], min_files: int) -> Mapping[str, int]:
        """Write the small files of these parts anew, larger.

        In one commit, unless they are large: then in several, and one group of files at a time,
        since the procedure's own threads would commit against each other.
        """
        large = small_bytes(parts) > BYTES_AT_ONCE
        options = {
            "target-file-size-bytes": TARGET_BYTES,
            "min-input-files": max(min_files, 2),
            "max-file-group-size-bytes": BYTES_AT_ONCE,
            "partial-progress.enabled": "true",
            "partial-progress.max-commits": 10 if large else 1,
            "max-concurrent-file-group-rewrites": 1 if large else 2,
        }
        pairs = ", ".join(f"'{key}', '{value}'" for key, value in options.items())
        where = self._where(parts)
        chosen = f", where => {spark_literal(where)}" if where else ""
        return self._call("rewrite_data_files", f"{chosen}, options => map({pairs})")

    def _where(self, parts: Collection[Part]) -> str:
        column = self._date_column()
        if column is None:
            return ""
        name = spark_identifier(column)
        days = [f"DATE '{part.date.isoformat()}'" for part in parts if part.date]
        chosen = [f"{name} IN ({', '.join(days)})"] if days else []
        if len(days) < len(parts):
            chosen.append(f"{name} IS NULL")
        return " OR ".join(chosen)

    def rewrite_manifests(self) -> Mapping[str, int]:
        return self._call("rewrite_manifests", "")

    def expire(self, ids: Sequence[int]) -> Mapping[str, int]:
        """Remove exactly these snapshots, and the files that no other one needs."""
        chosen = ", ".join(f"{id_}L" for id_ in ids)
        return self._call(
            "expire_snapshots",
            f", older_than => {NEVER}, snapshot_ids => array({chosen}), stream_results => true",
        )

    def orphans(self, older_than: timedelta) -> tuple[Orphan, ...]:
        """Files that no snapshot knows, staged ones included; Iceberg refuses less than a day."""
        moment = _literal(datetime.now(UTC) - older_than)
        rows = self._procedure("remove_orphan_files", f", older_than => {moment}, dry_run => true")
        files = Files(self._session, self.location)
        paths = [str(row["orphan_file_location"]) for row in rows]
        return tuple(Orphan(path, files.size(path)) for path in sorted(paths))

    def remove(self, orphans: Sequence[Orphan], older_than: timedelta) -> list[str]:
        """Delete those of the files that are still orphans; their paths."""
        moment = datetime.now(UTC) - older_than
        place = Files(self._session, self.location).qualified
        named = [(orphan.path, moment - timedelta(seconds=1)) for orphan in orphans]
        columns = "file_path STRING, last_modified TIMESTAMP"
        frame = self._session.createDataFrame(named, columns)  # pyright: ignore[reportUnknownMemberType]  # PySpark's overloads lose their types
        frame.createOrReplaceTempView(ORPHANS_VIEW)
        rows = self._procedure(
            "remove_orphan_files",
            f", older_than => {_literal(moment)}, file_list_view => '{ORPHANS_VIEW}'"
            f", location => {spark_literal(place)}",
        )
        return [str(row["orphan_file_location"]) for row in rows]

    def _call(self, procedure: str, arguments: str) -> Mapping[str, int]:
        rows = self._procedure(procedure, arguments)
        told = rows[0].asDict() if rows else {}
        return {str(name): int(value or 0) for name, value in told.items()}

    def _procedure(self, procedure: str, arguments: str) -> list[Row]:
        table = spark_literal(self.name)
        return self._rows(f"CALL {self._catalog}.system.{procedure}(table => {table}{arguments})")

    def _rows(self, statement: str) -> list[Row]:
        return sql(self._session, statement).collect()


def _fact(told: Mapping[str, Any]) -> SnapshotFact:
    summary: Mapping[str, str] = told.get("summary", {})
    found, source = marker(summary), summary.get("source-snapshot-id")
    return SnapshotFact(
        id=told["snapshot-id"],
        parent=told.get("parent-snapshot-id"),
        at=datetime.fromtimestamp(told["timestamp-ms"] / 1000, UTC),
        operation=summary.get("operation", ""),
        job=found.job if found else None,
        source=int(source) if source else None,
    )


def _literal(moment: datetime) -> str:
    return f"TIMESTAMP '{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}'"
