"""The certificate and its independent re-check over real tables and topics; no Spark is needed."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner, Result

from headgate.checks.certificate import Certificate, broken, run_certification, text, write
from headgate.cli.main import cli
from headgate.engine.topics import TopicSpec, TopicState
from headgate.errors import DifferenceError, UsageError
from headgate.local.process import wait_until
from headgate.settings import Settings
from headgate.store.model import Intent, LedgerRow, Range
from headgate.store.ops import OpsStore

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table, Transaction
    from tests.integration.conftest import RunningBroker

ROOT = Path(__file__).parents[2]
NOW = datetime(2024, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
MANIFEST = """
manifest_version: 1
name: orders
topic: ${TOPIC}
dlq_topic: orders-dlq
bronze_table: bronze.orders
silver_table: silver.orders
event_ts_col: at
ts_format: "yyyy-MM-dd HH:mm:ss"
partition_date_col: day
partition_date_expr: "CAST(at AS DATE)"
columns:
  - {name: id, kafka_type: BIGINT, bronze_type: BIGINT, silver_name: id, silver_type: BIGINT}
  - {name: at, kafka_type: STRING, bronze_type: TIMESTAMP(3), silver_name: at,
     silver_type: TIMESTAMP(3), is_event_ts: true}
dedup_key: [id]
quality_filters: ["id > 0"]
surrogate_key_fields: [id]
"""


class Pipe:
    """A small lake whose jobs are played by hand."""

    def __init__(self, root: Path, topic: str = "orders", bootstrap: str | None = None) -> None:
        from pyiceberg.catalog.sql import SqlCatalog

        folder = root / "datasets" / "orders"
        folder.mkdir(parents=True)
        (folder / "dataset.yml").write_text(MANIFEST)
        self.settings = Settings(root=root, topic=topic, bootstrap_servers=bootstrap)
        home = self.settings.home
        home.mkdir()
        self.catalog_file = home / "catalog.db"
        self._catalog = SqlCatalog(
            "lake", uri=f"sqlite:///{self.catalog_file}", warehouse=self.settings.warehouse
        )
        for namespace in ("bronze", "silver", "headgate"):
            self._catalog.create_namespace(namespace)
        self.bronze = self._table("bronze.orders", _rows([0]))
        self.silver = self._table("silver.orders", _rows([0]))
        self.dead_letters = self._table("headgate.dead_letters", _letters([0]))

    def _table(self, name: str, like: pa.Table) -> Table:
        return self._catalog.create_table(name, schema=like.schema)

    def drop(self, name: str) -> None:
        self._catalog.drop_table(name)

    def close(self) -> None:
        self._catalog.close()

    def settle(
        self,
        job: str,
        range_: Range,
        table: Table,
        gaps: int = 0,
        at: datetime = NOW,
        **outcomes: int,
    ) -> None:
        read = sum(outcomes.values())
        written = {table.name(): table.current_snapshot()}
        if outcomes.get("refused"):
            written["headgate", "dead_letters"] = self.dead_letters.current_snapshot()
        named = {".".join(("lake", *t)): s.snapshot_id for t, s in written.items() if s}
        with OpsStore.open(self.settings.ops_store_url) as store:
            intent = store.begin(Intent(None, job, 1, range_, ("r",), at, 0))
            row = LedgerRow(
                None, job, 1, range_, ("r",), at, 0, read, read + gaps, gaps, outcomes, named,
                datetime.now(UTC),
            )  # fmt: skip
            store.settle(intent, row)

    def certify(self) -> tuple[Certificate, subprocess.CompletedProcess[str]]:
        certificate = run_certification(self.settings)
        write(certificate, self.proof)
        return certificate, self.recheck("--catalog", str(self.catalog_file))

    @property
    def proof(self) -> Path:
        return self.settings.home / "certificates" / "proof.json"

    def recheck(self, *options: str) -> subprocess.CompletedProcess[str]:
        script = str(ROOT / "scripts" / "recheck_certificate.py")
        if self.settings.bootstrap_servers:
            options += ("--bootstrap", self.settings.bootstrap_servers)
        command = [sys.executable, script, str(self.proof), *options]
        return subprocess.run(command, capture_output=True, text=True, check=False)


def _rows(offsets: Sequence[int], at: datetime = NOW) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([None if n % 7 == 0 else n for n in offsets], pa.int64()),
            "kafka_topic": ["orders"] * len(offsets),
            "kafka_partition": pa.array([0] * len(offsets), pa.int32()),
            "kafka_offset": pa.array(offsets, pa.int64()),
            "ingestion_ts": pa.array([at] * len(offsets), pa.timestamp("us", tz="UTC")),
        }
    )


def _letters(offsets: Sequence[int], at: datetime = NOW) -> pa.Table:
    names = [{"ingestion_ts": "refused_at"}.get(name, name) for name in _rows([]).column_names]
    letters = _rows(offsets, at).rename_columns(names)
    return letters.append_column("job", pa.array(["bronze-orders"] * len(offsets)))


def _marker(job: str) -> Mapping[str, str]:
    return {"headgate.job": job}


def _fill(pipe: Pipe, topic_id: str = "t1", first: int = 0) -> Pipe:
    """Twelve offsets: nine rows, one dead letter, one tombstone, one gap; silver keeps seven."""
    rows = [first + n for n in range(9)]
    pipe.bronze.append(_rows(rows), snapshot_properties=dict(_marker("bronze-orders")))
    letters = _letters([first + 9])
    pipe.dead_letters.append(letters, snapshot_properties=dict(_marker("bronze-orders")))
    pipe.silver.append(_rows(rows[:7]), snapshot_properties=dict(_marker("silver-orders")))
    source = f"kafka:{pipe.settings.topic}"
    range_ = Range(source, topic_id, {"0": first}, {"0": first + 12})
    pipe.settle("bronze-orders", range_, pipe.bronze, gaps=1, accepted=9, refused=1, tombstone=1)
    snapshot = pipe.bronze.current_snapshot()
    assert snapshot is not None
    table = Range("table:bronze.orders", "u1", {}, {"snapshot": snapshot.snapshot_id})
    pipe.settle("silver-orders", table, pipe.silver, kept=7, duplicate=1, filtered=1)
    return pipe


def _fill_second(pipe: Pipe) -> None:
    """Twelve more offsets: four rows, seven dead letters, a gap; silver keeps all four."""
    rows = [12, 13, 14, 15]
    pipe.bronze.append(_rows(rows, LATER), snapshot_properties=dict(_marker("bronze-orders")))
    letters = _letters(range(16, 23), LATER)
    pipe.dead_letters.append(letters, snapshot_properties=dict(_marker("bronze-orders")))
    pipe.silver.append(_rows(rows, LATER), snapshot_properties=dict(_marker("silver-orders")))
    before, now = (snapshot.snapshot_id for snapshot in pipe.bronze.snapshots()[-2:])
    range_ = Range("kafka:orders", "t1", {"0": 12}, {"0": 24})
    pipe.settle("bronze-orders", range_, pipe.bronze, gaps=1, at=LATER, accepted=4, refused=7)
    table = Range("table:bronze.orders", "u1", {"snapshot": before}, {"snapshot": now})
    pipe.settle("silver-orders", table, pipe.silver, at=LATER, kept=4)


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[Pipe]:
    pipe = _fill(Pipe(tmp_path))
    yield pipe
    pipe.close()


def test_a_sound_pipeline_is_certified_and_the_script_agrees(pipe: Pipe) -> None:
    certificate, again = pipe.certify()
    assert broken(certificate) == ()
    assert again.returncode == 0, again.stdout + again.stderr
    assert "FAIL" not in again.stdout


def _row_added_behind_our_back(pipe: Pipe) -> None:
    pipe.bronze.append(_rows([3]))


def _row_deleted(pipe: Pipe) -> None:
    pipe.silver.delete("kafka_offset = 2")


def _dead_letter_of_an_accepted_record(pipe: Pipe) -> None:
    pipe.dead_letters.append(_letters([1]), snapshot_properties=dict(_marker("bronze-orders")))


def _offsets_skipped(pipe: Pipe) -> None:
    skipped = Range("kafka:orders", "t1", {"0": 14}, {"0": 15})
    pipe.settle("bronze-orders", skipped, pipe.bronze, tombstone=1)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_row_added_behind_our_back, "not ours"),
        (_row_deleted, "silver.orders 6 ≠ ledger 7"),
        (_dead_letter_of_an_accepted_record, "stand more than once"),
        (_offsets_skipped, "skips"),
    ],
)
def test_damage_is_found_by_both(pipe: Pipe, damage: Callable[[Pipe], None], words: str) -> None:
    damage(pipe)
    certificate, again = pipe.certify()
    assert words in "\n".join(broken(certificate))
    assert again.returncode == 5, again.stdout + again.stderr
    failed = [line for line in again.stdout.splitlines() if line.startswith("FAIL")]
    assert len(failed) > 1  # not only because the certificate says so itself


def _change_value(table: Table, at: int, **forged: str) -> None:
    """What an UPDATE of one row by another session does."""
    changed = _rows([at]).set_column(0, "id", pa.array([99], pa.int64()))
    with (
        table.transaction() as transaction,
        transaction.update_snapshot(forged).overwrite() as update,
    ):
        keep = table.scan().to_arrow().filter(pc.field("kafka_offset") != at)
        for task in table.scan().plan_files():
            update.delete_data_file(task.file)
        rows = pa.concat_tables([keep, changed.cast(keep.schema)])
        for file in _data_files(transaction, rows):
            update.append_data_file(file)


def _data_files(transaction: Transaction, rows: pa.Table) -> Iterator[DataFile]:
    from pyiceberg.io.pyarrow import _dataframe_to_data_files

    metadata = transaction.table_metadata
    return iter(_dataframe_to_data_files(metadata, rows, transaction._table.io))


def _hide_change(table: Table) -> None:
    """What compaction and expiry leave of the history: one snapshot that replaced all rows."""
    file = Path(table.metadata_location.removeprefix("file://"))
    metadata = json.loads(file.read_text())
    last = next(
        s for s in metadata["snapshots"] if s["snapshot-id"] == metadata["current-snapshot-id"]
    )
    records = last["summary"]["total-records"]
    last["summary"] |= {
        "operation": "replace", "added-records": records, "deleted-records": records,
    }  # fmt: skip
    last["parent-snapshot-id"] = 1
    file.write_text(json.dumps({**metadata, "snapshots": [last], "snapshot-log": []}))


def _tamper_with_ledger(pipe: Pipe, **changes: Mapping[int, int]) -> None:
    """Add to outcomes, records read or gaps of the bronze rows: `{row: difference}`."""
    file = pipe.settings.ops_store_url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(file)) as db, db:
        query = "SELECT id, outcomes FROM ledger WHERE job = 'bronze-orders' ORDER BY id"
        for n, (id_, text_) in enumerate(db.execute(query).fetchall()):
            outcomes = json.loads(text_)
            for name in ("accepted", "refused", "tombstone"):
                if difference := changes.get(name, {}).get(n, 0):
                    outcomes[name] += difference
            sums = [changes.get(name, {}).get(n, 0) for name in ("read", "gaps")]
            update = "UPDATE ledger SET outcomes = ?, read = read + ?, gaps = gaps + ? WHERE id = ?"
            db.execute(update, (json.dumps(outcomes), *sums, id_))


def _drop_ledger_row(pipe: Pipe, which: int) -> None:
    file = pipe.settings.ops_store_url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(file)) as db, db:
        query = "SELECT id FROM ledger WHERE job = 'bronze-orders' ORDER BY id"
        (id_,) = db.execute(query).fetchall()[which]
        db.execute("DELETE FROM ledger WHERE id = ?", (id_,))


def _change_and_hide(table: Table, at: int) -> None:
    _change_value(table, at)
    _hide_change(table.refresh())


TAMPERING: Mapping[str, Callable[[Pipe], None]] = {
    "a: a row of bronze is deleted": lambda pipe: pipe.bronze.delete("kafka_offset = 3"),
    "b: a row of bronze is inserted again": lambda pipe: pipe.bronze.append(_rows([3])),
    "c: a value in bronze is changed": lambda pipe: _change_value(pipe.bronze, 3),
    "d: the newest ledger row is dropped": lambda pipe: _drop_ledger_row(pipe, -1),
    "d2: an earlier ledger row is dropped": lambda pipe: _drop_ledger_row(pipe, 0),
    "e1: a batch has accepted more": lambda pipe: _tamper_with_ledger(pipe, accepted={0: 1}),
    "e2: accepted is refused": lambda pipe: _tamper_with_ledger(
        pipe, accepted={0: -1}, refused={0: 1}
    ),
    "e3: a record moves to another batch": lambda pipe: _tamper_with_ledger(
        pipe, accepted={0: -1, 1: 1}, read={0: -1, 1: 1}, gaps={0: 1, 1: -1}
    ),
    "e4: outcomes move, all sums are kept": lambda pipe: _tamper_with_ledger(
        pipe, accepted={0: -5, 1: 5}, refused={0: 5, 1: -5}
    ),
    "f: a dead letter is dropped": lambda pipe: pipe.dead_letters.delete("kafka_offset = 9"),
    "g: a value is changed under forged metadata": lambda pipe: _change_value(
        pipe.bronze, 3, **_marker("bronze-orders")
    ),
    "g2: the same in silver": lambda pipe: _change_value(
        pipe.silver, 3, **_marker("silver-orders")
    ),
    "h: a change is compacted and expired": lambda pipe: _change_and_hide(pipe.bronze, 3),
    "h2: the same in silver": lambda pipe: _change_and_hide(pipe.silver, 3),
    "i: a value in silver is changed": lambda pipe: _change_value(pipe.silver, 3),
}


@pytest.mark.parametrize("attack", TAMPERING)
def test_tampering_is_noticed_by_both(pipe: Pipe, attack: str) -> None:
    _fill_second(pipe)
    assert broken(run_certification(pipe.settings)) == ()
    TAMPERING[attack](pipe)
    certificate, again = pipe.certify()
    assert broken(certificate)
    assert again.returncode == 5, again.stdout + again.stderr
    failed = [line for line in again.stdout.splitlines() if line.startswith("FAIL")]
    assert len(failed) > 1, again.stdout  # not only because the certificate says so itself


def test_expired_history_without_an_earlier_certificate_is_a_warning(pipe: Pipe) -> None:
    _change_and_hide(pipe.bronze, 3)
    certificate, again = pipe.certify()
    assert broken(certificate) == ()
    assert "! the history of bronze.orders does not reach back to its first batch" in text(
        certificate
    )
    assert "SKIP  bronze.orders: snapshots have expired" in again.stdout


def test_an_earlier_certificate_that_was_kept_tells_what_the_note_does_not(pipe: Pipe) -> None:
    pipe.certify()
    kept = pipe.proof.with_name("kept.json")
    kept.write_text(pipe.proof.read_text())
    _change_and_hide(pipe.bronze, 3)
    with OpsStore.open(pipe.settings.ops_store_url) as store:
        store.mark("certified:orders", "{}")
    _, again = pipe.certify()
    assert again.returncode == 0
    again = pipe.recheck("--previous", str(kept))
    assert "FAIL  bronze.orders: the rows certified" in again.stdout


def test_a_removed_dataset_is_still_accounted_for(pipe: Pipe) -> None:
    (pipe.settings.root / "datasets" / "orders" / "dataset.yml").unlink()
    certificate, again = pipe.certify()
    assert broken(certificate) == ()
    assert "! orders is no longer declared" in text(certificate)
    assert again.returncode == 0, again.stdout + again.stderr


@pytest.fixture
def command(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """`headgate` in the pipe's project, whose active dataset is orders."""
    monkeypatch.chdir(pipe.settings.root)
    monkeypatch.setenv("DATASET", "orders")
    monkeypatch.setenv("TOPIC", "orders")
    return lambda *words: CliRunner().invoke(cli, words)


