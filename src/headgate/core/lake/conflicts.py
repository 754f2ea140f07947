"""What a table says to a commit that it does not take, and trying again what may be tried again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

from headgate.errors import ConflictError

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
