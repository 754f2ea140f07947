"""Re-check a certificate from the tables and the exported ledger, importing nothing of Headgate.

    python scripts/recheck_certificate.py CERTIFICATE.json [--catalog FILE] [--bootstrap HOST:PORT]
        [--previous CERTIFICATE.json]

Prints PASS or FAIL per statement, exits with 0 or 5. --bootstrap counts the topic's records, too.
What was certified before is compared with the certificate that --previous names, else with the note
that the certificate itself has of it.
"""

import argparse
import hashlib
import importlib
import json
import sqlite3
import sys
from bisect import insort
from collections import Counter, defaultdict
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import duckdb

TIMES = {"bronze": "ingestion_ts", "dead_letters": "refused_at"}
OUTCOMES = {"bronze": "accepted", "dead_letters": "refused", "silver": "kept"}
FILES = ("added-data-files", "deleted-data-files", "added-delete-files", "removed-delete-files")
DELETED = ("deleted-records", "added-position-deletes", "added-equality-deletes")
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

    def content(self, columns: list[str] | None = None, test: str = "TRUE") -> tuple[int, str]:
        names = [name.replace('"', '""') for name in columns or self.columns]
        texts = [f'coalesce(CAST("{name}" AS VARCHAR), chr(30))' for name in names]
        digest = f"left(md5({' || chr(31) || '.join(texts)}), 15)"
        summed = f"SELECT count(*), sum(CAST('0x' || {digest} AS BIGINT)) FROM {self.rows}"
        rows, found = self.db.execute(f"{summed} WHERE {test}").fetchall()[0]
        return rows, f"{int(found or 0):x}"

    def history(self) -> list[tuple[dict, set[int], str | None]]:
        """Its snapshots, newest first, each with the ids that name it and its job, if it has one."""
        snapshots = {s["snapshot-id"]: s for s in self.metadata.get("snapshots", [])}
        found, at = [], snapshots.get(self.metadata.get("current-snapshot-id"))
        while at:
            source = int(at["summary"].get("source-snapshot-id", 0))
            both = snapshots.get(source, {}).get("summary", {}) | at["summary"]
            found.append((at, {at["snapshot-id"], source}, both.get("headgate.job")))
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


def check_table(role: str, table: Table, expected: int, own: list, ledger: list, given) -> None:
    rows, content = table.content()
    say(rows == expected, f"{table.name}: {rows:,} rows = ledger {expected:,}")
    found = (table.columns, content, table.metadata.get("current-snapshot-id") or -1)
    certified = tuple(table.entry[k] or -1 for k in ("columns", "content_hash", "snapshot_id"))
    say(found == certified, f"{table.name}: content {certified[1]} as certified", content)
    check_history(role, table, own, {id_ for row in ledger for id_ in row["snapshots"].values()})
    if role in TIMES:
        check_batches(role, table, own)
    check_previous(role, table, own)
    if given.catalog:
        row = sqlite3.connect(given.catalog).execute(CURRENT, table.name.rsplit(".", 1)).fetchone()
        same = row is not None and local(row[0]) == local(table.entry["metadata_file"])
        say(same, f"{table.name}: the certificate speaks of its current state", row)


def check_history(role: str, table: Table, own: list, named: set[int]) -> None:
    """A ledger row names each snapshot and its rows, or it changes none; anyone can forge a job."""
    foreign, misfits, jobs = [], [], {row["job"] for row in own}
    by_id = {id_: row for row in own for id_ in row["snapshots"].values()}
    for snapshot, ids, job in table.history():
        summary = snapshot["summary"]
        added, deleted = (summary.get(f"{verb}-records") for verb in ("added", "deleted"))
        same = summary.get("operation") == "replace" and added == deleted
        same = same or (job and not any(int(summary.get(name, 0)) for name in FILES))
        other = job and job not in jobs and summary.get("operation") == "append"  # a shared table
        if not (ids & named or same or other):
            foreign.append(snapshot["snapshot-id"])
        for row in [by_id[id_] for id_ in ids if id_ in by_id]:
            backfill, anew = row["job"].startswith("backfill-"), not row["range"]["start"]
            gone = 0 if anew and not backfill else sum(int(summary.get(n, 0)) for n in DELETED)
            due = row["net"] if backfill else row["outcomes"].get(OUTCOMES[role], 0)
            if int(added or 0) - gone != due:
                misfits.append((row["id"], int(added or 0) - gone, due))
    say(not foreign, f"{table.name}: all its history is the ledger's", foreign)
    say(not misfits, f"{table.name}: its snapshots brought the rows of their batches", misfits)