def test_a_certificate_is_of_the_active_dataset_unless_all_is_asked_for(
    pipe: Pipe, command: Callable[..., Result]
) -> None:
    unread = Range("kafka:other", "t9", {"0": 0}, {"0": 3})
    pipe.settle("bronze-other", unread, pipe.bronze, accepted=3)
    result = command("certify", "--out", str(pipe.proof))
    assert result.exit_code == 0, result.output
    assert "not looked at: dataset other; --all certifies everything" in result.stderr
    assert pipe.recheck().returncode == 0
    result = command("certify", "--all")
    assert isinstance(result.exception, DifferenceError)
    assert "other: " in result.exception.why
    assert "orders: " not in result.exception.why
    assert isinstance(command("certify", "--all", "--dataset", "x").exception, UsageError)


def test_a_count_says_which_table_is_missing(pipe: Pipe, command: Callable[..., Result]) -> None:
    result = command("lake", "count")
    assert result.stdout == "BRONZE=9\nSILVER=7\n"
    pipe.drop("silver.orders")
    result = command("lake", "count")
    assert result.stdout == "BRONZE=9\nSILVER=-1\n"
    assert "silver.orders does not exist yet, hence -1: make process writes it" in result.stderr


def test_a_certificate_that_was_touched_up_is_found_out(pipe: Pipe) -> None:
    pipe.certify()
    ledger = pipe.settings.home / "certificates" / "proof.ledger.jsonl"
    ledger.write_text(ledger.read_text().replace('"accepted":9', '"accepted":8'))
    again = pipe.recheck()
    assert again.returncode == 5
    assert "FAIL  the exported ledger is the certified one" in again.stdout


