"""Re-check a certificate from the tables and the exported ledger, importing nothing of Headgate.

    python scripts/recheck_certificate.py CERTIFICATE.json [--catalog FILE] [--bootstrap HOST:PORT]

Prints PASS or FAIL per statement, exits with 0 or 5. --bootstrap counts the topic's records, too.
"""

import argparse
import hashlib
import importlib
import json
import sqlite3
import sys
from bisect import insort
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import duckdb

TIMES = {"bronze": "ingestion_ts", "dead_letters": "refused_at"}
ORIGIN = "kafka_topic, kafka_partition, kafka_offset"
CURRENT = "SELECT metadata_location FROM iceberg_tables WHERE table_namespace=? AND table_name=?"
told = Counter()


def say(holds: bool, words: str, details: object = "") -> None:
    told[bool(holds)] += 1
    print(f"PASS  {words}" if holds else f"FAIL  {words} {details}".rstrip())


def local(path: str) -> Path:
    return Path("/" + path[5:].lstrip("/") if path.startswith("file:") else path)


class Table:
    """One table at the metadata file that the certificate names, and the dataset's rows in it."""

    def __init__(self, db: duckdb.DuckDBPyConnection, entry: dict, where: str) -> None:
        self.db, self.entry, self.name = db, entry, entry["name"]
        file = local(entry["metadata_file"])
        self.metadata = json.loads(file.read_text())
        version = file.name.removesuffix(".metadata.json").removeprefix("v")
        folder, version = (text.replace("'", "''") for text in (str(file.parent.parent), version))
        scan = f"iceberg_scan('{folder}', allow_moved_paths=true, version='{version}')"
        self.rows = f"(FROM {scan} WHERE {where})"
        described = db.execute(f"DESCRIBE {self.rows[1:-1]}").fetchall()
        self.columns = sorted(row[0] for row in described if row[0] not in TIMES.values())

    def content(self) -> tuple[int, str]:
        names = [name.replace('"', '""') for name in self.columns]
        texts = [f'coalesce(CAST("{name}" AS VARCHAR), chr(30))' for name in names]
        digest = f"left(md5({' || chr(31) || '.join(texts)}), 15)"
        summed = f"SELECT count(*), sum(CAST('0x' || {digest} AS BIGINT)) FROM {self.rows}"
        rows, found = self.db.execute(summed).fetchall()[0]
        return rows, f"{int(found or 0):x}"

    def foreign(self, settled: set[int]) -> list[int]:
        """Snapshots in its history that are not ours, nor the same rows, written anew."""
        snapshots = {s["snapshot-id"]: s for s in self.metadata.get("snapshots", [])}
        found, at = [], snapshots.get(self.metadata.get("current-snapshot-id"))
        while at:
            summary = at["summary"]
            source = int(summary.get("source-snapshot-id", 0))
            marked = "headgate.job" in summary | snapshots.get(source, {}).get("summary", {})
            same = summary.get("added-records") == summary.get("deleted-records")
            ours = marked or (same and summary.get("operation") == "replace")
            if not ours and not {at["snapshot-id"], source} & settled:
                found.append(at["snapshot-id"])
            at = snapshots.get(at.get("parent-snapshot-id"))
        return found


def total(rows: list[dict], *outcomes: str) -> int:
    return sum(row["outcomes"].get(name, 0) for row in rows for name in outcomes)


def pieces(row: dict) -> list[tuple[str, int, int]]:
    start, end = row["range"]["start"], row["range"]["end"]
    return [(p, start.get(p, 0), stop) for p, stop in end.items() if stop > start.get(p, 0)]