def check_batches(role: str, table: Table, own: list) -> None:
    counted = f"SELECT epoch_us({TIMES[role]}), count(*) FROM {table.rows} GROUP BY 1"
    found, due = dict(table.db.execute(counted).fetchall()), Counter()
    for row in own:
        at = datetime.fromisoformat(row["batch_time"])
        due[int(at.timestamp()) * 1_000_000 + at.microsecond] += row["outcomes"].get(
            OUTCOMES[role], 0
        )
    wrong = [(at, found.get(at), due[at]) for at in {*found, *due} if found.get(at, 0) != due[at]]
    say(not wrong, f"{table.name}: each batch has as many rows as the ledger says", wrong[:5])


def check_previous(role: str, table: Table, own: list) -> None:
    """What was certified before is unchanged, or each change since is in the history."""
    before, history = table.entry.get("previous"), table.history()
    anew = {id_ for r in own if role == "silver" and not r["range"]["start"]
            if not r["job"].startswith("backfill-") for id_ in r["snapshots"].values()}  # fmt: skip
    oldest = history[-1][0].get("parent-snapshot-id") if history else None
    seen = {oldest}.union(*(ids for _, ids, _ in history))
    followed = oldest is None or seen & anew or (before and before["snapshot_id"] in seen)
    whole = before and before["until"] == table.entry["until"]
    if before and (whole or role in TIMES) and set(before["columns"]) <= set(table.columns):
        test = f"{TIMES[role]} <= TIMESTAMPTZ '{before['until']}'" if role in TIMES else "TRUE"
        same = table.content(before["columns"], test) == (before["rows"], before["content_hash"])
        words = f"{table.name}: the rows certified {before['made_at']} are unchanged"
        say(same, words, before["content_hash"])
        followed = followed or whole
    if not followed:
        print(f"SKIP  {table.name}: snapshots have expired, not every change can be seen")


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
    while waiting and (message := consumer.poll(20)) is not None:  # a tombstone is false
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
    counts = {"bronze": accepted, "dead_letters": refused, "silver": kept}
    for role, table in tables.items():
        own = [*silver, *backfills] if role == "silver" else bronze
        check_table(role, table, counts.pop(role), own, ledger, given)
    say(not any(counts.values()), "no table is missing", counts)
    check_origins(db, tables, bronze)
    if given.bootstrap and bronze:
        check_topic(given.bootstrap, bronze, lanes)


def take_previous(certificate: dict, earlier: dict) -> None:
    """Hold the tables against an earlier certificate in place of the note in this one."""
    known = {entry["dataset"]: entry["tables"] for entry in earlier["datasets"]}
    for entry in certificate["datasets"]:
        for role, table in entry["tables"].items():
            before = known.get(entry["dataset"], {}).get(role)
            table["previous"] = before and {**before, "made_at": earlier["made_at"]}


def main() -> int:
    parser = argparse.ArgumentParser(description="Re-check a certificate.")
    parser.add_argument("certificate", type=Path)
    parser.add_argument("--catalog", default="", help="SQLite file: are the tables still so?")
    parser.add_argument("--bootstrap", default="", help="count the topic's records again, there")
    parser.add_argument("--previous", type=Path, help="an earlier certificate that you have kept")
    given = parser.parse_args()
    certificate = json.loads(given.certificate.read_text())
    if given.previous:
        take_previous(certificate, json.loads(given.previous.read_text()))
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
