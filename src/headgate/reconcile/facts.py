"""The facts that the decision table asks for: each in words, in Python and in SQL, side by side.

The SQL is over one row of a view of states: `onprem`, `onprem_first`, `onprem_end`, `onprem_greatest`,
`onprem_least` and the same of the cloud, as the table of states has them; `whole`, which says whether nothing
of the key can stand elsewhere, and `ended`, whether its input has ended. No fact but a hash is ever NULL. A test
compares the two forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from headgate.conditions.evaluator.twin_values import Value
from headgate.declarations.spec_types import BOOLEAN, STRING, SqlType
from headgate.quality.spec.limits import Limits
from headgate.reconcile.reconcile_state import DELETE, SideState, State

_HASH = re.compile(r"[0-9a-f]{64}")
_HEX = r"\\A[0-9a-f]{64}\\z"


@dataclass(frozen=True)
class Known:
    """What a verdict may look at: the state, the time, and whether the state is all there is."""

    state: State
    at: datetime
    limits: Limits
    whole: bool = True
    ended: bool = False

    @property
    def deadline(self) -> datetime:
        """Both sides have been waited for by then."""
        sides = (self.state.onprem, self.state.cloud)
        return max(side.first.read_at for side in sides if side) + self.limits.wait

    @property
    def pair(self) -> tuple[SideState, SideState] | None:
        onprem, cloud = self.state.onprem, self.state.cloud
        return (onprem, cloud) if onprem and cloud else None


@dataclass(frozen=True)
class Fact:
    """`sql` may name {at}, the time of the verdict, and the limits {window} and {wait}."""

    name: str
    words: str
    of: Callable[[Known], Value]
    sql: str
    type: SqlType = BOOLEAN


def interval(length: timedelta) -> str:
    """A length of time as SQL."""
    return f"INTERVAL {length // timedelta(seconds=1)} SECONDS"


DEADLINE = "greatest(onprem_first.read_at, cloud_first.read_at) + {wait}"
# How far apart the first arrivals of both newest versions are; NULL where one side is missing.
_APART = "abs(onprem_first.read_at - cloud_first.read_at)"


def fact_sql(fact: Fact, limits: Limits, at: str) -> str:
    return placed(fact.sql, limits, at)


def placed(sql: str, limits: Limits, at: str) -> str:
    return (
        sql.replace("{at}", at)
        .replace("{window}", interval(limits.window))
        .replace("{wait}", interval(limits.wait))
    )


def _is_deleted(side: SideState | None) -> bool:
    return side is not None and side.newest.action == DELETE


def _is_absent(side: SideState | None) -> bool:
    return side is not None and not _is_deleted(side) and side.newest.hash is None


def _is_invalid(side: SideState | None) -> bool:
    given = None if side is None or _is_deleted(side) else side.newest.hash
    return given is not None and not _HASH.fullmatch(given)


def _is_skewed(known: Known) -> bool:
    pair = known.pair
    versions = [side.newest.hash_version for side in pair] if pair else [None]
    return None not in versions and len(set(versions)) == 2


def _is_older(known: Known) -> bool:
    """Cassandra's times have milliseconds, so a version may come back without what is finer."""
    pair = known.pair
    if pair is None:
        return False
    onprem, cloud = (_milliseconds(side.newest.version) for side in pair)
    return cloud < onprem