def check_ledger(bronze: list, silver: list, certified: int) -> dict[tuple[str, int], list]:
    """Do the rows add up and join up? The offsets read, by topic id and partition, in turn."""
    uneven = [r["id"] for r in (*bronze, *silver) if sum(r["outcomes"].values()) != r["read"]]
    say(not uneven, "in every ledger row the outcomes sum to the records read", uneven)
    odd = [r["id"] for r in bronze if sum(b - a for _, a, b in pieces(r)) - r["read"] != r["gaps"]]
    say(not odd, f"{len(bronze)} batches: offsets = records + gaps", odd)
    expired = sum(r["gaps"] for r in bronze if r["batch_id"] == -1)
    say(expired == certified, f"{expired:,} records expired unread and were given up", certified)
    lanes = defaultdict(list)
    for row in bronze:
        for partition, start, end in pieces(row):
            insort(lanes[row["range"]["source_id"], int(partition)], (start, end))
    broken = [(a, b) for lane in lanes.values() for a, b in pairwise(lane) if a[1] != b[0]]
    say(not broken, f"offsets of {len(lanes)} partitions are contiguous, none twice", broken)
    steps = [(r["range"]["start"].get("snapshot"), r["range"]["end"]["snapshot"]) for r in silver]
    broken = [(a, b) for a, b in pairwise([(None, None), *steps]) if a[1] != b[0]]
    say(not broken, f"silver followed bronze from nothing in {len(steps)} unbroken steps", broken)
    return lanes


def check_table(table: Table, expected: int, settled: set[int], catalog: str) -> None:
    rows, content = table.content()
    say(rows == expected, f"{table.name}: {rows:,} rows = ledger {expected:,}")
    found = (table.columns, content, table.metadata.get("current-snapshot-id") or -1)
    certified = tuple(table.entry[k] or -1 for k in ("columns", "content_hash", "snapshot_id"))
    say(found == certified, f"{table.name}: content {certified[1]} as certified", content)
    say(not (foreign := table.foreign(settled)), f"{table.name}: all its history is ours", foreign)
    if catalog:
        row = sqlite3.connect(catalog).execute(CURRENT, table.name.rsplit(".", 1)).fetchone()
        same = row is not None and local(row[0]) == local(table.entry["metadata_file"])
        say(same, f"{table.name}: the certificate speaks of its current state", row)


def check_origins(db: duckdb.DuckDBPyConnection, tables: dict[str, Table], rows: list) -> None:
    """A row bears its batch's time, and so the id of the topic that the batch has read."""
    scans = [(tables[role].rows, time) for role, time in TIMES.items() if role in tables]
    union = " UNION ALL ".join(f"SELECT {ORIGIN}, {t} AS read_at FROM {scan}" for scan, t in scans)
    ids = {row["batch_time"]: row["range"]["source_id"] for row in rows}
    batches = "SELECT unnest($1::TIMESTAMPTZ[]) AS read_at, unnest($2::VARCHAR[]) AS topic_id"
    which = "topic_id" if len(set(ids.values())) > 1 else "''"  # one topic needs no time
    named = f"SELECT {which} AS id, {ORIGIN} FROM ({union}) LEFT JOIN ({batches}) USING (read_at)"
    repeated = f"{named} GROUP BY ALL HAVING count(*) > 1 OR id IS NULL"
    wrong = db.execute(repeated, [list(ids), list(ids.values())]).fetchmany(5)
    say(not wrong, "every origin stands once in bronze or dead letters", wrong)


def check_topic(bootstrap: str, rows: list[dict], lanes: dict[tuple[str, int], list]) -> None:
    """Count what the batches read, and before them; a compacted topic may have less by now."""
    kafka, admin = map(importlib.import_module, ("confluent_kafka", "confluent_kafka.admin"))
    topic, client = rows[-1]["range"]["source"][6:], {"bootstrap.servers": bootstrap}
    api = admin.AdminClient(client)
    topic_id = str(api.describe_topics(kafka.TopicCollection([topic]))[topic].result(20).topic_id)
    lane_of = {p: lane for (id_, p), lane in lanes.items() if id_ == topic_id}
    client |= {"isolation.level": "read_committed", "enable.partition.eof": True, "log_level": 0}
    client |= {"group.id": "recheck", "enable.auto.commit": False, "auto.offset.reset": "error"}
    consumer, counted, waiting = kafka.Consumer(client), 0, set(lane_of)
    begin = {p: consumer.get_watermark_offsets(kafka.TopicPartition(topic, p))[0] for p in lane_of}
    if not lane_of or any(begin[p] > lane[0][0] for p, lane in lane_of.items()):
        print(f"SKIP  {topic} no longer has all that was read: it cannot be counted")
        return
    consumer.assign([kafka.TopicPartition(topic, p, offset) for p, offset in begin.items()])
    while waiting and (message := consumer.poll(20)):
        end = lane_of[message.partition()][-1][1]
        counted += not message.error() and message.offset() < end
        if message.error() or message.offset() + 1 >= end:  # the last offsets may have no record
            waiting.discard(message.partition())
    read = sum(row["read"] for row in rows if row["range"]["source_id"] == topic_id)
    say(counted == read, f"{topic}: {counted:,} records counted from its first = ledger {read:,}")


