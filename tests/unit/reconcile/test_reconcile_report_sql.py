"""The questions of the report to the table of changes, asked of DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from types import SimpleNamespace
from typing import cast

import duckdb
import pytest

from headgate.core.lake.duckdb_reader import Lake
from headgate.errors import UnavailableError
from headgate.quality.spec.reconcile_checks import Limits
from headgate.reconcile.decision_table import judge
from headgate.reconcile.report.gather import (
    IN_TIME,
    Wanted,
    _Changes,
    letters_sql,
    newest_sql,
    steps_sql,
    told_sql,
)
from headgate.reconcile.report.make import rollup_of
from headgate.reconcile.results import flags_sql, refuse_unless_reconciled
from headgate.reconcile.state import (
    SIDES,
    Reading,
    Side,
    SideState,
    State,
    merge_all,
    of_message,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
WINDOW = timedelta(minutes=10)


def at(minute: int | None) -> datetime | None:
    return None if minute is None else NOON + timedelta(minutes=minute)


@pytest.fixture
def changes() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(
            "CREATE TABLE changes (pk TEXT, dq_status TEXT, rollup TEXT, settled BOOLEAN,"
            " onprem_version TIMESTAMPTZ, cloud_version TIMESTAMPTZ, processing_time TIMESTAMPTZ)"
        )
        yield connection


def add(
    connection: duckdb.DuckDBPyConnection,
    pk: str,
    status: str,
    onprem: int | None,
    cloud: int | None,
    told: int,
    rollup: str = "",
) -> None:
    settled = status != "PENDING"
    row = [pk, status, rollup or rollup_of(status), settled, at(onprem), at(cloud), at(told)]
    connection.execute("INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def statuses(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    return dict(connection.execute(f"SELECT pk, dq_status FROM {newest_sql('changes')}").fetchall())


def story(connection: duckdb.DuckDBPyConnection) -> list[str]:
    query = f"SELECT dq_status FROM {told_sql('changes')} ORDER BY {IN_TIME}"
    return [row[0] for row in connection.execute(query).fetchall()]


def test_the_newest_versions_give_the_status(changes: duckdb.DuckDBPyConnection) -> None:
    add(changes, "a", "MISSING_CLOUD", 1, 1, 10)
    add(changes, "a", "LATE_MATCH", 1, 5, 20)
    add(changes, "b", "PENDING", None, 3, 10)
    add(changes, "b", "MISSING_ONPREM", None, 3, 30)
    assert statuses(changes) == {"a": "LATE_MATCH", "b": "MISSING_ONPREM"}


def test_what_came_late_tells_of_the_past(changes: duckdb.DuckDBPyConnection) -> None:
    add(changes, "a", "PENDING", 5, None, 10)
    add(changes, "a", "MATCH", 5, 6, 20)
    add(changes, "a", "MISSING_CLOUD", 2, 2, 30)
    assert statuses(changes) == {"a": "MATCH"}
    assert story(changes) == ["PENDING", "MATCH"]


def test_two_rows_of_one_batch_are_told_by_their_versions(
    changes: duckdb.DuckDBPyConnection,
) -> None:
    add(changes, "a", "MATCH", 5, 6, 10)
    add(changes, "a", "PENDING", 2, None, 10)
    assert statuses(changes) == {"a": "MATCH"}
    assert story(changes) == ["PENDING", "MATCH"]


def test_the_steps_add_up_to_the_keys_as_they_stand(changes: duckdb.DuckDBPyConnection) -> None:
    add(changes, "a", "PENDING", 1, None, 10)
    add(changes, "a", "MISMATCH", 1, 2, 20)
    add(changes, "b", "PENDING", None, 3, 10)
    found = changes.execute(steps_sql("changes")).fetchall()
    total: dict[str, int] = {}
    for _, status, _, n in found:
        total[status] = total.get(status, 0) + n
    assert total == {"PENDING": 1, "MISMATCH": 1}
    assert {row[0] for row in found} == {at(10), at(20)}


def test_a_step_goes_from_one_roll_up_to_another_under_a_rule_s_status(
    changes: duckdb.DuckDBPyConnection,
) -> None:
    add(changes, "a", "TOO_HEAVY", 1, None, 10, "missing")
    add(changes, "a", "TOO_HEAVY", 1, 2, 20, "valid")
    found = sorted(changes.execute(steps_sql("changes")).fetchall())
    assert found == [
        (at(10), "TOO_HEAVY", "missing", 1),
        (at(20), "TOO_HEAVY", "missing", -1),
        (at(20), "TOO_HEAVY", "valid", 1),
    ]


def test_the_value_of_one_dead_letter_does_not_speak_for_the_others(
    changes: duckdb.DuckDBPyConnection,
) -> None:
    changes.execute("CREATE TABLE letters (job TEXT, reason_code TEXT, reason TEXT)")
    for n in (17, 18):
        words = f"a field does not have its declared type; parcel_no = {n}"
        changes.execute("INSERT INTO letters VALUES ('j', 'wrong_type', ?)", [words])
    changes.execute("INSERT INTO letters VALUES ('j', 'not_json', 'it is no JSON; it ends early')")
    changes.execute("INSERT INTO letters VALUES ('other', 'not_json', 'else')")
    found = {
        code: (words, n)
        for code, words, n in changes.execute(letters_sql("letters", "j")).fetchall()
    }
    assert found == {
        "wrong_type": ("a field does not have its declared type", 2),
        "not_json": ("it is no JSON; it ends early", 1),
    }


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ((), "nothing of pair is reconciled yet"),
        (("dq.results_pair",), "nothing of pair is reconciled yet"),
        (("dq.results_pair", "dq.states_pair"), ""),
    ],
)
def test_results_of_a_quality_job_are_not_read_as_those_of_a_pair(
    tables: tuple[str, ...], words: str
) -> None:
    lake = cast("Lake", SimpleNamespace(exists=lambda name: name in tables))
    if not words:
        refuse_unless_reconciled(lake, "pair")
        return
    with pytest.raises(UnavailableError, match=words):
        refuse_unless_reconciled(lake, "pair")


def test_flags_are_those_of_the_merged_state(changes: duckdb.DuckDBPyConnection) -> None:
    """By the pure function over the same random readings, cut into batches at random."""
    rng, expected = Random(7), dict[str, tuple[bool, bool, bool]]()
    changes.execute(STATES)
    for key in range(300):
        pk = f"k{key}"
        parts = [random_state(rng, pk) for _ in range(rng.randint(1, 5))]
        kept = [merge_all(rng.sample(parts, rng.randint(1, len(parts)))) for _ in range(2)]
        for state in (*parts, *kept):
            insert_state(changes, state)
        verdict = judge(merge_all(parts), NOON, Limits(window=WINDOW))
        expected[pk] = (verdict.stale, verdict.conflict, verdict.late)
    rows = changes.execute(f"SELECT * FROM ({flags_sql('states', WINDOW)})").fetchall()
    assert {pk: flags for pk, *flags in rows} == {pk: [*f] for pk, f in expected.items()}
    assert all({flags[n] for flags in expected.values()} == {True, False} for n in range(3))


def insert_state(connection: duckdb.DuckDBPyConnection, state: State) -> None:
    row = [state.pk, *(field for side in SIDES for field in columns_of(state.side(side)))]
    connection.execute(f"INSERT INTO states VALUES ({', '.join('?' * len(row))})", row)


def test_the_report_counts_flags_of_the_states_and_not_those_last_told(
    changes: duckdb.DuckDBPyConnection,
) -> None:
    """A record that raises a flag and leaves the verdict as it is adds no row to the results."""
    for pk in ("conflict", "stale", "plain"):
        add(changes, pk, "MISSING_CLOUD", 1, None, 10)
    for flag in ("stale", "conflict", "late"):
        changes.execute(f"ALTER TABLE changes ADD COLUMN {flag} BOOLEAN DEFAULT false")
    changes.execute(STATES)
    read = [("conflict", 1, 0, "a"), ("conflict", 1, 1, "b"), ("plain", 1, 0, "a")]
    read += [("stale", 1, 0, "a"), ("stale", 0, 1, "a")]
    for pk, version, offset, hash_ in read:
        moment = NOON + timedelta(minutes=version)
        reading = Reading(moment, 0, offset, hash_, 2, None, NOON)
        insert_state(changes, of_message("onprem", pk, reading))
    tables = {"dq.results_pair": "changes", "dq.states_pair": "states"}
    lake = SimpleNamespace(
        scan_sql=tables.__getitem__, query=lambda sql: changes.execute(sql).fetchall()
    )
    judged = SimpleNamespace(table=SimpleNamespace(pk="id", sources={}))
    wanted = SimpleNamespace(table=judged, reconcile=SimpleNamespace(window=WINDOW))
    found = _Changes(cast("Lake", lake), "pair", cast("Wanted", wanted)).flags()
    assert found == {
        "an older version came after a newer one": 1,
        "one version said two things": 1,
        "the sides came further apart than the window": 0,
    }


PLACE = 'STRUCT("partition" INT, "offset" BIGINT)'
SIDE = (
    '{s} STRUCT(version TIMESTAMPTZ, "partition" INT, "offset" BIGINT),'
    " {s}_first STRUCT(read_at TIMESTAMPTZ), {s}_end " + PLACE + ","
    " {s}_greatest STRUCT(version TIMESTAMPTZ, content BIGINT),"
    " {s}_least STRUCT(version_desc BIGINT, content BIGINT)"
)
STATES = f"CREATE TABLE states (pk TEXT, {', '.join(SIDE.format(s=side) for side in SIDES)})"
# As numbers, in the order in which the state compares them.
SAID: dict[tuple[str | None, bool, int | None], int] = {("a", False, 2): -5, ("b", False, 2): 9}


def random_state(rng: Random, pk: str) -> State:
    side: Side = rng.choice(SIDES)
    version, read = at(rng.randint(0, 1)), at(rng.choice((0, 1, 30)))
    assert version is not None
    assert read is not None
    place = rng.randint(0, 1), rng.randint(0, 9)
    # One place says one thing.
    hash_ = "ab"[(place[0] + place[1]) % 2] if rng.random() < 0.9 else "a"
    return of_message(side, pk, Reading(version, *place, hash_, 2, None, read))


def columns_of(side: SideState | None) -> list[object]:
    if side is None:
        return [None] * 5
    newest, first, said = side.newest, side.first, [SAID[one] for one in side.told]
    return [
        {"version": newest.version, "partition": newest.partition, "offset": newest.offset},
        {"read_at": first.read_at},
        {"partition": side.end[0], "offset": side.end[1]},
        {"version": newest.version, "content": max(said)},
        {"version_desc": -int(newest.version.timestamp() * 1_000_000), "content": min(said)},
    ]
