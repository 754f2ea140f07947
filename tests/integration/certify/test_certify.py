"""The certificate and its independent re-check over real tables and topics; no Spark is needed."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner, Result
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table, Transaction
from tests.support.lake_harness import (
    LATER,
    LakeHarness,
    commit_metadata,
    dead_letter_rows,
    fill_lake,
    fill_second_batch,
    lake_rows,
)

from headgate.certify.certificate import broken, run_certification, text
from headgate.certify.store import CertificateStore
from headgate.cli.main import cli
from headgate.core.kafka.topics import TopicSpec, TopicState
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.ranges import TopicRange
from headgate.errors import DifferenceError, UsageError
from headgate.local.process import wait_until

if TYPE_CHECKING:
    from tests.support.services import RunningBroker


@pytest.fixture(scope="module")
def lake_copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copies of a lake: filled `once`, and filled `twice` and certified."""
    folder = tmp_path_factory.mktemp("lake")
    with closing(LakeHarness(folder / "root")) as lake:
        fill_lake(lake)
    shutil.copytree(folder / "root", folder / "once")
    with closing(LakeHarness(folder / "root")) as lake:
        fill_second_batch(lake)
        assert broken(run_certification(lake.settings)) == ()
    shutil.copytree(folder / "root", folder / "twice")
    return folder


def _restore(folder: Path, copy: str) -> LakeHarness:
    """The lake as it was copied, in the folder where it was filled: its tables name files by path."""
    shutil.rmtree(folder / "root")
    shutil.copytree(folder / copy, folder / "root")
    return LakeHarness(folder / "root")


@pytest.fixture
def lake(lake_copies: Path) -> Iterator[LakeHarness]:
    with closing(_restore(lake_copies, "once")) as lake:
        yield lake


@pytest.fixture
def certified_lake(lake_copies: Path) -> Iterator[LakeHarness]:
    with closing(_restore(lake_copies, "twice")) as lake:
        yield lake


def test_a_sound_pipeline_is_certified_and_the_script_agrees(lake: LakeHarness) -> None:
    certificate, again = lake.certify()
    assert broken(certificate) == ()
    assert again.returncode == 0, again.stdout + again.stderr
    assert "FAIL" not in again.stdout
    command = [sys.executable, *again.args]
    alone = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (alone.returncode, alone.stdout, alone.stderr) == (0, again.stdout, "")


def _row_added_behind_our_back(lake: LakeHarness) -> None:
    lake.bronze.append(lake_rows([3]))


def _row_deleted(lake: LakeHarness) -> None:
    lake.silver.delete("kafka_offset = 2")


def _dead_letter_of_an_accepted_record(lake: LakeHarness) -> None:
    lake.dead_letters.append(
        dead_letter_rows([1]), snapshot_properties=dict(commit_metadata("bronze-orders"))
    )


def _offsets_skipped(lake: LakeHarness) -> None:
    skipped = TopicRange("orders", "t1", {"0": 14}, {"0": 15})
    lake.settle("bronze-orders", skipped, lake.bronze, tombstone=1)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_row_added_behind_our_back, "not ours"),
        (_row_deleted, "silver.orders 6 ≠ ledger 7"),
        (_dead_letter_of_an_accepted_record, "stand more than once"),
        (_offsets_skipped, "skips"),
    ],
)
def test_damage_is_found_by_both(
    lake: LakeHarness, damage: Callable[[LakeHarness], None], words: str
) -> None:
    damage(lake)
    certificate, again = lake.certify()
    assert words in "\n".join(broken(certificate))
    assert again.returncode == 5, again.stdout + again.stderr
    failed = [line for line in again.stdout.splitlines() if line.startswith("FAIL")]
    assert len(failed) > 1  # not only because the certificate says so itself


def _change_value(table: Table, at: int, **forged: str) -> None:
    """What an UPDATE of one row by another session does."""
    changed = lake_rows([at]).set_column(0, "id", pa.array([99], pa.int64()))
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


def _tamper_with_ledger(lake: LakeHarness, **changes: Mapping[int, int]) -> None:
    """Add to outcomes, records read or gaps of the bronze rows: `{row: difference}`."""
    file = lake.settings.ops_store_url.removeprefix("sqlite:///")
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


def _drop_ledger_row(lake: LakeHarness, which: int) -> None:
    file = lake.settings.ops_store_url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(file)) as db, db:
        query = "SELECT id FROM ledger WHERE job = 'bronze-orders' ORDER BY id"
        (id_,) = db.execute(query).fetchall()[which]
        db.execute("DELETE FROM ledger WHERE id = ?", (id_,))


def _change_and_hide(table: Table, at: int) -> None:
    _change_value(table, at)
    _hide_change(table.refresh())