def _milliseconds(time: datetime) -> datetime:
    return time.replace(microsecond=time.microsecond // 1_000 * 1_000)


def _is_late(known: Known) -> bool:
    pair = known.pair
    if pair is None:
        return False
    return abs(pair[0].first.read_at - pair[1].first.read_at) > known.limits.window


def _is_within(known: Known) -> bool:
    pair = known.pair
    if pair is None:
        return _is_deleted(known.state.onprem)
    near = abs(pair[0].first.read_at - pair[1].first.read_at) <= known.limits.wait
    return near or _is_deleted(known.state.onprem)


def _is_due(known: Known) -> bool:
    return known.whole and (known.ended or known.at >= known.deadline)


def _is_stale(side: SideState | None) -> bool:
    return side is not None and side.end > (side.newest.partition, side.newest.offset)


def _is_conflict(side: SideState | None) -> bool:
    return side is not None and len(side.told) > 1


def _hash(side: SideState | None) -> str | None:
    return None if side is None else side.newest.hash


def _either(test: Callable[[SideState | None], bool]) -> Callable[[Known], bool]:
    return lambda known: test(known.state.onprem) or test(known.state.cloud)


def _onprem(test: Callable[[SideState | None], Value]) -> Callable[[Known], Value]:
    return lambda known: test(known.state.onprem)


def _cloud(test: Callable[[SideState | None], Value]) -> Callable[[Known], Value]:
    return lambda known: test(known.state.cloud)


def _deleted_sql(side: str) -> str:
    return f"coalesce({side}.action = '{DELETE}', FALSE)"


def conflict(side: str) -> str:
    """Whether the newest version of one side has said several things, as SQL over a state."""
    return f"coalesce({side}_greatest.content <> {side}_least.content, FALSE)"


FACTS: tuple[Fact, ...] = (
    Fact(
        "onprem_seen",
        "on-prem has said something of the key",
        _onprem(lambda side: side is not None),
        "onprem IS NOT NULL",
    ),
    Fact(
        "cloud_seen",
        "the cloud has said something of the key",
        _cloud(lambda side: side is not None),
        "cloud IS NOT NULL",
    ),
    Fact(
        "onprem_deleted",
        "on-prem's newest version is a delete",
        _onprem(_is_deleted),
        _deleted_sql("onprem"),
    ),
    Fact(
        "cloud_deleted",
        "the cloud's newest version is a delete",
        _cloud(_is_deleted),
        _deleted_sql("cloud"),
    ),
    Fact(
        "cloud_absent",
        "the cloud was read, and has no row or no hash",
        _cloud(_is_absent),
        f"cloud IS NOT NULL AND NOT {_deleted_sql('cloud')} AND cloud.hash IS NULL",
    ),
    Fact(
        "onprem_invalid",
        "on-prem's row is alive and has no hash, or none of 64 lower-case hexadecimal digits",
        _onprem(lambda side: _is_invalid(side) or _is_absent(side)),
        f"onprem IS NOT NULL AND NOT {_deleted_sql('onprem')}"
        f" AND NOT coalesce(onprem.hash RLIKE '{_HEX}', FALSE)",
    ),
    Fact(
        "cloud_invalid",
        "the cloud's row is alive, and its hash is not 64 lower-case hexadecimal digits",
        _cloud(_is_invalid),
        f"NOT {_deleted_sql('cloud')} AND NOT coalesce(cloud.hash RLIKE '{_HEX}', TRUE)",
    ),
    Fact(
        "hash_onprem", "on-prem's hash of its newest version", _onprem(_hash), "onprem.hash", STRING
    ),
    Fact(
        "hash_cloud",
        "the cloud's hash of its newest version",
        _cloud(_hash),
        "cloud.hash",
        STRING,
    ),
    Fact(
        "version_skew",
        "both sides name the contract's version, and not the same",
        _is_skewed,
        "coalesce(onprem.hash_version <> cloud.hash_version, FALSE)",
    ),
    Fact(
        "cloud_older",
        "the cloud's newest version is older than on-prem's, in whole milliseconds",
        _is_older,
        "coalesce(unix_millis(cloud.version) < unix_millis(onprem.version), FALSE)",
    ),
    Fact(
        "late",
        "the first arrivals of both newest versions lie further apart than the window",
        _is_late,
        f"coalesce({_APART} > {{window}}, FALSE)",
    ),
    Fact(
        "whole",
        "nothing of the key can stand elsewhere: it is not one window's state alone",
        lambda known: known.whole,
        "whole",
    ),
    Fact(
        "due",
        "the key is whole, and its deadline is reached (the later first arrival, plus window and grace)"
        " or its input has ended",
        _is_due,
        f"whole AND (ended OR {{at}} >= {DEADLINE})",
    ),
    Fact(
        "within_grace",
        "both sides were heard, no further apart than window and grace; or on-prem has deleted the row",
        _is_within,
        f"{_deleted_sql('onprem')} OR coalesce({_APART} <= {{wait}}, FALSE)",
    ),
    Fact(
        "stale",
        "a side's newest offset is not its newest version",
        _either(_is_stale),
        "coalesce(onprem_end <> struct(onprem.partition, onprem.offset), FALSE)\n"
        "  OR coalesce(cloud_end <> struct(cloud.partition, cloud.offset), FALSE)",
    ),
    Fact(
        "conflict",
        "one version of a side has said two things: by its hash, the contract's version or a delete",
        _either(_is_conflict),
        f"{conflict('onprem')} OR {conflict('cloud')}",
    ),
)
TYPES: dict[str, SqlType] = {fact.name: fact.type for fact in FACTS}


def facts_of(known: Known) -> dict[str, Value]:
    """Every fact by its name, as conditions see them."""
    return {fact.name: fact.of(known) for fact in FACTS}
