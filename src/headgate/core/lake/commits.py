"""Commits to managed tables: the metadata that each carries, and what to do when a commit is refused.

The snapshot's summary names job, run, revisions, batch time and offset range (`Marker`), from which the
ledger can be rebuilt. A commit that lost a race is tried again; if the table changed while a statement ran, the
whole statement is run again; a batch that is there already raises AlreadyPublishedError.
"""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from headgate.core.ledger.model import Intent
from headgate.core.ledger.ranges import Range, is_rebuild, parse_range
from headgate.errors import ConflictError

PREFIX = "headgate."
FENCE = "fence-"


@dataclass(frozen=True)
class Marker:
    """The provenance of one commit; `outcomes` stands where not every record was accepted.

    `counters` are what else a batch has counted of its records: one record may be in several.
    """

    job: str
    run: int
    revisions: tuple[str, ...]
    batch_time: datetime
    batch_id: int
    range: Range
    outcomes: Mapping[str, int] | None = None
    attempt: str = ""
    counters: Mapping[str, int] | None = None


def wap_id(intent: Intent) -> str:
    """One id per job and start: a second commit of the same start is refused by the table."""
    start = [intent.range.source, intent.range.source_id, _text(intent.range.start)]
    if is_rebuild(intent.range):  # a rebuild may be done again, each time as a batch of its own
        start.append(intent.batch_time.isoformat())
    digest = hashlib.sha256("|".join(start).encode()).hexdigest()[:32]
    return f"{intent.job}-{digest}"


def properties(
    intent: Intent,
    attempt: str,
    outcomes: Mapping[str, int] | None = None,
    counters: Mapping[str, int] | None = None,
) -> dict[str, str]:
    """The summary properties of a commit made for this intent."""
    values = {
        "job": intent.job,
        "run": str(intent.run),
        "revisions": ",".join(intent.revisions),
        "batch-time": intent.batch_time.isoformat(),
        "batch-id": str(intent.batch_id),
        "source": intent.range.source,
        "source-id": intent.range.source_id,
        "start": _text(intent.range.start),
        "end": _text(intent.range.end),
        "attempt": attempt,
    }
    if outcomes is not None:
        values["outcomes"] = _text(outcomes)
        values["read"] = str(sum(outcomes.values()))
    if counters is not None:
        values["counters"] = _text(counters)
    return {PREFIX + name: value for name, value in values.items()}


def fence_properties(told: Mapping[str, str]) -> dict[str, str]:
    """The same for a commit that only keeps the intent's place taken: it is not the job's own."""
    return {**told, f"{PREFIX}job": FENCE + told[f"{PREFIX}job"]}


def is_fence(job: str) -> bool:
    """A commit in a withdrawn batch's place: what was staged for that batch holds it while it must."""
    return job.startswith(FENCE)


def marker(summary: Mapping[str, str]) -> Marker | None:
    """The marker in a snapshot's summary; None when it is not ours."""
    own = {k.removeprefix(PREFIX): v for k, v in summary.items() if k.startswith(PREFIX)}
    if "job" not in own:
        return None
    outcomes, counters = own.get("outcomes"), own.get("counters")
    return Marker(
        job=own["job"],
        run=int(own["run"]),
        revisions=tuple(part for part in own["revisions"].split(",") if part),
        batch_time=datetime.fromisoformat(own["batch-time"]).astimezone(UTC),
        batch_id=int(own["batch-id"]),
        range=parse_range(
            own["source"], own["source-id"], _numbers(own["start"]), _numbers(own["end"])
        ),
        outcomes=_numbers(outcomes) if outcomes else None,
        attempt=own.get("attempt", ""),
        counters=_numbers(counters) if counters else None,
    )


def intent_of(found: Marker) -> Intent:
    """The intent that a commit was made for, as its marker tells it."""
    m = found
    return Intent(None, m.job, m.run, m.range, m.revisions, m.batch_time, m.batch_id)


def _text(values: Mapping[str, int]) -> str:
    return json.dumps(dict(values), sort_keys=True, separators=(",", ":"))


def _numbers(text: str) -> dict[str, int]:
    return {str(key): int(value) for key, value in json.loads(text).items()}


# Enough to get through between a compaction with partial progress and a backfill.
TRIES = 12
SHORTEST, LONGEST = 0.05, 4.0
# What Iceberg raises when another commit came first: nothing of ours was committed then.
LOST_RACE = "CommitFailedException"
# The same for a row-level statement, whose files may be gone or joined by others.
MOVED = (LOST_RACE, "ValidationException")
T = TypeVar("T")


class AlreadyPublishedError(ConflictError):
    """The table's history already has a commit for this job and start."""

    code = "HG-6003"


class TableMovedError(ConflictError):
    """The table changed after the staging, so that the statement must be run again whole."""

    code = "HG-6004"


def until_unmoved(step: Callable[[], T], pause: Callable[[float], None] = time.sleep) -> T:
    """The step's result; it is run again whole when the table moved under it."""
    return persistently(step, lambda error: isinstance(error, TableMovedError), pause)


def persistently(
    step: Callable[[], T],
    again: Callable[[Exception], bool],
    pause: Callable[[float], None] = time.sleep,
) -> T:
    """The step's result, tried anew after pauses of random and growing length."""
    for tried in range(1, TRIES):
        try:
            return step()
        except Exception as error:
            if not again(error):
                raise
        pause(random.uniform(0, min(LONGEST, SHORTEST * 2**tried)))
    return step()


def lost_race(error: Exception) -> bool:
    return LOST_RACE in str(error)


def is_conflict(error: Exception) -> bool:
    """Whether another commit came first, so that the step may be tried again."""
    return any(sign in str(error) for sign in MOVED)


def moved(table: str) -> TableMovedError:
    return TableMovedError(
        f"{table} changed while the batch was written", fix="run the statement again"
    )


@contextmanager
def writing_to(table: str) -> Generator[None]:
    """A statement that reads the table it writes: a conflict means that the table moved."""
    try:
        yield
    except Exception as error:
        if is_conflict(error):
            raise moved(table) from error
        raise