def test_the_script_does_not_let_the_certificate_choose_its_rows(pipe: Pipe) -> None:
    pipe.certify()
    _dead_letter_of_an_accepted_record(pipe)
    proof = json.loads(pipe.proof.read_text())
    letters = proof["datasets"][0]["tables"]["dead_letters"]
    snapshot = pipe.dead_letters.current_snapshot()
    assert snapshot is not None
    letters["metadata_file"] = pipe.dead_letters.metadata_location
    letters["snapshot_id"] = snapshot.snapshot_id
    letters["where"] = "job = 'bronze-orders' AND kafka_offset <> 1"
    pipe.proof.write_text(json.dumps(proof))
    again = pipe.recheck()
    assert again.returncode == 5, again.stdout + again.stderr
    assert "FAIL  headgate.dead_letters: 2 rows = ledger 1" in again.stdout


def _read_the_topic_made_again(pipe: Pipe, offsets: Sequence[int]) -> None:
    rows = _rows(offsets, LATER)
    pipe.bronze.append(rows, snapshot_properties=dict(_marker("bronze-orders")))
    range_ = Range("kafka:orders", "t2", {"0": 0}, {"0": 12})
    n = len(offsets)
    pipe.settle("bronze-orders", range_, pipe.bronze, gaps=12 - n, at=LATER, accepted=n)


