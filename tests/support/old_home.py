"""A project with a home that an earlier version wrote: kept as an archive, unpacked anywhere.

Tables name their files by absolute path, so `relocate` writes other paths into everything that a home keeps:
metadata and manifests of tables, and the databases of catalog and ops store.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import fastavro

from headgate.config.schema import NAMES
from headgate.config.settings import Settings, load_settings
from headgate.core.engine.job_kind import KINDS
from headgate.core.engine.lag import measure
from headgate.core.ledger.ops_store import OpsStore
from headgate.local.process import wait_until
from headgate.pipeline.job_kinds import rows_behind

ARCHIVE = Path(__file__).parents[1] / "fixtures" / "old_home.zip"
# Where the archive says that the project is.
NOWHERE = "/nowhere/old-project"
COMMAND_SECONDS = 300
# Of the home: what lasts. Everything else is made anew at every start.
LASTING = ("kafka", "warehouse", "checkpoints", "catalog.db", "ops.db")
STREAMS = (
    ("bronze", "taxi"),
    ("silver", "taxi"),
    ("quality", "taxi"),
    ("reconcile", "customer"),
)
PAIRS = 200
SETTLE_SECONDS = 240
FREE_PORTS = dict.fromkeys(("KAFKA_PORT", "CONNECT_PORT", "SPARK_UI_PORT", "METRICS_PORT"), "0")


@dataclass(frozen=True)
class OldProject:
    """A project folder, and commands run in it as processes."""

    root: Path

    @property
    def home(self) -> Path:
        return self.root / ".headgate"

    @property
    def environ(self) -> Mapping[str, str]:
        inherited = {k: v for k, v in os.environ.items() if k not in NAMES.values()}
        data = {"HOST_DATA_DIR": str(self.root / "data"), "DATA_PATH": "/data/fixture.parquet"}
        return {**inherited, **FREE_PORTS, **data, "TRIGGER_SECONDS": "1"}

    @property
    def settings(self) -> Settings:
        return load_settings(self.root, self.environ)

    def wait_until_settled(self) -> None:
        """Until every stream has settled all that is on its topics."""
        with closing(OpsStore.open(self.settings.ops_store_url)) as store:
            assert wait_until(lambda: not self._behind(store), SETTLE_SECONDS), self._behind(store)

    def _behind(self, store: OpsStore) -> dict[str, int]:
        """Records that each stream has not settled yet."""
        behind = {}
        for kind, subject in STREAMS:
            if kind == "silver":
                behind[kind] = rows_behind(store, subject)
            else:
                behind[f"{kind}-{subject}"] = measure(
                    self.settings, store, KINDS[kind], subject
                ).records
        return {job: records for job, records in behind.items() if records}

    def headgate(self, *words: str) -> Any:
        """Run a command; the data that it prints."""
        done = subprocess.run(
            [sys.executable, "-m", "headgate.cli.main", "-o", "json", *words],
            cwd=self.root,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"headgate {' '.join(words)}: {done.stderr}{done.stdout}"
        return json.loads(done.stdout) if done.stdout.strip() else {}


def unpack(folder: Path) -> OldProject:
    """The project of the archive in this folder."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(folder)
    relocate(folder, NOWHERE, str(folder))
    return OldProject(folder)


def relocate(folder: Path, before: str, after: str) -> None:
    """Write the path `after` for `before` into every file of the folder that may name it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in files:
        if path.name.endswith((".metadata.json", ".properties")):
            path.write_text(path.read_text().replace(before, after))
            _remove_checksum(path)
    manifests = [path for path in files if path.suffix == ".avro"]
    # Lists come after manifests: they also say how long each manifest is.
    for path in sorted(manifests, key=lambda path: path.name.startswith("snap-")):
        _relocate_manifest(path, before, after)
    for path in files:
        if path.suffix == ".db":
            _relocate_database(path, before, after)


def _relocate_manifest(path: Path, before: str, after: str) -> None:
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        records = [_moved(record, before, after) for record in reader]
        metadata = cast("dict[str, str]", reader.metadata)
    schema, codec = json.loads(metadata.pop("avro.schema")), metadata.pop("avro.codec", "null")
    for record in records:
        if "manifest_path" in record:
            manifest = Path(record["manifest_path"].removeprefix("file:"))
            if manifest.exists():
                record["manifest_length"] = manifest.stat().st_size
    with path.open("wb") as file:
        fastavro.writer(file, schema, records, codec=codec, metadata=metadata)
    _remove_checksum(path)


def _remove_checksum(path: Path) -> None:
    """Hadoop's checksum is of the bytes as they were; a file without one is read unchecked."""
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def _moved(value: Any, before: str, after: str) -> Any:
    if isinstance(value, str):
        return value.replace(before, after)
    if isinstance(value, dict):
        return {
            key: _moved(item, before, after) for key, item in cast("dict[str, Any]", value).items()
        }
    if isinstance(value, list):
        return [_moved(item, before, after) for item in cast("list[Any]", value)]
    return value


def _relocate_database(path: Path, before: str, after: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        tables = [
            name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        for table in tables:
            columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
            for column in columns:
                db.execute(
                    f'UPDATE "{table}" SET "{column}" = replace("{column}", ?, ?)'
                    f' WHERE typeof("{column}") = \'text\' AND instr("{column}", ?) > 0',
                    (before, after, before),
                )