TAMPERING: Mapping[str, Callable[[LakeHarness], None]] = {
    "a: a row of bronze is deleted": lambda lake: lake.bronze.delete("kafka_offset = 3"),
    "b: a row of bronze is inserted again": lambda lake: lake.bronze.append(lake_rows([3])),
    "c: a value in bronze is changed": lambda lake: _change_value(lake.bronze, 3),
    "d: the newest ledger row is dropped": lambda lake: _drop_ledger_row(lake, -1),
    "d2: an earlier ledger row is dropped": lambda lake: _drop_ledger_row(lake, 0),
    "e1: a batch has accepted more": lambda lake: _tamper_with_ledger(lake, accepted={0: 1}),
    "e2: accepted is refused": lambda lake: _tamper_with_ledger(
        lake, accepted={0: -1}, refused={0: 1}
    ),
    "e3: a record moves to another batch": lambda lake: _tamper_with_ledger(
        lake, accepted={0: -1, 1: 1}, read={0: -1, 1: 1}, gaps={0: 1, 1: -1}
    ),
    "e4: outcomes move, all sums are kept": lambda lake: _tamper_with_ledger(
        lake, accepted={0: -5, 1: 5}, refused={0: 5, 1: -5}
    ),
    "f: a dead letter is dropped": lambda lake: lake.dead_letters.delete("kafka_offset = 9"),
    "g: a value is changed under forged metadata": lambda lake: _change_value(
        lake.bronze, 3, **commit_metadata("bronze-orders")
    ),
    "g2: the same in silver": lambda lake: _change_value(
        lake.silver, 3, **commit_metadata("silver-orders")
    ),
    "h: a change is compacted and expired": lambda lake: _change_and_hide(lake.bronze, 3),
    "h2: the same in silver": lambda lake: _change_and_hide(lake.silver, 3),
    "i: a value in silver is changed": lambda lake: _change_value(lake.silver, 3),
}


@pytest.mark.parametrize("attack", TAMPERING)
def test_tampering_is_noticed_by_both(certified_lake: LakeHarness, attack: str) -> None:
    TAMPERING[attack](certified_lake)
    certificate, again = certified_lake.certify()
    assert broken(certificate)
    assert again.returncode == 5, again.stdout + again.stderr
    failed = [line for line in again.stdout.splitlines() if line.startswith("FAIL")]
    assert len(failed) > 1, again.stdout  # not only because the certificate says so itself


def test_expired_history_without_an_earlier_certificate_is_a_warning(lake: LakeHarness) -> None:
    _change_and_hide(lake.bronze, 3)
    certificate, again = lake.certify()
    assert broken(certificate) == ()
    assert "! the history of bronze.orders does not reach back to its first batch" in text(
        certificate
    )
    assert "SKIP  bronze.orders: snapshots have expired" in again.stdout


def test_an_earlier_certificate_that_was_kept_tells_what_the_note_does_not(
    lake: LakeHarness,
) -> None:
    lake.certify()
    kept = lake.proof.with_name("kept.json")
    kept.write_text(lake.proof.read_text())
    _change_and_hide(lake.bronze, 3)
    with OpsStore.open(lake.settings.ops_store_url) as store:
        store.part(CertificateStore).write_certified("orders", {})
    _, again = lake.certify()
    assert again.returncode == 0
    again = lake.recheck("--previous", str(kept))
    assert "FAIL  bronze.orders: the rows certified" in again.stdout


def test_a_removed_dataset_is_still_accounted_for(lake: LakeHarness) -> None:
    (lake.settings.root / "datasets" / "orders" / "dataset.yml").unlink()
    certificate, again = lake.certify()
    assert broken(certificate) == ()
    assert "! orders is no longer declared" in text(certificate)
    assert again.returncode == 0, again.stdout + again.stderr