def test_a_topic_made_again_has_the_same_offsets_once_more(pipe: Pipe) -> None:
    _read_the_topic_made_again(pipe, [0, 1, 2])
    certificate, again = pipe.certify()
    assert "stand more than once" not in "\n".join(broken(certificate))
    assert "PASS  every origin stands once" in again.stdout


def test_each_topic_id_has_an_offset_once(pipe: Pipe) -> None:
    _read_the_topic_made_again(pipe, [10, 10, 11])
    certificate, again = pipe.certify()
    assert "1 stand more than once" in "\n".join(broken(certificate))
    assert "FAIL  every origin stands once" in again.stdout


Fill = Callable[..., Pipe]


@pytest.fixture
def on_topic(broker: RunningBroker, tmp_path: Path) -> Iterator[Fill]:
    """Makes the same pipe over a real topic: eleven records, and one offset that ends them."""
    made: list[Pipe] = []

    def make(*, before: int = 0, transaction: bool = True) -> Pipe:
        topic = broker.new_topic()
        _send(broker, topic, before)
        _send(broker, topic, 11 if transaction else 12, transaction=transaction)
        state = _described(broker, topic, before + 12)
        pipe = Pipe(tmp_path, topic, broker.bootstrap)
        made.append(pipe)
        return _fill(pipe, state.topic_id, before)

    yield make
    for pipe in made:
        pipe.close()


