"""What `feed pairs` plants: every kind of defect, the same for the same seed, each with its end."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from headgate.demo.reconcile.feed import EARLY_SENT, waves_of
from headgate.demo.reconcile.keys import COLUMNS, PHASES, Cell, Planned, hash_by
from headgate.demo.reconcile.planting import (
    ONPREM_FILE,
    Order,
    Planting,
    read_keys,
    read_sums,
    write_oracle,
)
from headgate.demo.reconcile.roles import ROLES
from headgate.hashing.contract import load_contract
from headgate.reconcile.row_diff import row_difference

ROOT = Path(__file__).parents[3]
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = START + timedelta(hours=1)


def hash_of(values: Mapping[str, Cell], version: int) -> str:
    told = {name: None if v is None else f"{v}" for name, v in values.items()}
    return hashlib.sha256(f"{version}{json.dumps(told)}".encode()).hexdigest()


@cache
def planting(keys: int = 600, seed: int = 7) -> Planting:
    return Planting(Order(keys, seed, START), hash_of)


@pytest.fixture(scope="module")
def planted() -> Planting:
    return planting()


def by_role(planted: Planting, role: str) -> list[Planned]:
    return [key for key in planted.planned if key.role == role]


def test_the_same_seed_plants_the_same(planted: Planting) -> None:
    assert Planting(Order(600, 7, START), hash_of).planned == planted.planned
    assert planting(seed=8).planned != planted.planned


def test_every_role_is_planted_and_most_keys_are_sound(planted: Planting) -> None:
    counts = planted.counts()
    assert all(counts[role.name] >= 1 for role in ROLES)
    assert sum(counts.values()) == 600
    assert counts["sound"] > 400


def test_a_larger_plant_has_as_many_of_each_role_as_its_share_says() -> None:
    counts = Counter(key.role for key in planting(keys=5_000).planned)
    assert {role.name: counts[role.name] for role in ROLES} == {
        role.name: 5 * role.per_mille for role in ROLES
    }


def test_each_planted_difference_is_of_its_kind_in_its_column() -> None:
    found = 0
    for key in planting(keys=5_000).planned:
        if key.expected.kind is None or key.plan.onprem is None:
            continue
        cloud = key.plan.writes[-1].row.values()
        told = row_difference(key.pk, key.plan.onprem.values(), cloud, COLUMNS)
        assert [(d.column, d.kind) for d in told.differences] == [
            (key.expected.column, key.expected.kind)
        ]
        found += 1
    assert found == 5 * sum(role.per_mille for role in ROLES if role.expected.kind)


def test_rows_of_keys_without_a_difference_are_equal_by_value(planted: Planting) -> None:
    for key in planted.planned:
        if key.expected.kind is None and key.plan.onprem and key.plan.writes:
            cloud = key.plan.writes[-1].row.values()
            assert not row_difference(
                key.pk, key.plan.onprem.values(), cloud, COLUMNS
            ).differences, key.role


def test_messages_are_as_the_contract_has_them(planted: Planting) -> None:
    (message,) = by_role(planted, "missing_cloud")[0].plan.messages
    body = json.loads(message.value or b"")
    assert message.key is not None
    assert body["partitionColumns"] == [{"type": "PK", "value": message.key.decode()}]
    assert body["event_ts"].endswith("Z")
    assert len(body["hash_onprem"]) == 64
    assert body["hash_version"] == 2


def test_some_messages_have_only_the_fields_of_the_documents(planted: Planting) -> None:
    bodies = [json.loads(key.plan.messages[0].value or b"") for key in by_role(planted, "sound")]
    fields = {tuple(body) for body in bodies}
    assert ("event_id", "hash_onprem", "partitionColumns", "event_ts") in fields


def test_later_waves_carry_versions_of_their_own_time(planted: Planting) -> None:
    newest_event = max(row.last_updated for row in planted.onprem())
    for phase in PHASES[2:]:
        rows = planted.writes(phase, LATER)
        assert rows
        assert all(newest_event < row.last_updated <= LATER for row in rows)


def test_what_comes_early_is_older_than_all_the_rest(planted: Planting) -> None:
    early = [row.last_updated for row in planted.writes("early", LATER)]
    first = [row.last_updated for row in planted.writes("first", LATER)]
    assert early
    assert max(early) < min(first)


def test_what_is_refused_names_its_reason_and_has_no_status(planted: Planting) -> None:
    letters = {key.expected.letter for key in planted.planned if key.expected.status is None}
    assert letters == {"dq_missing_pk", "dq_unknown_action", "not_json", "not_utf8"}
    assert all(key.plan.onprem is None for key in planted.planned if key.expected.letter)


def test_what_was_planted_is_read_back_from_its_files(tmp_path: Path, planted: Planting) -> None:
    sums = write_oracle(tmp_path, planted)
    keys = read_keys(tmp_path)
    assert read_sums(tmp_path) == sums
    assert {key.pk: key.expected for key in keys} == {
        key.pk: key.expected for key in planted.planned
    }
    assert sum(sums.statuses.values()) + sum(sums.letters.values()) == sums.keys
    assert pq.read_table(tmp_path / ONPREM_FILE).num_rows == len(planted.onprem())


def test_by_the_shipped_contract_the_newest_hash_differs_where_a_mismatch_is_expected() -> None:
    contract = load_contract(ROOT / "contracts" / "business_table.hash.yml").value
    hashed = hash_by(contract)
    seen: Counter[str | None] = Counter()
    for key in Planting(Order(5_000, 3, START), hashed).planned:
        if not key.plan.onprem or not key.plan.writes or not key.plan.messages:
            continue
        said = [json.loads(m.value or b"") for m in key.plan.messages]
        newest = max(said, key=lambda body: body["event_ts"])
        last = [body for body in said if body["event_ts"] == newest["event_ts"]][-1]
        cloud = hashed(key.plan.writes[-1].row.values(), 2)
        status = key.expected.status
        assert (last.get("hash_onprem") == cloud) == (status in ("MATCH", "LATE_MATCH")), key
        seen[status] += 1
    compared = {"MATCH", "LATE_MATCH", "MISMATCH", "LATE_MISMATCH"}
    assert set(seen) == {*compared, "VERSION_SKEW", "INVALID_HASH"}


def test_the_parts_of_a_wave_are_the_wave_and_what_is_followed_by_more_comes_last() -> None:
    large = planting(keys=5_000)
    for phase in PHASES:
        parts = list(large.parts(phase))
        keys = [key for part in parts for key in part]
        assert sorted(
            m.value or b"" for part in parts for m in large.messages(phase, part)
        ) == sorted(m.value or b"" for m in large.messages(phase))
        assert len({key.pk for key in keys}) == len(keys)
    first = [key for part in large.parts("first") for key in part]
    roles = [key.role for key in first]
    assert "soon" not in roles[: len(roles) // 2]
    assert roles[-1] in ("soon", "late_row", "late_update", "late_difference")


def test_asking_what_would_be_sent_forgets_nothing_of_what_was(tmp_path: Path) -> None:
    assert waves_of("first", tmp_path) == ("early", "first")
    (tmp_path / EARLY_SENT).touch()
    assert [waves_of("first", tmp_path) for _ in range(2)] == [("first",), ("first",)]
