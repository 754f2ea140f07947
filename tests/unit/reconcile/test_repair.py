"""Repairs: what is planned, what is left alone, and that a cut-off one goes on where it stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.errors import ConflictError, UsageError
from headgate.reconcile.cli.repair import report_text
from headgate.reconcile.repair.plan import (
    CLOUD_NEWER,
    DELETED_SINCE,
    GONE,
    NO_VERSION,
    NOT_BROKEN,
    REPAIRABLE,
    SOURCE_BEHIND,
    SOURCE_MOVED,
    STILL_THERE,
    Broken,
    Followed,
    Item,
    Outcome,
    RepairReport,
    newer,
    repair_plan,
)
from headgate.reconcile.repair.run import (
    Edges,
    Judged,
    RepairJournal,
    need_open_journal,
    new_journal,
    open_journal,
    read_journal,
    run_repair,
)
from headgate.reconcile.repair.targets import Announce, micros
from headgate.reconcile.rows import WholeRow

AT = datetime(2024, 1, 1, 10, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def row(version: datetime | None = AT, written: datetime | None = None) -> WholeRow:
    return WholeRow({"col1": "x"}, version, written)


def broken(
    pk: str, status: str = "MISMATCH", version: datetime = AT, *, deleted: bool = False
) -> Broken:
    return Broken(pk, status, version, deleted)


def planned(each: Broken, source: WholeRow | None, cloud: WholeRow | None = None) -> Item | str:
    made = repair_plan(
        "t", "x", [each], {each.pk: source} if source else {}, {each.pk: cloud} if cloud else {}
    )
    assert len(made.items) + len(made.skipped) == 1
    return made.items[0] if made.items else made.skipped[0].why


def test_a_wrong_or_missing_row_is_sent_at_the_sources_version() -> None:
    found = planned(broken("1"), row(AT + timedelta(microseconds=400)), row(AT - SECOND))
    assert found == Item("1", "MISMATCH", "upsert", AT + timedelta(microseconds=400))
    assert planned(broken("1", "MISSING_CLOUD"), row()) == Item("1", "MISSING_CLOUD", "upsert", AT)


def test_a_zombie_is_deleted_where_on_prem_deleted_it_and_written_where_the_cloud_did() -> None:
    gone = broken("1", "ZOMBIE", deleted=True)
    assert planned(gone, None, row(AT - SECOND)) == Item("1", "ZOMBIE", "delete", AT)
    assert planned(broken("1", "ZOMBIE"), row()) == Item("1", "ZOMBIE", "upsert", AT)


def test_a_row_that_is_alive_on_prem_is_not_deleted_where_its_table_lags_behind() -> None:
    alive = broken("1", "ZOMBIE")
    assert planned(alive, None, row()) == GONE
    assert planned(alive, row(AT - SECOND), row()) == SOURCE_BEHIND


def test_what_on_prem_deleted_is_not_written_anew_from_a_table_that_lags_behind() -> None:
    gone = broken("1", "ZOMBIE", deleted=True)
    assert planned(gone, row(None), row()) == STILL_THERE
    assert planned(gone, row(AT - SECOND), row()) == STILL_THERE
    assert planned(gone, row(AT), row()) == STILL_THERE
    assert planned(gone, row(AT + SECOND), row()) == SOURCE_MOVED


@pytest.mark.parametrize(
    ("each", "source", "cloud", "why"),
    [
        (broken("1"), row(), row(AT + SECOND), CLOUD_NEWER),
        (broken("1"), row(), row(None, AT + SECOND), CLOUD_NEWER),
        (broken("1", "ZOMBIE", deleted=True), None, row(AT + SECOND), CLOUD_NEWER),
        (broken("1", "MISMATCH", deleted=True), None, row(), GONE),
        (broken("1"), None, None, GONE),
        (broken("1"), row(AT + SECOND), None, SOURCE_MOVED),
        (broken("1"), row(AT - SECOND), None, SOURCE_BEHIND),
        (broken("1", "MATCH"), row(), None, NOT_BROKEN),
        (broken("1", "PENDING"), row(), None, NOT_BROKEN),
        (broken("1", "VERSION_SKEW"), row(), None, NOT_BROKEN),
    ],
)
def test_what_must_not_be_touched_is_left_alone_and_said(
    each: Broken, source: WholeRow | None, cloud: WholeRow | None, why: str
) -> None:
    assert planned(each, source, cloud) == why


MOMENTS = st.integers(0, 5).map(lambda n: AT + n * SECOND)
SIDES = st.one_of(st.none(), MOMENTS.map(row))


KEYS = st.tuples(MOMENTS, SIDES, SIDES, st.booleans())


@given(st.dictionaries(st.text("ab12", min_size=1), KEYS, max_size=8))
@settings(max_examples=200, deadline=None)
def test_no_plan_holds_a_key_whose_cloud_row_is_newer_and_its_order_is_by_version(
    keys: dict[str, tuple[datetime, WholeRow | None, WholeRow | None, bool]],
) -> None:
    every = [
        Broken(pk, REPAIRABLE[at % 4], version, deleted)
        for at, (pk, (version, _, _, deleted)) in enumerate(keys.items())
    ]
    source = {pk: found for pk, (_, found, _, _) in keys.items() if found}
    cloud = {pk: found for pk, (_, _, found, _) in keys.items() if found}
    made = repair_plan("t", "x", [*every, *every], source, cloud)
    assert sorted(pk.pk for pk in (*made.items, *made.skipped)) == sorted(keys)
    assert not [item for item in made.items if newer(cloud.get(item.pk), item.version)]
    assert all(keys[item.pk][3] == (item.action == "delete") for item in made.items)
    judged = {each.pk: each.version for each in every}
    order = [(judged[item.pk], item.pk) for item in made.items]
    assert order == sorted(order)


class Store:
    """Rows in memory, which tests may move."""

    def __init__(self, rows: dict[str, WholeRow]) -> None:
        self.rows = rows

    def read(self, keys: Sequence[str]) -> dict[str, WholeRow]:
        return {key: self.rows[key] for key in keys if key in self.rows}


class Sent:
    """A target that keeps what it got, and may die after so many keys."""

    def __init__(self, dies_after: int | None = None) -> None:
        self.keys: list[str] = []
        self.dies_after = dies_after

    def send(
        self,
        items: Sequence[Item],
        source: Mapping[str, WholeRow],
        cloud: Mapping[str, WholeRow],
        announced: Mapping[str, int],
        announce: Announce,
    ) -> list[Outcome]:
        announce({item.pk: micros(item.version) for item in items})
        for item in items:
            if self.dies_after is not None and len(self.keys) >= self.dies_after:
                raise KeyboardInterrupt
            self.keys.append(item.pk)
        return [Outcome(item.pk, "applied") for item in items]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Seen:
    def __init__(self) -> None:
        self.done: list[int] = []

    def update(self, done: int) -> None:
        self.done.append(done)


def items(count: int) -> list[Item]:
    return [Item(str(at), "MISMATCH", "upsert", AT) for at in range(count)]


def edges(
    target: Sent,
    source: dict[str, WholeRow],
    cloud: dict[str, WholeRow] | None = None,
    verdicts: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    stopped: Callable[[], bool] = lambda: False,
    deleted: Sequence[str] = (),
) -> Edges:
    ticking = clock or Clock()
    known = verdicts or {}
    return Edges(
        source=Store(source),
        cloud=Store(cloud or {}),
        target=target,
        verdicts=lambda keys: {
            key: Judged(known.get(key, "MISMATCH"), key in deleted) for key in keys
        },
        stopped=stopped,
        clock=ticking,
        sleep=ticking.sleep,
    )


def journal(home: Path, count: int) -> RepairJournal:
    return new_journal(home, "t", "x", items(count), AT)


def test_every_key_is_sent_once_in_order_and_the_journal_says_so(tmp_path: Path) -> None:
    target, seen = Sent(), Seen()
    rows = {str(at): row() for at in range(250)}
    found = run_repair(journal(tmp_path, 250), edges(target, rows), 1_000, seen)
    assert target.keys == [str(at) for at in range(250)]
    assert (found.applied, found.skipped, found.left) == (250, {}, 0)
    assert seen.done == [100, 200, 250]
    assert read_journal(Path(found.journal)).closed
    assert open_journal(tmp_path, "t") is None


def test_what_moved_since_the_plan_is_skipped_and_said(tmp_path: Path) -> None:
    target = Sent()
    source = {"0": row(), "1": row(AT + SECOND), "3": row(), "4": row()}
    found = run_repair(
        journal(tmp_path, 5),
        edges(target, source, {"3": row(AT + SECOND)}, {"4": "MATCH"}),
        1_000,
        Seen(),
    )
    assert target.keys == ["0"]
    assert found.skipped == {
        SOURCE_MOVED: 1,
        GONE: 1,
        CLOUD_NEWER: 1,
        "its verdict is now MATCH": 1,
    }


def test_what_on_prem_deleted_or_has_again_since_the_plan_is_left_alone(tmp_path: Path) -> None:
    target = Sent()
    plan = [Item("0", "ZOMBIE", "upsert", AT), Item("1", "ZOMBIE", "delete", AT)]
    begun = new_journal(tmp_path, "t", "x", plan, AT)
    zombies = dict.fromkeys("01", "ZOMBIE")
    source, cloud = {"0": row()}, {"1": row(AT - SECOND)}
    moved = edges(target, source, cloud, zombies, deleted=["0"])
    assert run_repair(begun, moved, 1_000, Seen()).skipped == {DELETED_SINCE: 1, SOURCE_MOVED: 1}
    assert target.keys == []


def test_a_delete_that_a_kill_cut_off_is_not_finished_once_on_prem_has_the_row_again(
    tmp_path: Path,
) -> None:
    target = Sent()
    begun = new_journal(tmp_path, "t", "x", [Item("0", "ZOMBIE", "delete", AT)], AT)
    begun.announce({"0": micros(AT)})
    found = run_repair(begun, edges(target, {}, {}, {"0": "ZOMBIE"}), 1_000, Seen())
    assert (target.keys, found.skipped) == ([], {SOURCE_MOVED: 1})


def test_a_killed_repair_sends_the_rest_when_resumed(tmp_path: Path) -> None:
    rows = {str(at): row() for at in range(250)}
    first = Sent(dies_after=130)
    with pytest.raises(KeyboardInterrupt):
        run_repair(journal(tmp_path, 250), edges(first, rows), 1_000, Seen())
    left = need_open_journal(tmp_path, "t")
    assert [item.pk for item in left.left] == [str(at) for at in range(100, 250)]
    assert set(left.announced) == {str(at) for at in range(200)}
    again = Sent()
    # Their verdicts have moved on by now, but what was announced is finished all the same.
    verdicts = {str(at): "MATCH" for at in range(100, 130)}
    found = run_repair(left, edges(again, rows, {}, verdicts), 1_000, Seen())
    assert (found.applied, found.left) == (250, 0)
    assert {*first.keys, *again.keys} == set(rows)
    assert not set(again.keys) & {str(at) for at in range(100)}


def test_a_line_that_a_kill_cut_off_is_no_line(tmp_path: Path) -> None:
    begun = journal(tmp_path, 3)
    begun.settle([Outcome("0", "applied")])
    with begun.file.open("ab") as out:
        out.write(b'{"outcome": {"pk": "1", "resu')
    found = need_open_journal(tmp_path, "t")
    assert [item.pk for item in found.left] == ["1", "2"]
    with found.held():
        found.settle([Outcome("1", "applied")])
    assert [item.pk for item in need_open_journal(tmp_path, "t").left] == ["2"]


def test_reading_a_journal_writes_nothing_and_two_cannot_go_on_with_it(tmp_path: Path) -> None:
    begun = journal(tmp_path, 3)
    with begun.file.open("ab") as out:
        out.write(b'{"announced": {"0": 17')
    before = begun.file.read_bytes()
    assert need_open_journal(tmp_path, "t").announced == {}
    assert begun.file.read_bytes() == before
    with begun.held():
        assert begun.file.read_bytes() == before[: before.rfind(b"\n") + 1]
        with pytest.raises(ConflictError), need_open_journal(tmp_path, "t").held():
            pass
    with need_open_journal(tmp_path, "t").held():
        pass


def test_a_second_repair_of_the_table_waits_for_the_first(tmp_path: Path) -> None:
    journal(tmp_path, 3)
    with pytest.raises(ConflictError):
        new_journal(tmp_path, "t", "x", items(1), AT + SECOND)
    with pytest.raises(UsageError):
        need_open_journal(tmp_path, "other")


def test_a_stop_is_heard_between_batches_and_the_rest_is_kept(tmp_path: Path) -> None:
    target, rows = Sent(), {str(at): row() for at in range(250)}
    found = run_repair(
        journal(tmp_path, 250),
        edges(target, rows, stopped=lambda: len(target.keys) >= 100),
        1_000,
        Seen(),
    )
    assert (found.applied, found.left, found.whole) == (100, 150, False)
    assert need_open_journal(tmp_path, "t").name == found.repair


@pytest.mark.parametrize("per_second", [1, 20, 50, 400])
def test_no_second_sees_more_than_it_may(tmp_path: Path, per_second: int) -> None:
    clock, rows = Clock(), {str(at): row() for at in range(100)}
    run_repair(journal(tmp_path, 100), edges(Sent(), rows, clock=clock), per_second, Seen())
    last = per_second if per_second < 100 else 100
    assert clock.now == pytest.approx((100 - last) / per_second)


def test_a_row_whose_age_nobody_knows_is_never_sent(tmp_path: Path) -> None:
    assert planned(broken("1"), row(None)) == NO_VERSION
    target = Sent()
    found = run_repair(journal(tmp_path, 1), edges(target, {"0": row(None)}), 1_000, Seen())
    assert (target.keys, found.skipped) == ([], {NO_VERSION: 1})


def test_what_was_cut_off_is_not_finished_with_a_row_that_is_older_by_now(tmp_path: Path) -> None:
    target, begun = Sent(), journal(tmp_path, 2)
    begun.announce({"0": micros(AT), "1": micros(AT)})
    source = {"0": row(AT - SECOND), "1": row()}
    found = run_repair(begun, edges(target, source), 1_000, Seen())
    assert (target.keys, found.skipped) == (["1"], {SOURCE_BEHIND: 1})


def test_a_repair_that_was_waited_for_says_how_its_keys_stand_and_which_are_still_wrong() -> None:
    followed = Followed(12.5, {"MATCH": 1_200, "ZOMBIE": 1}, {"a\x1b[2J": "ZOMBIE"})
    told = report_text(RepairReport("t", "x", "r", 1_201, {}, 0, "j", followed))
    assert "  12.5 s later: 1,200 MATCH, 1 ZOMBIE" in told.splitlines()
    assert "still ZOMBIE" in told
    assert "\x1b" not in told
