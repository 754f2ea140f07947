"""The verdict on a key: a pure function of its state and the time, by the decision table."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from headgate.quality.spec.limits import Limits
from headgate.quality.spec.rule_set import Severity
from headgate.reconcile.decisions import Rollup, decided, settled_decisions
from headgate.reconcile.facts import Known, facts_of
from headgate.reconcile.reconcile_state import SideState, State

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Verdict:
    """What is said of a key at a time; `provisional` is what it would be once it waits no more."""

    pk: str
    status: str
    provisional: str | None
    settled: bool
    rollup: Rollup
    reason: str
    metric: str | None
    severity: Severity | None
    deadline: datetime
    onprem_version: datetime | None
    cloud_version: datetime | None
    onprem_read_at: datetime | None
    cloud_read_at: datetime | None
    hash_onprem: str | None
    hash_cloud: str | None
    within_grace: bool | None
    late: bool
    stale: bool
    conflict: bool

    def id_in(self, table: str) -> str:
        """The name of this change, of a key of this pair."""
        return change_id(table, self.pk, self.onprem_version, self.cloud_version, self.status)


def judge(
    state: State, at: datetime, limits: Limits, whole: bool = True, ended: bool = False
) -> Verdict:
    """The verdict on a state at a time.

    A state that is not `whole` is one window's: what it lacks may stand in another, so that it is
    never due for anything. One whose input has `ended` waits for nothing more.
    """
    known = Known(state, at, limits, whole, ended)
    facts = facts_of(known)
    row = decided(facts)
    final = next(other for other in settled_decisions() if other.holds(facts))
    onprem, cloud = state.onprem, state.cloud
    return Verdict(
        pk=state.pk,
        status=row.status,
        provisional=None if row.settled else final.status,
        settled=row.settled,
        rollup=row.rollup,
        reason=row.reason,
        metric=row.metric,
        severity=row.severity,
        deadline=known.deadline,
        onprem_version=_version(onprem),
        cloud_version=_version(cloud),
        onprem_read_at=onprem.first.read_at if onprem else None,
        cloud_read_at=cloud.first.read_at if cloud else None,
        hash_onprem=onprem.newest.hash if onprem else None,
        hash_cloud=cloud.newest.hash if cloud else None,
        within_grace=facts["within_grace"] is True if row.settled else None,
        late=facts["late"] is True,
        stale=facts["stale"] is True,
        conflict=facts["conflict"] is True,
    )


def _version(side: SideState | None) -> datetime | None:
    return side.newest.version if side else None


def change_id(
    table: str, pk: str, onprem: datetime | None, cloud: datetime | None, status: str
) -> str:
    """The name of one change of a verdict, the same wherever and however often it is told.

    Pairs may share a topic and keys, so the table is part of it. The key stands last, so that no two
    different changes give one text.
    """
    text = "\n".join((status, _micros(onprem), _micros(cloud), table, pk))
    return hashlib.sha256(text.encode()).hexdigest()


def _micros(time: datetime | None) -> str:
    return "-" if time is None else str((time - _EPOCH) // timedelta(microseconds=1))