def _described(broker: RunningBroker, topic: str, end: int) -> TopicState:
    """The topic once it ends there: a transaction's last mark is written after the commit returns."""
    assert wait_until(lambda: broker.topics.found(topic).end == {0: end}, 60)
    return broker.topics.found(topic)


def _send(broker: RunningBroker, topic: str, count: int, *, transaction: bool = False) -> None:
    from confluent_kafka import Producer

    named = {"transactional.id": topic} if transaction else {}
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0, **named})
    if transaction:
        producer.init_transactions(120)
        producer.begin_transaction()
    for n in range(count):  # every third is a tombstone
        producer.produce(topic, str(n) if n % 3 else None, partition=0)
    assert producer.flush(120) == 0
    if transaction:
        producer.commit_transaction(120)


def test_the_records_are_counted_again_on_the_topic(on_topic: Fill) -> None:
    certificate, again = on_topic().certify()
    assert broken(certificate) == ()
    words = text(certificate)
    assert "✓ 11 records counted on the topic = ledger 11" in words
    assert "✓ 1 offset is without a record: its broker has had transactions" in words
    assert words.endswith("Every record is accounted for.")
    assert again.returncode == 0, again.stdout + again.stderr
    assert "11 records counted from its first = ledger 11" in again.stdout


def test_a_record_that_passes_for_a_gap_is_found_by_both(on_topic: Fill) -> None:
    certificate, again = on_topic(transaction=False).certify()
    assert "12 records counted on the topic ≠ ledger 11" in "\n".join(broken(certificate))
    assert again.returncode == 5
    assert "12 records counted from its first = ledger 11" in again.stdout


