"""Drift mended by somebody who may: git from the ops store, or the store from git by way of approval."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from headgate.control.git.drift import drift_of, restored, writers
from headgate.control.git.model import Drift, DriftKind
from headgate.control.git.store import GitStore
from headgate.control.identity.model import Identity
from headgate.control.identity.policy import require
from headgate.control.revisions import document_text, drafted
from headgate.control.service import FilterService
from headgate.errors import UnavailableError
from headgate.spec.filter_loader import parse_text

SUBMITTED = (DriftKind.ONLY_IN_GIT, DriftKind.DIFFERS)
# The filters, and the commits that were made.
Done = tuple[tuple[str, ...], tuple[str, ...]]


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
    mended = _in_git if side is Side.GIT else _in_store
    names, commits = mended(service, by, drifts)
    if names:
        with service.store.control.change() as change:
            change.audit(by.name, "mend_drift", side.value, filters=list(names))
    return Mended(names, commits, found(service))


def _in_git(service: FilterService, by: Identity, drifts: Sequence[Drift]) -> Done:
    """What was accepted, again; the remote gets it now, or when it answers."""
    git = _git(service)
    commits = restored(git, drifts, by.name)
    with suppress(UnavailableError):
        git.push()
    return tuple(one.filter for one in drifts), commits


def _in_store(service: FilterService, by: Identity, drifts: Sequence[Drift]) -> Done:
    """As if its authors had sent it: none of them may approve it. Nothing is deleted this way."""
    taken = [one for one in drifts if one.kind in SUBMITTED]
    for operation in ("createFilter", "updateFilter"):
        require(by, operation)
    drafts = {one.filter: drafted(parse_text(one.git or "")) for one in taken}
    for one in taken:
        wrote = writers(_git(service), one)
        if one.kind is DriftKind.ONLY_IN_GIT:
            service.create(by, drafts[one.filter].declared, also=wrote)
        else:
            service.update(by, one.filter, drafts[one.filter].declared, also=wrote)
    return tuple(drafts), ()


def _git(service: FilterService) -> GitStore:
    if service.git is None:
        raise UnavailableError("this control plane keeps no git store")
    return service.git