@pytest.fixture
def command(lake: LakeHarness, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """`headgate` in the lake's project, whose active dataset is orders."""
    monkeypatch.chdir(lake.settings.root)
    monkeypatch.setenv("DATASET", "orders")
    monkeypatch.setenv("TOPIC", "orders")
    return lambda *words: CliRunner().invoke(cli, words)


def test_a_certificate_is_of_the_active_dataset_unless_all_is_asked_for(
    lake: LakeHarness, command: Callable[..., Result]
) -> None:
    unread = TopicRange("other", "t9", {"0": 0}, {"0": 3})
    lake.settle("bronze-other", unread, lake.bronze, accepted=3)
    result = command("certify", "--out", str(lake.proof))
    assert result.exit_code == 0, result.output
    assert "not looked at: dataset other; --all certifies everything" in result.stderr
    assert lake.recheck().returncode == 0
    result = command("certify", "--all")
    assert isinstance(result.exception, DifferenceError)
    assert "other: " in result.exception.why
    assert "orders: " not in result.exception.why
    assert isinstance(command("certify", "--all", "--dataset", "x").exception, UsageError)


def test_a_count_says_which_table_is_missing(
    lake: LakeHarness, command: Callable[..., Result]
) -> None:
    result = command("lake", "count")
    assert result.stdout == "BRONZE=9\nSILVER=7\n"
    lake.drop("silver.orders")
    result = command("lake", "count")
    assert result.stdout == "BRONZE=9\nSILVER=-1\n"
    assert "silver.orders does not exist yet, hence -1: make process writes it" in result.stderr


def test_a_certificate_that_was_touched_up_is_found_out(lake: LakeHarness) -> None:
    lake.certify()
    ledger = lake.settings.home / "certificates" / "proof.ledger.jsonl"
    ledger.write_text(ledger.read_text().replace('"accepted":9', '"accepted":8'))
    again = lake.recheck()
    assert again.returncode == 5
    assert "FAIL  the exported ledger is the certified one" in again.stdout


def test_the_script_does_not_let_the_certificate_choose_its_rows(lake: LakeHarness) -> None:
    lake.certify()
    _dead_letter_of_an_accepted_record(lake)
    proof = json.loads(lake.proof.read_text())
    letters = proof["datasets"][0]["tables"]["dead_letters"]
    snapshot = lake.dead_letters.current_snapshot()
    assert snapshot is not None
    letters["metadata_file"] = lake.dead_letters.metadata_location
    letters["snapshot_id"] = snapshot.snapshot_id
    letters["where"] = "job = 'bronze-orders' AND kafka_offset <> 1"
    lake.proof.write_text(json.dumps(proof))
    again = lake.recheck()
    assert again.returncode == 5, again.stdout + again.stderr
    assert "FAIL  headgate.dead_letters: 2 rows = ledger 1" in again.stdout


def _read_the_topic_made_again(lake: LakeHarness, offsets: Sequence[int]) -> None:
    rows = lake_rows(offsets, LATER)
    lake.bronze.append(rows, snapshot_properties=dict(commit_metadata("bronze-orders")))
    range_ = TopicRange("orders", "t2", {"0": 0}, {"0": 12})
    n = len(offsets)
    lake.settle("bronze-orders", range_, lake.bronze, gaps=12 - n, at=LATER, accepted=n)


def test_a_topic_made_again_has_the_same_offsets_once_more(lake: LakeHarness) -> None:
    _read_the_topic_made_again(lake, [0, 1, 2])
    certificate, again = lake.certify()
    assert "stand more than once" not in "\n".join(broken(certificate))
    assert "PASS  every origin stands once" in again.stdout


def test_each_topic_id_has_an_offset_once(lake: LakeHarness) -> None:
    _read_the_topic_made_again(lake, [10, 10, 11])
    certificate, again = lake.certify()
    assert "1 stand more than once" in "\n".join(broken(certificate))
    assert "FAIL  every origin stands once" in again.stdout


Fill = Callable[..., LakeHarness]


@pytest.fixture
def on_topic(broker: RunningBroker, tmp_path: Path) -> Iterator[Fill]:
    """Fills the same lake from a real topic: eleven records, and one offset that ends them."""
    made: list[LakeHarness] = []

    def make(*, before: int = 0, transaction: bool = True) -> LakeHarness:
        topic = broker.new_topic()
        _send(broker, topic, before)
        _send(broker, topic, 11 if transaction else 12, transaction=transaction)
        state = _described(broker, topic, before + 12)
        lake = LakeHarness(tmp_path, topic, broker.bootstrap)
        made.append(lake)
        return fill_lake(lake, state.topic_id, before)

    yield make
    for lake in made:
        lake.close()


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
    lake = on_topic()
    topic = str(lake.settings.topic)
    broker.topics.delete([topic])
    broker.topics.create([TopicSpec(topic, 1, 1)])
    _send(broker, topic, 1_000)
    certificate, again = lake.certify()
    assert "1,000 records on the topic are not yet processed" in "\n".join(broken(certificate))
    assert "Every record" not in text(certificate)
    assert "SKIP" in again.stdout


def test_what_stands_before_the_first_batch_was_not_read(
    on_topic: Fill, broker: RunningBroker
) -> None:
    lake = on_topic(before=100)
    certificate, again = lake.certify()
    assert "100 records before the first batch have not been read" in "\n".join(broken(certificate))
    assert "FAIL  " + str(lake.settings.topic) + ": 111 records counted" in again.stdout
    _expire(broker, str(lake.settings.topic), 100)
    certificate, again = lake.certify()
    assert broken(certificate) == ()
    assert "what was before is no longer on the topic" in text(certificate)
    assert again.returncode == 0, again.stdout + again.stderr


def test_records_that_have_left_the_topic_are_not_counted(
    on_topic: Fill, broker: RunningBroker
) -> None:
    lake = on_topic()
    _expire(broker, str(lake.settings.topic), 3)
    certificate, again = lake.certify()
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
