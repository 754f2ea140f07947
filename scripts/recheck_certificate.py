"""Re-check a certificate from the tables and the exported ledger, importing nothing of Headgate.

    python scripts/recheck_certificate.py CERTIFICATE.json [--catalog CATALOG.db]

Metadata is read as plain JSON, rows through DuckDB; --catalog asks whether the certificate speaks
of the tables' current state. Prints PASS or FAIL per statement; exits with 0 or, on a FAIL, 5.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import sqlite3
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import duckdb

LEFT_OUT = {"ingestion_ts", "refused_at"}
ORIGIN = "kafka_topic, kafka_partition, kafka_offset"
failures = 0


def say(holds: bool, words: str, details: object = "") -> None:
    global failures
    failures += not holds
    print(f"PASS  {words}" if holds else f"FAIL  {words} {details}".rstrip())


def local(path: str) -> Path:
    return Path("/" + path[5:].lstrip("/") if path.startswith("file:") else path)


class Table:
    """One table at the metadata file that the certificate names."""

    def __init__(self, db: duckdb.DuckDBPyConnection, entry: dict) -> None:
        self.db, self.entry, self.name = db, entry, entry["name"]
        file = local(entry["metadata_file"])
        self.metadata = json.loads(file.read_text())
        self.snapshots = {s["snapshot-id"]: s for s in self.metadata.get("snapshots", [])}
        version = file.name.removesuffix(".metadata.json")
        version = version[1:] if version[:1] == "v" and version[1:].isdigit() else version
        folder = str(file.parent.parent).replace("'", "''")
        scan = f"iceberg_scan('{folder}', allow_moved_paths=true, version='{version}')"
        self.rows = f"(FROM {scan}" + (f" WHERE {entry['where']})" if entry["where"] else ")")

    def columns(self) -> list[str]:
        described = self.db.execute(f"DESCRIBE {self.rows[1:-1]}").fetchall()
        return sorted(row[0] for row in described if row[0] not in LEFT_OUT)

    def content(self) -> str:
        names = [name.replace('"', '""') for name in self.columns()]
        texts = [f'coalesce(CAST("{name}" AS VARCHAR), chr(30))' for name in names]
        joined = " || chr(31) || ".join(texts)
        digests = self.db.execute(f"SELECT left(md5({joined}), 15) FROM {self.rows}")
        total = 0
        while rows := digests.fetchmany(100_000):
            total += sum(int(row[0], 16) for row in rows)
        return f"{total:x}"

    def history(self) -> list[dict]:
        found, at = [], self.snapshots.get(self.metadata.get("current-snapshot-id"))
        while at:
            found.append(at)
            at = self.snapshots.get(at.get("parent-snapshot-id"))
        return found

    def is_ours(self, snapshot: dict, settled: set[int]) -> bool:
        """Our marker, its source's, a ledger row; or the same rows, written anew."""
        summary = snapshot["summary"]
        source = int(summary.get("source-snapshot-id", 0))
        staged = self.snapshots.get(source, {}).get("summary", {})
        if "headgate.job" in summary or "headgate.job" in staged:
            return True
        if {snapshot["snapshot-id"], source} & settled:
            return True
        same = summary.get("added-records") == summary.get("deleted-records")
        return summary.get("operation") == "replace" and same


def open_duckdb() -> duckdb.DuckDBPyConnection:
    db = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    for name in ("avro", "iceberg"):  # in this order: iceberg needs avro
        package = importlib.import_module(f"duckdb_extension_{name}")
        folder = Path(package.__path__[0]) / "extensions"
        db.load_extension(str(next(folder.glob(f"v{duckdb.__version__}/*.duckdb_extension"))))
    db.execute("SET TimeZone = 'UTC'")
    return db


def total(rows: list[dict], *outcomes: str) -> int:
    return sum(row["outcomes"].get(name, 0) for row in rows for name in outcomes)


def pieces(row: dict) -> list[tuple[str, int, int]]:
    start, end = row["range"]["start"], row["range"]["end"]
    return [(p, start.get(p, 0), stop) for p, stop in end.items() if stop > start.get(p, 0)]


def check_rows(rows: list[dict]) -> None:
    uneven = [row["id"] for row in rows if sum(row["outcomes"].values()) != row["read"]]
    say(not uneven, f"{len(rows)} ledger rows: outcomes sum to the records read", uneven)
    topics = [row for row in rows if row["range"]["source"].startswith("kafka:")]
    widths = {row["id"]: sum(end - start for _, start, end in pieces(row)) for row in topics}
    uneven = [row["id"] for row in topics if widths[row["id"]] != row["read"] + row["gaps"]]
    say(not uneven, f"{len(topics)} topic rows: offsets = records + gaps", uneven)