def test_a_topic_made_again_is_not_yet_processed(on_topic: Fill, broker: RunningBroker) -> None:
    pipe = on_topic()
    topic = str(pipe.settings.topic)
    broker.topics.delete([topic])
    broker.topics.create([TopicSpec(topic, 1, 1)])
    _send(broker, topic, 1_000)
    certificate, again = pipe.certify()
    assert "1,000 records on the topic are not yet processed" in "\n".join(broken(certificate))
    assert "Every record" not in text(certificate)
    assert "SKIP" in again.stdout


def test_what_stands_before_the_first_batch_was_not_read(
    on_topic: Fill, broker: RunningBroker
) -> None:
    pipe = on_topic(before=100)
    certificate, again = pipe.certify()
    assert "100 records before the first batch have not been read" in "\n".join(broken(certificate))
    assert "FAIL  " + str(pipe.settings.topic) + ": 111 records counted" in again.stdout
    _expire(broker, str(pipe.settings.topic), 100)
    certificate, again = pipe.certify()
    assert broken(certificate) == ()
    assert "what was before is no longer on the topic" in text(certificate)
    assert again.returncode == 0, again.stdout + again.stderr


def test_records_that_have_left_the_topic_are_not_counted(
    on_topic: Fill, broker: RunningBroker
) -> None:
    pipe = on_topic()
    _expire(broker, str(pipe.settings.topic), 3)
    certificate, again = pipe.certify()
    assert broken(certificate) == ()
    assert "! records and gaps were not counted again on the topic" in text(certificate)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "SKIP" in again.stdout


def _expire(broker: RunningBroker, topic: str, offset: int) -> None:
    """What retention does: everything before the offset is removed."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result(60)
