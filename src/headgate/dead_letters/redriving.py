"""Dead letters of this project, and sending some of them again: what the command line and the API share."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime

from headgate.config.settings import Settings
from headgate.core.lake.duckdb_reader import Lake
from headgate.core.runtime.journal_file import Watcher
from headgate.dead_letters.dead_letters import Chosen, DeadLetters
from headgate.dead_letters.journal import (
    Journal,
    journals,
    new_journal,
    planning,
    sent_before,
)
from headgate.dead_letters.model import Facts, RedrivePlan, RedriveReport
from headgate.dead_letters.plan import redrive_plan
from headgate.dead_letters.run import Edges, run_redrive
from headgate.dead_letters.topic import RedriveTopics
from headgate.declarations.topic_names import ReservedTopics, reason_against_events
from headgate.errors import ConflictError, UsageError

MOST = 10_000
PER_SECOND = 100


class Silent:
    """Watches without a word."""

    def update(self, done: int) -> None: ...


@dataclass(frozen=True)
class Redriving:
    """The letters, and the journals under HEADGATE_HOME."""

    settings: Settings
    letters: DeadLetters
    silent: Silent = field(default_factory=Silent)

    def redriven(self) -> dict[str, str]:
        """By letter: where it stands since it was sent again."""
        return {
            outcome.id: outcome.place
            for journal in journals(self.settings.home)
            for outcome in journal.outcomes.values()
            if outcome.result == "sent"
        }

    def plan(
        self, chosen: Chosen, limit: int = MOST, to: str | None = None, *, again: bool = False
    ) -> RedrivePlan:
        """What would be sent, oldest first; what was sent before only with `again`."""
        if to is not None:
            self._refuse_inner_topic(to)
        sent: frozenset[str] = frozenset() if again else sent_before(self.settings.home)
        plan = redrive_plan(self._waiting(chosen, limit, sent), sent, to)
        return replace(plan, again=again)

    def _refuse_inner_topic(self, topic: str) -> None:
        """No records into what Kafka and Connect keep their own state in, nor back to dead letters."""
        if reason := reason_against_events(topic, ReservedTopics.of(self.settings).inner):
            raise UsageError(
                f"{topic} is no topic for events",
                why=reason,
                fix="name the topic that a job reads",
            )

    def _waiting(self, chosen: Chosen, limit: int, sent: frozenset[str]) -> list[Facts]:
        """The oldest that were not sent yet; those that were are told only if asked for by id."""
        found = self.letters.facts(chosen, limit + len(sent), oldest_first=True)
        if chosen.ids:
            return found[:limit]
        waiting = [one for one in found if one.id not in sent]
        return waiting[:limit]

    def begin(self, plan: RedrivePlan, by: str, now: datetime) -> Journal:
        """The plan on disk, refused when the world has moved: a letter of it was sent meanwhile."""
        with planning(self.settings.home):
            taken = sent_before(self.settings.home) & {item.id for item in plan.items}
            if taken and not plan.again:
                raise ConflictError(
                    f"{len(taken):,} of these letters were sent again in the meantime",
                    fix="make the plan again",
                )
            return new_journal(self.settings.home, plan, by, now)

    def carry_out(
        self,
        journal: Journal,
        per_second: int,
        watcher: Watcher | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> RedriveReport:
        target = RedriveTopics(self.settings.need("bootstrap_servers"))
        edges = Edges(self.letters.letters, target, stopped)
        return run_redrive(journal, edges, per_second, watcher or self.silent)


@contextmanager
def open_redriving(settings: Settings) -> Generator[Redriving]:
    with Lake.open(settings) as lake:
        yield Redriving(settings, DeadLetters(lake))