def check_offsets(rows: list[dict]) -> None:
    lanes = defaultdict(list)
    for row in rows:
        for partition, start, end in pieces(row):
            lanes[row["range"]["source_id"], partition].append((start, end))
    pairs = [pair for lane in lanes.values() for pair in pairwise(sorted(lane))]
    broken = [(a, b) for a, b in pairs if a[1] != b[0]]
    say(not broken, f"offsets of {len(lanes)} partitions are contiguous, none twice", broken)


def check_steps(rows: list[dict]) -> None:
    steps = [(r["range"]["start"].get("snapshot"), r["range"]["end"]["snapshot"]) for r in rows]
    broken = [(a, b) for a, b in pairwise(steps) if a[1] != b[0]]
    whole = bool(steps) and steps[0][0] is None
    say(whole and not broken, f"silver followed bronze in {len(steps)} unbroken steps", broken)


def check_table(table: Table, expected: int, settled: set[int]) -> None:
    rows = table.db.execute(f"SELECT count(*) FROM {table.rows}").fetchall()[0][0]
    say(rows == expected, f"{table.name}: {rows:,} rows = ledger {expected:,}")
    found = (table.columns(), table.content(), table.metadata.get("current-snapshot-id"))
    certified = tuple(table.entry[key] for key in ("columns", "content_hash", "snapshot_id"))
    say(found == certified, f"{table.name}: content {certified[1]} as certified", found[1])
    foreign = [s["snapshot-id"] for s in table.history() if not table.is_ours(s, settled)]
    say(not foreign, f"{table.name}: {len(table.history())} snapshots, all ours", foreign)


def check_origins(tables: list[Table], topics_made: int) -> None:
    union = " UNION ALL ".join(f"SELECT {ORIGIN} FROM {table.rows}" for table in tables)
    repeated = f"SELECT {ORIGIN} FROM ({union}) GROUP BY ALL HAVING count(*) > {topics_made}"
    found = tables[0].db.execute(repeated).fetchmany(5)
    say(not found, "every origin stands once in bronze or dead letters", found)


def check_current(catalog: str, table: Table) -> None:
    sql = "SELECT metadata_location FROM iceberg_tables WHERE table_namespace=? AND table_name=?"
    row = sqlite3.connect(catalog).execute(sql, table.name.rsplit(".", 1)).fetchone()
    same = row is not None and local(row[0]) == local(table.entry["metadata_file"])
    say(same, f"{table.name}: the certificate speaks of its current state", row)


def check_dataset(entry: dict, tables: dict[str, Table], ledger: list[dict]) -> None:
    bronze = [row for row in ledger if row["job"] == f"bronze-{entry['dataset']}"]
    silver = [row for row in ledger if row["job"] == f"silver-{entry['dataset']}"]
    silver = silver[max((i for i, r in enumerate(silver) if not r["range"]["start"]), default=0) :]
    accepted, refused = total(bronze, "accepted"), total(bronze, "refused")
    kept, rest = total(silver, "kept"), total(silver, "replaced", "duplicate", "filtered")
    read, tombstones = sum(row["read"] for row in bronze), total(bronze, "tombstone")
    parts = f"bronze {accepted:,} + dead letters {refused:,} + tombstones {tombstones:,}"
    say(0 < read == accepted + refused + tombstones, f"produced {read:,} = {parts}")
    parts = f"silver {kept:,} + duplicates and filtered {rest:,}"
    say(0 < accepted == kept + rest, f"bronze {accepted:,} = {parts}")
    check_offsets(bronze)
    check_steps(silver)
    settled = {id_ for row in ledger for id_ in row["snapshots"].values()}
    for role, count in (("bronze", accepted), ("dead_letters", refused), ("silver", kept)):
        if role in tables:
            check_table(tables[role], count, settled)
        else:
            say(count == 0, f"no table of {role} is needed")
    origins = [tables[role] for role in ("bronze", "dead_letters") if role in tables]
    check_origins(origins, len({row["range"]["source_id"] for row in bronze}))


def main() -> int:
    parser = argparse.ArgumentParser(description="Re-check a certificate.")
    parser.add_argument("certificate", type=Path)
    parser.add_argument("--catalog", default="", help="the SQLite file of the jdbc catalog")
    given = parser.parse_args()
    certificate = json.loads(given.certificate.read_text())
    exported = (given.certificate.parent / certificate["ledger"]["file"]).read_bytes()
    digest = hashlib.sha256(exported).hexdigest()
    say(digest == certificate["ledger"]["sha256"], "the exported ledger is the certified one")
    ledger, db = [json.loads(line) for line in exported.splitlines()], open_duckdb()
    check_rows(ledger)
    for entry in certificate["datasets"]:
        tables = {role: Table(db, table) for role, table in entry["tables"].items()}
        check_dataset(entry, tables, ledger)
        for table in tables.values() if given.catalog else ():
            check_current(given.catalog, table)
    say(bool(certificate["datasets"]) and certificate["holds"], "the certificate says it holds")
    print(f"{failures} statements do not hold" if failures else "all statements hold")
    return 5 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
