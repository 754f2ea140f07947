"""Repairs by themselves: outages are waited out, and no key is given up that may still be mended."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from headgate.cli.main import cli
from headgate.errors import ConflictError, OperationError, SettingsError, UnavailableError
from headgate.reconcile.repair.automatic import Repaired, Rounds, Tried, run_automatic
from headgate.reconcile.repair.plan import (
    GONE,
    SOURCE_BEHIND,
    Broken,
    Outcome,
    RepairPlan,
    RepairReport,
    repair_plan,
)
from headgate.reconcile.repair.run import Edges, Judged, new_journal, open_journal, run_repair
from headgate.reconcile.rows import WholeRow

ROOT = Path(__file__).parents[3]
AT = datetime(2024, 1, 1, 10, tzinfo=UTC)
SECOND = timedelta(seconds=1)
AWAY = UnavailableError("Cassandra at x is away", why="NoHostAvailable")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def broken(
    pk: str, status: str = "MISMATCH", version: datetime = AT, *, deleted: bool = False
) -> Broken:
    return Broken(pk, status, version, deleted)


def repaired(sent: Sequence[str] = (), left_alone: Sequence[str] = (), left: int = 0) -> Repaired:
    report = RepairReport("t", "x", "r", len(sent), {}, left, "j")
    return Repaired(report, set(sent), set(left_alone))


@dataclass
class InMemoryRepair:
    """Work in memory: every key found is sent, unless the test has something else happen first."""

    clock: Clock
    every: Sequence[Broken] = (broken("1"),)
    alone: frozenset[str] = frozenset()
    # What comes instead of each call, in order; nothing means that it works.
    trouble: Iterator[Exception | None] = field(default_factory=lambda: iter(()))
    # What was left open, each time that it is asked for.
    left: Iterator[Repaired] = field(default_factory=lambda: iter(()))
    sent: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    calls: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    said: list[str] = field(default_factory=list[str])
    told: list[RepairReport] = field(default_factory=list[RepairReport])

    def find(self, most: int) -> Sequence[Broken]:
        self._call("find")
        return self.every[:most]

    def repair(self, broken: Sequence[Broken]) -> Repaired:
        self._call("repair")
        keys = [each.pk for each in broken]
        self.sent += [(self.clock.now, key) for key in keys]
        return repaired(
            [key for key in keys if key not in self.alone],
            [key for key in keys if key in self.alone],
        )

    def finish(self) -> Repaired | None:
        self._call("finish")
        return next(self.left, None)

    def let_go(self) -> None:
        self.calls.append((self.clock.now, "let go"))

    def tell(self, report: RepairReport) -> None:
        self.told.append(report)

    def say(self, words: str) -> None:
        self.said.append(words)

    def _call(self, name: str) -> None:
        self.calls.append((self.clock.now, name))
        if error := next(self.trouble, None):
            raise error


def play(
    work: InMemoryRepair,
    rounds: Rounds,
    stopped: Callable[[], bool] = lambda: False,
    tried: Tried | None = None,
) -> int:
    return run_automatic(
        rounds, work, stopped, tried=tried, clock=work.clock, sleep=work.clock.sleep
    )


def times(work: InMemoryRepair, name: str) -> list[float]:
    return [round(at, 3) for at, called in work.calls if called == name]


def test_a_key_is_sent_a_few_times_with_pauses_between() -> None:
    tried, one = Tried(patience=60, tries=2), [broken("1")]
    assert tried.due(one, 0) == one
    tried.note(one, repaired(["1"]), 0)
    assert tried.due(one, 59) == []
    assert tried.due(one, 60) == one
    tried.note(one, repaired(["1"]), 60)
    assert tried.due(one, 100_000) == []


def test_another_version_or_verdict_of_a_key_that_was_given_up_is_due_at_once() -> None:
    tried, one = Tried(tries=1), [broken("1")]
    tried.note(one, repaired(["1"]), 0)
    assert tried.due(one, 1e9) == []
    for other in (
        broken("1", version=AT + SECOND),
        broken("1", "ZOMBIE"),
        broken("1", deleted=True),
    ):
        assert tried.due([other], 1) == [other]
    tried.forget([], asked=10)
    assert tried.due(one, 1) == one, "it was valid in between"


def test_what_was_left_alone_is_looked_at_again_ever_more_rarely_and_never_given_up() -> None:
    clock = Clock()
    work = InMemoryRepair(clock, alone=frozenset({"1"}))
    play(work, Rounds(every=60), lambda: clock.now > 6 * 3_600)
    at = [moment / 60 for moment, _ in work.sent]
    gaps = [round(later - sooner) for sooner, later in itertools.pairwise(at)]
    assert gaps[:4] == [10, 20, 40, 60]
    assert set(gaps[4:]) == {60}
    work.alone = frozenset()
    play(work, Rounds(every=1, most=1))
    assert work.told[-1].applied == 1


def test_keys_that_cannot_be_repaired_stand_in_nobodys_way() -> None:
    every = [broken("old 1"), broken("old 2"), broken("new", version=AT + SECOND)]
    work = InMemoryRepair(Clock(), every, alone=frozenset({"old 1", "old 2"}))
    play(work, Rounds(every=1, most=8, limit=2))
    assert [key for _, key in work.sent] == ["old 1", "old 2", "new"]
    tried = Tried(patience=1)
    tried.note(every[:2], repaired([], ["old 1", "old 2"]), 0)
    assert [each.pk for each in tried.due(every, 100)] == ["new", "old 1", "old 2"]


def test_what_is_no_longer_broken_is_forgotten() -> None:
    tried = Tried()
    noted = [broken("1"), broken("2"), broken("3", version=AT + 2 * SECOND)]
    tried.note(noted, repaired(["1", "2", "3"]), 0)
    tried.forget([broken("2"), broken("9", version=AT + SECOND)], asked=2)
    assert len(tried) == 2, "of a list that was cut, what stands behind its end is not known"
    tried.forget([broken("2")], asked=5)
    assert len(tried) == 1


def test_rounds_go_on_until_they_are_enough_or_stopped() -> None:
    clock = Clock()
    work = InMemoryRepair(clock, [broken(str(at)) for at in range(3)])
    assert play(work, Rounds(every=700, most=2, limit=2)) == 4
    assert clock.now == pytest.approx(700)
    assert play(work, Rounds(every=1), lambda: clock.now > 705) == 3
    assert [found.applied for found in work.told] == [2, 2, 3]


def test_an_outage_is_said_once_and_tried_ever_more_rarely_until_it_is_over() -> None:
    clock = Clock()
    work = InMemoryRepair(clock, trouble=iter([None, *[AWAY] * 8]))
    assert play(work, Rounds(every=10), lambda: bool(work.sent)) == 1
    assert times(work, "let go") == [0, 2, 6, 14, 30, 62, 122, 182]
    assert [words for words in work.said if "away" in words] == [work.said[0]]
    assert "Cassandra at x is away (NoHostAvailable)" in work.said[0]
    assert "in 2 s" in work.said[0]
    assert work.said[1:] == ["all answer again: going on"]


def test_what_an_outage_cut_off_is_finished_before_anything_else_and_counts_as_sent() -> None:
    clock = Clock()
    # On-prem had one of the two rows, and Cassandra went away before it was written.
    work = InMemoryRepair(
        clock, [broken("1"), broken("2")], left=iter([repaired(), repaired(["1"])])
    )
    work.trouble, tried = iter([None, None, AWAY]), Tried()
    assert play(work, Rounds(every=1, most=2), tried=tried) == 2
    assert [key for _, key in work.sent] == ["2"], "the other one was sent by what was left open"
    assert len(tried) == 2


def test_something_else_than_an_outage_ends_it() -> None:
    with pytest.raises(OperationError):
        play(InMemoryRepair(Clock(), trouble=iter([OperationError("no")])), Rounds(every=1))


def test_a_person_who_repairs_the_table_meanwhile_is_waited_for() -> None:
    busy = ConflictError("another process is repairing t")
    work = InMemoryRepair(Clock(), trouble=iter([None, None, busy, busy]))
    assert play(work, Rounds(every=1), lambda: bool(work.sent)) == 1
    assert [called for _, called in work.calls if called != "let go"][:5] == [
        "finish",
        "find",
        "repair",
        "finish",
        "finish",
    ]


def test_the_last_of_a_number_of_rounds_has_no_later_and_fails() -> None:
    work = InMemoryRepair(Clock(), trouble=iter([AWAY, AWAY]))
    with pytest.raises(UnavailableError):
        play(work, Rounds(every=1, most=2))
    assert times(work, "finish") == [0, 2]


def test_a_stop_is_heard_while_something_is_away() -> None:
    clock = Clock()
    work = InMemoryRepair(clock, trouble=iter([AWAY] * 100))
    assert play(work, Rounds(every=1), lambda: clock.now >= 20) == 0
    assert clock.now < 21


class Rows:
    def __init__(self, rows: dict[str, WholeRow]) -> None:
        self.rows = rows

    def read(self, keys: Sequence[str]) -> dict[str, WholeRow]:
        return {key: self.rows[key] for key in keys if key in self.rows}


@dataclass
class Shop:
    """Repairs of one table as the command opens them; `trouble` comes at each sending, in order."""

    settings: Any
    table: Any
    onprem: Rows
    trouble: Iterator[Exception | None]
    opened: int = 0
    refusals: Iterator[Exception | None] = field(default_factory=lambda: iter(()))
    written: list[str] = field(default_factory=list[str])
    statuses: tuple[str, ...] = ("MISMATCH",)

    @property
    def declared(self) -> Any:
        return SimpleNamespace(automatic=self.statuses, per_second=1_000)

    @contextmanager
    def open(self, settings: Any, table: Any) -> Iterator[Shop]:
        self.settings, self.table, self.opened = settings, table, self.opened + 1
        if self.opened > 1 and (error := next(self.refusals, None)):
            raise error
        yield self

    def broken(self, statuses: Sequence[str], *, limit: int) -> list[Broken]:
        assert tuple(statuses) == self.statuses
        wrong = [pk for pk in ("a", "b", "late") if pk not in self.written]
        return [broken(pk) for pk in wrong][:limit]

    def plan(self, found: Sequence[Broken]) -> RepairPlan:
        source = self.onprem.read([each.pk for each in found])
        return repair_plan(self.table.name, "x", found, source, {})

    def begin(self, plan: RepairPlan, now: datetime) -> Any:
        return new_journal(self.settings.home, plan.table, plan.target, plan.items, now)

    def carry_out(self, journal: Any, pace: int, watcher: Any, stopped: Any) -> RepairReport:
        verdicts = lambda keys: {key: Judged("MISMATCH", False) for key in keys}  # noqa: E731
        edges = Edges(self.onprem, None, self, verdicts, stopped=stopped)  # type: ignore[arg-type]
        return run_repair(journal, edges, pace, watcher)

    def send(self, items: Any, _source: Any, _cloud: Any, _done: Any, announce: Any) -> Any:
        announce({item.pk: 1 for item in items})
        if error := next(self.trouble, None):
            raise error
        self.written += [item.pk for item in items]
        return [Outcome(item.pk, "applied") for item in items]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    for name in ("rules", "contracts", "env"):
        (tmp_path / name).mkdir()
    for file in ("rules/topic1.yml", "contracts/business_table.hash.yml", "env/embedded.env"):
        (tmp_path / file).write_bytes((ROOT / file).read_bytes())
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADGATE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("headgate.reconcile.repair.automatic.FIRST_PAUSE", 0.01)
    rows = {pk: WholeRow({}, AT) for pk in "ab"} | {"late": WholeRow({}, AT - SECOND)}
    made = Shop(None, None, Rows(rows), iter(()))
    monkeypatch.setattr("headgate.reconcile.repair.table_repairs.open_repairs", made.open)
    return made


def automatic(*words: str) -> Any:
    told = ["-o", "json", "reconcile", "repair", "business", "--automatic", "--every", "0.1"]
    return CliRunner().invoke(cli, [*told, *words])


def test_the_command_opens_all_anew_after_an_outage_and_ends_what_it_had_begun(shop: Shop) -> None:
    shop.trouble = iter([AWAY, AWAY])
    shop.refusals = iter([AWAY, SettingsError("no address of Cassandra can be found")])
    done = automatic("--rounds", "6")
    assert done.exit_code == 0, done.output
    assert orjson.loads(done.stdout)["applied"] == 2
    assert sorted(shop.written) == ["a", "b"]
    assert open_journal(shop.settings.home, "business") is None
    assert shop.opened == 5
    assert done.stderr.count("Cassandra at x is away") == 2, "once for each time that it is new"
    assert "all answer again" in done.stderr


def test_a_row_that_comes_later_is_sent_later(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    behind = shop.plan
    looks: list[dict[str, str]] = []

    def plan(found: Sequence[Broken]) -> RepairPlan:
        made = behind(found)
        looks.append({each.pk: each.why for each in made.skipped})
        if len(looks) == 5:
            shop.onprem.rows["late"] = WholeRow({}, AT)
        elif len(looks) == 3:
            del shop.onprem.rows["late"]
        return made

    monkeypatch.setattr(shop, "plan", plan)
    monkeypatch.setattr(
        "headgate.reconcile.repair.automatic.Tried", lambda: Tried(patience=0.0, longest=0.0)
    )
    done = automatic("--rounds", "6")
    assert done.exit_code == 0, done.output
    assert [look.get("late") for look in looks] == [*[SOURCE_BEHIND] * 3, GONE, GONE, None]
    assert shop.written == ["a", "b", "late"]


def test_a_stop_amid_an_outage_leaves_a_journal_that_can_be_resumed(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[bool] = []

    @contextmanager
    def interruption() -> Iterator[Callable[[], bool]]:
        yield lambda: bool(ended)

    def trouble() -> Iterator[Exception | None]:
        yield AWAY
        ended.append(True)
        yield AWAY

    shop.trouble = trouble()
    monkeypatch.setattr("headgate.core.runtime.journal.interruption", interruption)
    done = automatic()
    assert done.exit_code == 0, done.output
    left = open_journal(shop.settings.home, "business")
    assert left is not None
    assert [item.pk for item in left.left] == ["a", "b"]
    assert "2 keys are left in" in done.stderr
    assert "--resume --yes" in done.stderr
