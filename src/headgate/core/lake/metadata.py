"""What an Iceberg table's metadata file says: where the table is, and which snapshots it has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

import orjson
from pydantic import BaseModel, ConfigDict, Field

SUFFIX = ".metadata.json"
_HADOOP_FILE = re.compile(r"v(\d+)\.metadata\.json")


@dataclass(frozen=True)
class TableLocation:
    """A table at one version: its folder, and the metadata file that version names."""

    folder: str
    version: str
    snapshot_id: int | None
    committed_at: datetime
    metadata: Mapping[str, object]


@dataclass(frozen=True)
class Snapshot:
    """One snapshot; `in_history` is false for a staged or rolled-back one."""

    id: int
    parent_id: int | None
    timestamp: datetime
    operation: str
    summary: Mapping[str, str]
    in_history: bool


class _SnapshotEntry(BaseModel):
    model_config = ConfigDict(frozen=True)

    id: int = Field(alias="snapshot-id")
    parent_id: int | None = Field(None, alias="parent-snapshot-id")
    timestamp_ms: int = Field(alias="timestamp-ms")
    summary: dict[str, str] = {}


class _Metadata(BaseModel):
    model_config = ConfigDict(frozen=True)

    updated_ms: int = Field(alias="last-updated-ms")
    current_id: int | None = Field(None, alias="current-snapshot-id")
    snapshots: tuple[_SnapshotEntry, ...] = ()

    @property
    def current(self) -> _SnapshotEntry | None:
        """The current snapshot; -1 or nothing stands for a table without one."""
        return next((entry for entry in self.snapshots if entry.id == self.current_id), None)


def plain_path(uri: str) -> str:
    """A place as DuckDB takes it: a bare path for local files, `s3://` for S3."""
    if uri.startswith("file:"):
        return "/" + uri.removeprefix("file:").lstrip("/")
    return "s3://" + uri.removeprefix("s3a://") if uri.startswith("s3a://") else uri


def newest_hadoop_file(paths: Iterable[str]) -> str | None:
    """The highest `v<N>.metadata.json`: the version hint can be stale after a kill."""
    numbered = [(int(match[1]), path) for path in paths if (match := _hadoop_match(path))]
    return max(numbered)[1] if numbered else None


def _hadoop_match(path: str) -> re.Match[str] | None:
    return _HADOOP_FILE.fullmatch(path.rsplit("/", 1)[-1])


def read_location(file: str, text: str) -> TableLocation:
    """The location that the metadata file `file` with content `text` describes."""
    folder, _, name = file.rpartition("/metadata/")
    metadata = _Metadata.model_validate_json(text)
    current = metadata.current
    hadoop = _HADOOP_FILE.fullmatch(name)
    return TableLocation(
        folder=folder,
        version=hadoop[1] if hadoop else name.removesuffix(SUFFIX),
        snapshot_id=current.id if current else None,
        committed_at=_time(current.timestamp_ms if current else metadata.updated_ms),
        metadata=cast("dict[str, object]", orjson.loads(text)),
    )


def read_snapshots(metadata: Mapping[str, object]) -> list[Snapshot]:
    """All snapshots, oldest first."""
    parsed = _Metadata.model_validate(metadata)
    history = _history(parsed)
    return sorted(
        (_snapshot(entry, entry.id in history) for entry in parsed.snapshots),
        key=lambda snapshot: snapshot.timestamp,
    )


def _history(metadata: _Metadata) -> frozenset[int]:
    parents = {entry.id: entry.parent_id for entry in metadata.snapshots}
    seen: set[int] = set()
    at = metadata.current_id
    while at in parents and at not in seen:
        seen.add(at)
        at = parents[at]
    return frozenset(seen)


def _snapshot(entry: _SnapshotEntry, in_history: bool) -> Snapshot:
    return Snapshot(
        id=entry.id,
        parent_id=entry.parent_id,
        timestamp=_time(entry.timestamp_ms),
        operation=entry.summary.get("operation", ""),
        summary=entry.summary,
        in_history=in_history,
    )


def _time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
