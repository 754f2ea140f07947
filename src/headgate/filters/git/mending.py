"""Drift mended by somebody who may: git from the ops store, or the store from git by way of approval."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum

from headgate.core.identity.control_audit import head_trailer
from headgate.core.identity.model import Identity
from headgate.core.identity.policy import require
from headgate.errors import HeadgateError, UnavailableError
from headgate.filters.control.control_revisions import document_text
from headgate.filters.control.control_service import FilterService
from headgate.filters.git.drift import drift_of, restored, writers
from headgate.filters.git.git_store import GitStore
from headgate.filters.git.model import Drift, DriftKind
from headgate.filters.git.people import KnownPeople
from headgate.filters.loader import parse_text
from headgate.filters.store.control_model import Status

SUBMITTED = (DriftKind.ONLY_IN_GIT, DriftKind.DIFFERS)


class Side(StrEnum):
    """Which side is changed; the other one is taken to be right."""

    GIT = "git"
    STORE = "store"


@dataclass(frozen=True)
class NotMended:
    """A filter that could not be mended, and why."""

    filter: str
    why: str


@dataclass(frozen=True)
class Mended:
    """What was done, what was not, and what still differs: what was submitted does until it is approved."""

    filters: tuple[str, ...]
    commits: tuple[str, ...]
    refused: tuple[NotMended, ...]
    left: tuple[Drift, ...]


@dataclass
class _Work:
    """What is done so far, filter by filter."""

    filters: list[str] = field(default_factory=list[str])
    commits: list[str] = field(default_factory=list[str])
    refused: list[NotMended] = field(default_factory=list[NotMended])

    @contextmanager
    def mending(self, filter_id: str) -> Generator[None]:
        """One filter's fault is its own: the others are mended all the same."""
        try:
            yield
            self.filters.append(filter_id)
        except UnavailableError:
            raise
        except HeadgateError as error:
            self.refused.append(NotMended(filter_id, error.one_line))


def found(service: FilterService) -> tuple[Drift, ...]:
    """Where git and the ops store disagree now."""
    accepted = service.store.control.accepted()
    return drift_of(_git(service), {one.filter_id: document_text(one.content) for one in accepted})


def mend(service: FilterService, by: Identity, side: Side, only: Collection[str] = ()) -> Mended:
    """Mend all drift, or that of these filters, on one side: each filter in a transaction of its own."""
    require(by, "mendDrift")
    drifts = [one for one in found(service) if not only or one.filter in only]
    work = _Work()
    if side is Side.GIT:
        _mend_git(service, by, drifts, work)
    else:
        _mend_store(service, by, drifts, work)
    if work.filters:
        with service.store.control.change() as change:
            change.audit(by.name, "mend_drift", side.value, filters=work.filters)
    refused, commits = tuple(work.refused), tuple(work.commits)
    return Mended(tuple(work.filters), commits, refused, found(service))


def _mend_git(service: FilterService, by: Identity, drifts: Sequence[Drift], work: _Work) -> None:
    """What was accepted, again; the remote gets it now, or when it answers."""
    git = _git(service)
    trailer = head_trailer(service.store.control.audit_head())
    for drift in drifts:
        with work.mending(drift.filter):
            work.commits.extend(restored(git, [drift], by.name, trailer))
    with suppress(UnavailableError):
        git.push()


def _mend_store(service: FilterService, by: Identity, drifts: Sequence[Drift], work: _Work) -> None:
    """As if its authors had sent it: none of them may approve it. Nothing is deleted this way."""
    for operation in ("createFilter", "updateFilter"):
        require(by, operation)
    people = KnownPeople.of(service.store)
    for drift in drifts:
        if drift.kind in SUBMITTED:
            with work.mending(drift.filter):
                also = people.authors(writers(_git(service), drift))
                _submit(service, by, drift, also)


def _submit(service: FilterService, by: Identity, drift: Drift, also: frozenset[str]) -> None:
    declared = parse_text(drift.git or "")
    record = service.store.control.filter(drift.filter)
    if record is None or record.status is Status.DELETED:
        service.create(by, declared, also=also)
    else:
        service.update(by, drift.filter, declared, also=also)


def _git(service: FilterService) -> GitStore:
    if service.git is None:
        raise UnavailableError("this control plane keeps no git store")
    return service.git
