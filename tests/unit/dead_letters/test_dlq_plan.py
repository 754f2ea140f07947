"""Which dead letters are sent again, and that a redrive survives its end at any line of its journal."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.dead_letters.redrive import (
    Edges,
    RedriveJournal,
    need_journal,
    new_journal,
    read_journal,
    redrive_plan,
    run_redrive,
    sent_before,
)
from headgate.dead_letters.table import (
    FROM_TABLE,
    SAME_RECORD,
    SENT_BEFORE,
    Facts,
    Letter,
    Outcome,
)
from headgate.errors import ConflictError, NotFoundError

AT = datetime(2026, 1, 31, tzinfo=UTC)


def facts(name: str, offset: int | None = 0, job: str = "j", minutes: int = 0) -> Facts:
    topic = None if offset is None else "t"
    at = AT + timedelta(minutes=minutes)
    return Facts(name, job, "r", "code", "words", topic, 0, offset, AT, at, 3)


class Killed(BaseException):
    """What ends a process in these tests."""


@dataclass
class FakeTopic:
    """A topic in memory; it may end the process after a letter has arrived and before that is told."""

    kill_after: int = 10**9
    records: list[str] = field(default_factory=list)

    def ends(self, topics: Collection[str]) -> dict[str, dict[str, int]]:
        return {topic: {"0": len(self.records)} for topic in topics if topic != "gone"}

    def send(self, letters: Sequence[tuple[Letter, str]], redrive: str) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for letter, topic in letters:
            self.records.append(letter.facts.id)
            if len(self.records) == self.kill_after:
                raise Killed
            place = f"{topic}/0/{len(self.records) - 1}"
            outcomes.append(Outcome(letter.facts.id, "sent", place))
        return outcomes

    def arrived(
        self, ids: Collection[str], since: Mapping[str, Mapping[str, int]]
    ) -> dict[str, str]:
        begin = min((ends["0"] for ends in since.values()), default=0)
        return {n: f"t/0/{at}" for at, n in enumerate(self.records) if n in ids and at >= begin}


class Unseen:
    def update(self, done: int) -> None: ...


def edges(topic: FakeTopic, count: int) -> Edges:
    known = {f"l{n}": Letter(facts(f"l{n}", n), b"k", b"v") for n in range(count)}
    return Edges(
        letters=lambda ids: {name: known[name] for name in ids if name in known},
        target=topic,
        clock=lambda: 0.0,
        sleep=lambda _: None,
    )


def journal_of(home: Path, count: int) -> RedriveJournal:
    plan = redrive_plan([facts(f"l{n}", n, minutes=n) for n in range(count)], ())
    return new_journal(home, plan, "somebody", AT)


def test_a_record_that_two_jobs_refused_is_sent_once():
    plan = redrive_plan([facts("a", 1, "bronze"), facts("b", 1, "quality", minutes=1)], ())
    assert [item.id for item in plan.items] == ["a"]
    assert [outcome.why for outcome in plan.skipped] == [SAME_RECORD]


def test_a_row_of_a_table_has_no_topic_unless_one_is_given():
    assert [o.why for o in redrive_plan([facts("a", None)], ()).skipped] == [FROM_TABLE]
    assert [item.topic for item in redrive_plan([facts("a", None)], (), to="x").items] == ["x"]


@pytest.mark.parametrize("sent", ["a", "t/0/1"])
def test_what_was_sent_before_is_left_alone(sent: str):
    plan = redrive_plan([facts("a", 1)], {sent})
    assert [outcome.why for outcome in plan.skipped] == [SENT_BEFORE]


def test_the_oldest_letter_goes_first():
    plan = redrive_plan([facts("b", 2, minutes=2), facts("a", 1, minutes=1)], ())
    assert [item.id for item in plan.items] == ["a", "b"]


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 9), st.integers(1, 12), st.integers(1, 4))
def test_a_redrive_that_is_killed_anywhere_sends_each_letter_once(
    tmp_path_factory: pytest.TempPathFactory, count: int, kill_after: int, per_second: int
):
    home = tmp_path_factory.mktemp("redrive")
    journal, topic = journal_of(home, count), FakeTopic(kill_after)
    try:
        run_redrive(journal, edges(topic, count), per_second, Unseen())
    except Killed:
        topic.kill_after = 10**9
    report = run_redrive(read_journal(journal.file), edges(topic, count), per_second, Unseen())
    assert sorted(topic.records) == sorted(f"l{n}" for n in range(count))
    assert (report.sent, report.left, report.closed) == (count, 0, True)


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_a_journal_that_is_cut_off_anywhere_can_be_resumed(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
):
    home = tmp_path_factory.mktemp("redrive")
    journal, topic = journal_of(home, 4), FakeTopic()
    run_redrive(journal, edges(topic, 4), 2, Unseen())
    whole = journal.file.read_bytes()
    head = whole.index(b"\n") + 1
    journal.file.write_bytes(whole[: data.draw(st.integers(head, len(whole)))])
    # A letter is sent only after its announcement is on disk.
    announced = read_journal(journal.file).announced
    topic.records = [name for name in topic.records if name in announced]
    report = run_redrive(read_journal(journal.file), edges(topic, 4), 2, Unseen())
    assert (report.sent, report.left) == (4, 0)
    assert sorted(set(topic.records)) == sorted(topic.records)


def test_letters_of_an_open_redrive_count_as_sent(tmp_path: Path):
    journal_of(tmp_path, 2)
    assert sent_before(tmp_path) == {"l0", "l1", "t/0/0", "t/0/1"}


def test_a_letter_that_could_not_be_sent_may_be_tried_again(tmp_path: Path):
    journal = journal_of(tmp_path, 2)
    journal.settle([Outcome("l0", "sent", "t/0/9"), Outcome("l1", "refused", why="too large")])
    journal.close()
    assert sent_before(tmp_path) == {"l0", "t/0/0"}


def test_two_redrives_cannot_run_at_once(tmp_path: Path):
    journal = journal_of(tmp_path, 1)
    with journal.held(), pytest.raises(ConflictError), journal.held():
        pass


@pytest.mark.parametrize("name", ["../x", "redrive-1", "", "redrive-../../etc"])
def test_a_name_that_is_no_redrive_is_not_looked_for(tmp_path: Path, name: str):
    with pytest.raises(NotFoundError):
        need_journal(tmp_path, name)


def test_no_content_of_a_record_stands_in_a_journal(tmp_path: Path):
    journal = journal_of(tmp_path, 1)
    own = Letter(facts("l0"), b"canary-key", b"canary-value", (("h", b"canary-header"),))
    topic = FakeTopic()
    run_redrive(journal, Edges(lambda ids: {"l0": own}, topic), 10, Unseen())
    assert "canary" not in journal.file.read_text() + repr(own)
