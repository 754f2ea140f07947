"""Drift mended by somebody who may: git from the ops store, or the store from git by way of approval."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from headgate.control.git.drift import drift_of, restored
from headgate.control.git.model import Drift, DriftKind
from headgate.control.git.store import GitStore
from headgate.control.identity.model import Identity
from headgate.control.identity.policy import require
from headgate.control.revisions import document_text
from headgate.control.service import FilterService
from headgate.errors import UnavailableError
from headgate.spec.filter_loader import parse_text


class Side(StrEnum):
    """Which side is changed; the other one is taken to be right."""

    GIT = "git"
    STORE = "store"


@dataclass(frozen=True)
class Mended:
    """What was done, and what still differs: what was submitted differs until it is approved."""

    filters: tuple[str, ...]
    commits: tuple[str, ...]
    left: tuple[Drift, ...]


def found(service: FilterService) -> tuple[Drift, ...]:
    """Where git and the ops store disagree now."""
    accepted = service.store.control.accepted()
    return drift_of(_git(service), {one.filter_id: document_text(one.content) for one in accepted})


def mend(service: FilterService, by: Identity, side: Side, only: Collection[str] = ()) -> Mended:
    """Mend all drift, or that of these filters, on one side."""
    require(by, "mendDrift")
    drifts = [one for one in found(service) if not only or one.filter in only]
    if side is Side.GIT:
        commits = restored(_git(service), drifts, by.name)
        _git(service).push()
    else:
        commits = ()
        drifts = [one for one in drifts if one.kind is not DriftKind.UNREADABLE]
        for one in drifts:
            _submit(service, by, one)
    names = tuple(one.filter for one in drifts)
    if names:
        with service.store.control.change() as change:
            change.audit(by.name, "mend_drift", side.value, filters=list(names))
    return Mended(names, commits, found(service))


def _submit(service: FilterService, by: Identity, drift: Drift) -> None:
    """As if its author had sent it: it waits for a second person."""
    known = service.store.control.filter(drift.filter)
    if drift.git is None:
        service.delete(by, drift.filter)
    elif known is None or drift.kind is DriftKind.ONLY_IN_GIT:
        service.create(by, parse_text(drift.git))
    else:
        service.update(by, drift.filter, parse_text(drift.git))


def _git(service: FilterService) -> GitStore:
    if service.git is None:
        raise UnavailableError("this control plane keeps no git store")
    return service.git
