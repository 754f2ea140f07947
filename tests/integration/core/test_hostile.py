"""Hostile records among good ones: each has its outcome and its reason, and no batch fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.support.dataset_events import events
from tests.support.hostile_records import ACCEPTED, KINDS, REFUSED, RecordKind, render_table
from tests.support.oracle import expected_bronze
from tests.support.pipeline import TYPES, Pipeline, ProducerRecord

from headgate.core.sql.strict_json import REASONS

SEED = 2024
GOOD = 10_000
HOSTILE = 1_000
FAULTS = Path(__file__).parents[3] / "docs" / "faults.md"


def hostile_records(rng: Random) -> list[tuple[RecordKind, bytes]]:
    """A thousand that must be refused, every kind of them, and some that only look bad."""
    refused = [kind for kind in KINDS if kind.outcome == REFUSED]
    large = [kind for kind in refused if kind.is_large]
    small = [kind for kind in refused if not kind.is_large]
    many = [small[n % len(small)] for n in range(HOSTILE - len(large))]
    harmless = [kind for kind in KINDS if kind.outcome == ACCEPTED]
    again = [kind for kind in harmless if not kind.is_large]
    return [(kind, kind.make(rng)) for kind in (*large, *many, *harmless, *again)]


def test_every_hostile_record_is_accounted_for_and_every_good_one_is_a_row(
    new_pipeline: Callable[..., Pipeline],
) -> None:
    print(f"seed {SEED}")
    rng = Random(SEED)
    pipeline = new_pipeline(partitions=3, largest=12_000_000)
    hostile = hostile_records(rng)
    records = [ProducerRecord(value, b"good") for value in events(SEED, GOOD)]
    records += [ProducerRecord(value, kind.name.encode()) for kind, value in hostile]
    rng.shuffle(records)
    pipeline.produce(ProducerRecord(r.value, r.key, partition=n % 3) for n, r in enumerate(records))

    run = pipeline.process("bronze")

    on_topic = pipeline.records()
    kinds = {kind.name.encode(): kind for kind in KINDS}
    wanted = [r for r in on_topic if r.key == b"good" or kinds[r.key or b""].outcome == ACCEPTED]
    origins = {(r.partition, r.offset) for r in wanted}
    sent = {(r.partition, r.offset): r.value for r in on_topic}
    unwanted = {origin: value for origin, value in sent.items() if origin not in origins}
    letters = pipeline.dead_letters()
    found = Counter((str(letter.key or b"", "utf-8"), letter.code) for letter in letters)
    expected = Counter((kind.name, kind.code) for kind, _ in hostile if kind.outcome == REFUSED)
    assert (dict(expected - found), dict(found - expected)) == ({}, {})
    assert {letter.origin: letter.value for letter in letters} == unwanted
    assert [letter.reason for letter in letters if not letter.reason.rstrip(" :,=")] == []
    unnamed = [letter.key for letter in letters if letter.reason.endswith(": ")]
    assert unnamed == []
    assert pipeline.bronze() == expected_bronze(wanted, TYPES)
    assert pipeline.outcomes() == {"accepted": len(wanted), "refused": HOSTILE}
    assert run.restarts == 0
    assert len(pipeline.dead_letters_on_topic()) == HOSTILE


def test_every_reason_is_met_and_the_page_says_what_becomes_of_each_kind() -> None:
    assert {kind.code for kind in KINDS if kind.outcome == REFUSED} == set(REASONS)
    assert render_table() in FAULTS.read_text()