def check_dataset(db: duckdb.DuckDBPyConnection, entry: dict, ledger: list, given) -> None:
    jobs = [f"{kind}-{entry['dataset']}" for kind in ("bronze", "silver", "backfill")]
    bronze, silver, backfills = ([row for row in ledger if row["job"] == job] for job in jobs)
    silver = silver[max((i for i, r in enumerate(silver) if not r["range"]["start"]), default=0) :]
    accepted, refused = total(bronze, "accepted"), total(bronze, "refused")
    net = sum(r["net"] for r in backfills if r["committed_at"] > silver[0]["committed_at"])
    kept, seen = total(silver, "kept") + net, sum(row["read"] for row in silver)
    read, tombstones = sum(row["read"] for row in bronze), total(bronze, "tombstone")
    parts = f"bronze {accepted:,} + dead letters {refused:,} + tombstones {tombstones:,}"
    say(0 < read == accepted + refused + tombstones, f"produced {read:,} = {parts}")
    say(0 < accepted == seen >= kept, f"bronze {seen:,} = silver {kept:,} + others {seen - kept:,}")
    lanes = check_ledger(bronze, silver, entry["sums"].get("expired", 0))
    filters = {"dead_letters": "job = '{}'".format(jobs[0].replace("'", "''"))}
    tables = {r: Table(db, t, filters.get(r, "TRUE")) for r, t in entry["tables"].items()}
    settled = {id_ for row in ledger for id_ in row["snapshots"].values()}
    counts = {"bronze": accepted, "dead_letters": refused, "silver": kept}
    for role, table in tables.items():
        check_table(table, counts.pop(role), settled, given.catalog)
    say(not any(counts.values()), "no table is missing", counts)
    check_origins(db, tables, bronze)
    if given.bootstrap and bronze:
        check_topic(given.bootstrap, bronze, lanes)


def main() -> int:
    parser = argparse.ArgumentParser(description="Re-check a certificate.")
    parser.add_argument("certificate", type=Path)
    parser.add_argument("--catalog", default="", help="SQLite file: are the tables still so?")
    parser.add_argument("--bootstrap", default="", help="count the topic's records again, there")
    given = parser.parse_args()
    certificate = json.loads(given.certificate.read_text())
    exported = (given.certificate.parent / certificate["ledger"]["file"]).read_bytes()
    same = hashlib.sha256(exported).hexdigest() == certificate["ledger"]["sha256"]
    say(same, "the exported ledger is the certified one")
    db = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    for name in ("avro", "iceberg"):  # in this order: iceberg needs avro
        wheel = Path(importlib.import_module(f"duckdb_extension_{name}").__path__[0])
        db.load_extension(str(next(wheel.glob(f"*/v{duckdb.__version__}/*.duckdb_extension"))))
    db.execute("SET TimeZone = 'UTC'")
    for entry in certificate["datasets"]:
        check_dataset(db, entry, [json.loads(line) for line in exported.splitlines()], given)
    say(bool(certificate["datasets"]) and certificate["holds"], "the certificate says it holds")
    print(f"{told[False]} statements do not hold" if told[False] else "all statements hold")
    return 5 if told[False] else 0


if __name__ == "__main__":
    sys.exit(main())
