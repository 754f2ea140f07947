"""Carrying a redrive out: paced, journalled before and after each batch, resumable, each letter once."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from headgate.core.runtime.journal_file import Pace, Watcher
from headgate.dead_letters.journal import Ends, Journal
from headgate.dead_letters.model import Item, Letter, Outcome, RedriveReport

GONE = "it is not in the dead-letter table any more"


class Target(Protocol):
    """Where letters go, and where those that arrived are found."""

    def ends(self, topics: Collection[str]) -> dict[str, dict[str, int]]: ...

    def send(self, letters: Sequence[tuple[Letter, str]], redrive: str) -> list[Outcome]: ...

    def arrived(
        self, ids: Collection[str], since: Mapping[str, Mapping[str, int]]
    ) -> dict[str, str]: ...


@dataclass(frozen=True)
class Edges:
    """What a redrive touches; each is handed in."""

    letters: Callable[[Sequence[str]], Mapping[str, Letter]]
    target: Target
    stopped: Callable[[], bool] = lambda: False
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def run_redrive(journal: Journal, edges: Edges, per_second: int, watcher: Watcher) -> RedriveReport:
    """Send what is left; stops between batches when asked to."""
    with journal.held():
        _settle_uncertain(journal, edges)
        pace = Pace(per_second, edges.clock, edges.sleep)
        for batch in _batches(journal.left, pace.batch):
            if edges.stopped():
                break
            pace.wait(len(batch))
            _send(journal, edges, batch)
            watcher.update(len(journal.outcomes))
        if not journal.left and not journal.closed:
            journal.close()
    return journal.report()


def _settle_uncertain(journal: Journal, edges: Edges) -> None:
    """A kill between sending and noting: the topic itself says what had arrived."""
    uncertain = journal.uncertain
    if not uncertain:
        return
    since = _earliest(journal.announced[item.id] for item in uncertain)
    found = edges.target.arrived([item.id for item in uncertain], since)
    journal.settle(Outcome(name, "sent", place) for name, place in found.items())


def _earliest(ends: Iterator[Ends]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for each in ends:
        for topic, places in each.items():
            mine = found.setdefault(topic, {})
            for partition, end in places.items():
                mine[partition] = min(end, mine.get(partition, end))
    return found


def _send(journal: Journal, edges: Edges, batch: Sequence[Item]) -> None:
    letters = edges.letters([item.id for item in batch])
    ends = edges.target.ends({item.topic for item in batch})
    cannot = [outcome for item in batch if (outcome := _cannot(item, letters, ends))]
    wanted = [item for item in batch if item.id in letters and item.topic in ends]
    # An older announcement says from where to search: it must not be replaced by a later one.
    if fresh := [item for item in wanted if item.id not in journal.announced]:
        journal.announce(fresh, ends)
    pairs = [(letters[item.id], item.topic) for item in wanted]
    journal.settle([*cannot, *(edges.target.send(pairs, journal.name) if pairs else [])])


def _cannot(item: Item, letters: Mapping[str, Letter], ends: Ends) -> Outcome | None:
    if item.id not in letters:
        return Outcome(item.id, "skipped", why=GONE)
    if item.topic not in ends:
        return Outcome(item.id, "refused", why=f"there is no topic {item.topic}")
    return None


def _batches(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    for at in range(0, len(items), size):
        yield items[at : at + size]
