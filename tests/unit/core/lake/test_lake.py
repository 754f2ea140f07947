"""Metadata files, versions, snapshots and waiting, without a table or a catalog."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.cli.lake import wait_for_rows
from headgate.config.settings import Settings
from headgate.core.lake.catalog import (
    newest_hadoop_file,
    plain_path,
    read_location,
    read_snapshots,
)
from headgate.core.lake.duckdb_reader import extensions, quoted, scan, secret_sql
from headgate.errors import SettingsError, UnavailableError
from headgate.pipeline.dbt.run import variables

CREATED, SECOND, STAGED = 1_700_000_000_000, 1_700_000_001_000, 1_700_000_002_000


def snapshot(number: int, parent: int | None, at: int) -> dict[str, object]:
    entry: dict[str, object] = {
        "snapshot-id": number,
        "timestamp-ms": at,
        "summary": {"operation": "append", "headgate.run": "1"},
    }
    return entry if parent is None else {**entry, "parent-snapshot-id": parent}


def metadata(current: int | None, *snapshots: dict[str, object]) -> str:
    content: dict[str, object] = {
        "format-version": 2,
        "last-updated-ms": STAGED,
        "snapshots": list(snapshots),
    }
    return json.dumps(content if current is None else {**content, "current-snapshot-id": current})


THREE = metadata(2, snapshot(1, None, CREATED), snapshot(3, 2, STAGED), snapshot(2, 1, SECOND))


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("/a/b", "/a/b"),
        ("s3a://bucket/a", "s3://bucket/a"),
        ("s3://bucket/a", "s3://bucket/a"),
    ],
)
def test_places_are_written_as_duckdb_takes_them(uri: str, path: str) -> None:
    assert plain_path(uri) == path


def test_the_newest_hadoop_file_is_the_one_with_the_highest_number() -> None:
    files = [f"/w/t/metadata/{name}.metadata.json" for name in ("v9", "v10", "v2", "00011-x")]
    assert newest_hadoop_file(files) == "/w/t/metadata/v10.metadata.json"
    assert newest_hadoop_file(["/w/t/metadata/version-hint.text"]) is None


def test_a_location_is_folder_version_and_current_snapshot() -> None:
    location = read_location("/w/silver/t/metadata/00080-ab.metadata.json", THREE)
    assert (location.folder, location.version) == ("/w/silver/t", "00080-ab")
    assert location.snapshot_id == 2
    assert location.committed_at == datetime.fromtimestamp(SECOND / 1000, UTC)
    assert read_location("/w/t/metadata/v12.metadata.json", THREE).version == "12"


@pytest.mark.parametrize("current", [None, -1])
def test_a_table_without_rows_has_no_snapshot(current: int | None) -> None:
    location = read_location("/w/t/metadata/v1.metadata.json", metadata(current))
    assert location.snapshot_id is None
    assert read_snapshots(location.metadata) == []


def test_a_staged_snapshot_is_no_part_of_the_history() -> None:
    snapshots = read_snapshots(read_location("/w/t/metadata/v1.metadata.json", THREE).metadata)
    assert [(s.id, s.parent_id, s.in_history) for s in snapshots] == [
        (1, None, True),
        (2, 1, True),
        (3, 2, False),
    ]
    assert snapshots[0].operation == "append"
    assert snapshots[0].summary["headgate.run"] == "1"


def test_a_history_that_was_cut_ends_where_the_metadata_ends() -> None:
    text = metadata(2, snapshot(2, 1, SECOND))
    snapshots = read_snapshots(read_location("/w/t/metadata/v1.metadata.json", text).metadata)
    assert [(s.id, s.in_history) for s in snapshots] == [(2, True)]


def test_a_quote_in_a_path_stays_inside_the_literal() -> None:
    location = read_location("/it's/t/metadata/v3.metadata.json", THREE)
    assert quoted("it's") == "'it''s'"
    assert scan(location) == "iceberg_scan('/it''s/t', allow_moved_paths=true, version='3')"


def test_dbt_gets_folder_and_version_of_each_table_in_its_own_quoting() -> None:
    location = read_location("/it's {here}/t/metadata/00001-a.metadata.json", THREE)
    assert variables({"silver.t": location}) == {
        f"{stem}_{name}": value
        for stem in ("t", "silver__t")
        for name, value in (("folder", "/it''s {{here}}/t"), ("version", "00001-a"))
    }


def test_s3_is_reached_without_a_scheme_and_by_path(tmp_path: Path) -> None:
    settings = Settings(
        root=tmp_path,
        storage="minio",
        s3_endpoint="http://localhost:9000",
        minio_root_user="user",
        minio_root_password="pass'word",
    )
    assert extensions(settings) == ("avro", "iceberg", "httpfs")
    sql = secret_sql(settings)
    assert "ENDPOINT 'localhost:9000'" in sql
    assert "URL_STYLE 'path'" in sql
    assert "SECRET 'pass''word'" in sql


def test_a_storage_that_duckdb_cannot_read_is_refused(tmp_path: Path) -> None:
    settings = Settings(root=tmp_path, storage="gcs", warehouse="gs://b/w", catalog="hadoop")
    with pytest.raises(SettingsError, match="STORAGE=gcs"):
        extensions(settings)


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_waiting_ends_with_the_first_rows(capsys: pytest.CaptureFixture[str]) -> None:
    clock, counts = Clock(), iter([-1, 0, 7])
    found = wait_for_rows(
        "silver.t", lambda: next(counts), enough=1, limit=90, poll=5, clock=clock, sleep=clock.sleep
    )
    assert (found, clock.now) == (7, 10)
    assert "silver.t is not there yet; waiting, 90 s left" in capsys.readouterr().err


def test_waiting_gives_up_inside_its_limit() -> None:
    clock = Clock()
    with pytest.raises(UnavailableError, match=r"silver\.t has 0 rows after 90 s") as caught:
        wait_for_rows(
            "silver.t", lambda: 0, enough=1, limit=90, poll=5, clock=clock, sleep=clock.sleep
        )
    assert caught.value.exit_code == 8
    assert clock.now <= 90
