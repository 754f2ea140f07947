"""The oracle of the fault plays: what is planted, what must come of it, and what counts as wrong."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from bench.faults.reconcile.keys import (
    DELETE_EVENT,
    MATCH,
    MISMATCH,
    MISSING_CLOUD,
    MISSING_ONPREM,
    ROLE_CYCLE,
    ROLES,
    ZOMBIE,
    FinalVerdict,
    PlantedKey,
    compare_keys,
)
from bench.faults.reconcile.scenario import HOLDS, PairFaultReport, ReportedOutage, render_text

AT = datetime(2026, 1, 1, 12, 0, 0, 7000, tzinfo=UTC)


def pair(role: str, polled: bool = True) -> PlantedKey:
    return next(p for n in range(ROLE_CYCLE) if (p := PlantedKey(n, AT, polled)).role == role)


def test_every_role_is_planted_and_most_keys_are_sound():
    roles = [PlantedKey(n, AT, True).role for n in range(ROLE_CYCLE)]
    assert {*roles} == {*ROLES, MATCH}
    assert roles.count(MATCH) == ROLE_CYCLE - len(ROLES)


def test_without_connect_no_key_is_known_to_the_cloud_alone():
    assert MISSING_ONPREM not in {PlantedKey(n, AT, False).role for n in range(ROLE_CYCLE)}
    assert pair(MISSING_ONPREM).message(str) is None


@pytest.mark.parametrize(
    ("role", "row", "action"),
    [
        (MATCH, True, "UPSERT"),
        (MISMATCH, True, "UPSERT"),
        (MISSING_CLOUD, False, "UPSERT"),
        (DELETE_EVENT, False, "DELETE"),
        (ZOMBIE, True, "DELETE"),
    ],
)
def test_a_role_decides_what_each_side_has(role, row, action):
    found = pair(role)
    assert (found.row() is not None) == row
    message = json.loads(found.message(lambda values: "h") or b"")
    assert message["action"] == action
    assert message["event_ts"] == "2026-01-01T12:00:00.007Z"
    assert message["partitionColumns"] == [{"type": "PK", "value": found.pk}]


def test_a_row_differs_only_where_that_is_its_role():
    values = [*pair(MATCH).values().values()]
    row = pair(MATCH).row()
    assert row is not None
    assert [*row[1:-1]] == values
    other = pair(MISMATCH)
    row = other.row()
    assert row is not None
    assert [*row[1:-1]] != [*other.values().values()]


def test_what_is_deleted_on_prem_is_older_in_the_cloud():
    row = pair(ZOMBIE).row()
    assert row is not None
    assert row[-1] == AT - timedelta(seconds=1)


def settled(pairs: list[PlantedKey], **changes: str) -> list[FinalVerdict]:
    return [final(p.pk, changes.get(p.pk, p.role)) for p in pairs]


def final(pk: str, status: str, settled: bool = True) -> FinalVerdict:
    return FinalVerdict(pk, status, settled, status)


def test_all_as_planted_holds_and_late_ones_are_counted():
    pairs = [PlantedKey(n, AT, True) for n in range(40)]
    late = {pairs[5].pk: "LATE_MATCH", pairs[0].pk: "LATE_MISMATCH"}
    found = compare_keys(pairs, settled(pairs, **late), {"MATCH": 30})
    assert found.holds
    assert found.late == 2
    assert found.planted == found.found


def test_a_lost_a_doubled_a_wrong_and_an_open_key_are_each_named():
    pairs = [PlantedKey(n, AT, True) for n in range(20)]
    finals = settled(pairs, **{pairs[6].pk: MISMATCH})
    finals = [f for f in finals if f.pk != pairs[7].pk]
    finals += [final(pairs[8].pk, MATCH), final("stranger", MATCH)]
    finals = [final(f.pk, "PENDING", False) if f.pk == pairs[9].pk else f for f in finals]
    found = compare_keys(pairs, finals, {})
    assert not found.holds
    assert {*found.wrong} == {
        "k0000006, planted as MATCH, is MISMATCH",
        "k0000007, planted as MATCH, stands there 0 times",
        "k0000008, planted as MATCH, stands there 2 times",
        "k0000009, planted as MATCH, is still PENDING",
        "stranger was never planted",
    }


def test_a_key_whose_history_ends_otherwise_is_named():
    pairs = [PlantedKey(n, AT, True) for n in range(20)]
    finals = [
        FinalVerdict(f.pk, f.status, True, f.reported if f.pk != pairs[6].pk else "PENDING")
        for f in settled(pairs)
    ]
    assert compare_keys(pairs, finals, {}).wrong == (
        "k0000006 is MATCH, but PENDING was told of it last",
    )


def test_a_gap_that_nobody_told_of_is_a_fault():
    pairs = [PlantedKey(n, AT, True) for n in range(20)]
    good = compare_keys(pairs, settled(pairs), {})
    told = ReportedOutage("kafka", 5.0, {"job": ("the broker is away",), "hasher": ()}, 1.0)
    silent = ReportedOutage("cassandra", 60.0, {"hasher": (), "connect": ()}, 1.0)
    report = PairFaultReport(20, 19, 1.0, 1.0, 0, (told,), good, HOLDS)
    assert report.faults == ()
    report = PairFaultReport(20, 19, 1.0, 1.0, 0, (told, silent), good, HOLDS)
    first, second, *_ = render_text(report).splitlines()
    assert first == "kafka      away 5 s, work went on 1 s later; told by job"
    assert second.endswith("told by nobody")
    assert report.faults == ("nobody told that cassandra was away",)
