"""Keeps git and the ops store in agreement: commits from the outbox, drift between both, its repair in either direction.

To repair the store submits git's document as its writers: none of them may approve it, and a writer whom no key or
token names keeps everybody from approving it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum

from headgate.core.identity.api_keys import KeyStore
from headgate.core.identity.audit import head_trailer
from headgate.core.identity.roles import UNKNOWN_WRITER, Identity, person, require
from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import HeadgateError, UnavailableError
from headgate.filters.control.operations import ControlFaults, Point
from headgate.filters.control.revisions import document_text
from headgate.filters.control.service import FilterService
from headgate.filters.git.repository import Drift, DriftKind, GitIdentity
from headgate.filters.git.store import GitStore
from headgate.filters.loader import parse_text
from headgate.filters.spec import revision_of
from headgate.filters.store.control import ControlStore
from headgate.filters.store.model import GitErrand, Status


@dataclass(frozen=True)
class KnownPeople:
    """The names that are known here, and whose each declared git identity is.

    `declared` has mail addresses and names of git in one spelling, and the person behind each.
    """

    names: frozenset[str]
    declared: Mapping[str, str]

    @classmethod
    def of(cls, store: OpsStore) -> KnownPeople:
        """From keys, from who submitted here before, and from `headgate keys git add`."""
        keys, control = store.part(KeyStore), store.part(ControlStore)
        declared = {one.identity: person(one.name) for one in keys.git_identities()}
        names = {key.name for key in keys.every()} | control.submitters()
        return cls(frozenset(map(person, names)) | {*declared.values()}, declared)

    def authors(self, writers: Iterable[GitIdentity]) -> frozenset[str]:
        """Everybody whom these writers may be; none of them may approve what they wrote.

        An identity that is nobody's here is among them as `git:Name <mail>`: what it wrote can be
        approved by nobody before somebody who is known submits it.
        """
        return frozenset[str]().union(*(self._names_of(one) for one in writers))

    def _names_of(self, writer: GitIdentity) -> frozenset[str]:
        name, mail = person(writer.name), person(writer.mail)
        # The part before the @ may be a key's name, and may be another person's: that is enough to
        # keep its owner from approving, and too little to know the writer by.
        possible = {name, mail, mail.partition("@")[0]} - {""}
        sure = {self.declared[text] for text in (name, mail) if text in self.declared}
        sure |= {name, mail} & self.names
        unknown = set[str]() if sure else {f"{UNKNOWN_WRITER}{writer}"}
        return frozenset(possible | sure | unknown)


# So often a repository that nothing is to be committed to is looked at.
CHECK_SECONDS = 30.0
# A step ends after so many failures: the reconciler has other things to do than to wait for git.
MOST_FAILURES = 5


class Commits:
    """Makes the commits that wait, and knows why it cannot.

    `trouble` is empty while git works. What fails for one filter is noted there and keeps only the
    later commits of that filter waiting.
    """

    def __init__(self, git: GitStore, control: ControlStore, faults: ControlFaults) -> None:
        self._git = git
        self._control = control
        self._faults = faults
        self._checked_at = float("-inf")
        self._turn = 0
        self.trouble = ""

    def step(self) -> None:
        """Make the commits that wait, in the order of each filter."""
        waiting = self._control.open_errands()
        if not waiting:
            self._check()
            return
        failed: dict[str, str] = {}
        for filter_id, errands in self._by_filter(waiting).items():
            if len(failed) >= MOST_FAILURES:
                break
            for errand in errands:
                if trouble := self._commit(errand):
                    failed[filter_id] = trouble
                    break
        self.trouble = next(iter(failed.values()), "")

    def _by_filter(self, waiting: Sequence[GitErrand]) -> dict[str, list[GitErrand]]:
        """In the order of each filter; those that failed last, and every time another one first."""
        filters: dict[str, list[GitErrand]] = {}
        for errand in waiting:
            filters.setdefault(errand.filter_id, []).append(errand)
        sound = [id for id, errands in filters.items() if not any(one.trouble for one in errands)]
        failing = deque(id for id in filters if id not in sound)
        self._turn += MOST_FAILURES
        failing.rotate(-self._turn)
        return {id: filters[id] for id in (*sound, *failing)}

    def _commit(self, errand: GitErrand) -> str:
        """Make one commit; why it could not be made, or nothing."""
        try:
            commit = self._committed(errand)
        except Exception as error:
            # Whatever git holds makes one commit fail, never the reconciler.
            trouble = (
                error.one_line
                if isinstance(error, HeadgateError)
                else f"{type(error).__name__}: {error}"
            )
            if trouble != errand.trouble:
                self._control.note_errand(errand.id, None, trouble)
            return trouble
        self._faults.at(Point.AFTER_COMMIT)
        self._control.note_errand(errand.id, commit)
        self._faults.at(Point.AFTER_COMMIT_NOTED)
        return ""

    def _committed(self, errand: GitErrand) -> str:
        message = f"{errand.message.rstrip()}\n{self._separator(errand)}"
        message += head_trailer(self._control.audit_head())
        if errand.text is None:
            return self._git.remove(errand.filter_id, errand.author, message)
        return self._git.commit(errand.filter_id, errand.text, errand.author, message)

    def _separator(self, errand: GitErrand) -> str:
        """A trailer stands in the last paragraph; a message of one line has none yet."""
        return "" if "\n\n" in errand.message.rstrip() else "\n"

    def _check(self) -> None:
        """Whether git works is known before the next commit is to be made."""
        if time.monotonic() - self._checked_at < CHECK_SECONDS:
            return
        self._checked_at = time.monotonic()
        try:
            self._git.files()
            self.trouble = ""
        except HeadgateError as error:
            self.trouble = error.one_line


MOST_COMMITS = 1000
TOO_MANY = GitIdentity(f"whoever wrote before the last {MOST_COMMITS:,} commits", "")


def drift_of(git: GitStore, accepted: Mapping[str, str]) -> tuple[Drift, ...]:
    """What differs between the accepted documents, by id, and the files at the branch's tip."""
    tip = git.tip()
    files = git.files(tip) if tip else {}
    found = (compared(name, accepted.get(name), files.get(name)) for name in {*accepted, *files})
    drifts = sorted((each for each in found if each), key=lambda each: each.filter)
    return tuple(_with_commit(git, each, tip) for each in drifts)


def compared(name: str, store: str | None, git: str | None) -> Drift | None:
    """One filter; the layout of a file does not matter, what it declares does."""
    if git is None:
        return Drift(name, DriftKind.MISSING_IN_GIT, store, git)
    declared = revision_in(git, name)
    if declared is None:
        return Drift(name, DriftKind.UNREADABLE, store, git)
    if store is None:
        return Drift(name, DriftKind.ONLY_IN_GIT, store, git)
    if declared != revision_in(store, name):
        return Drift(name, DriftKind.DIFFERS, store, git)
    return None


def restored(
    git: GitStore, drifts: Iterable[Drift], author: str, trailer: str = ""
) -> tuple[str, ...]:
    """The ops store is right: git gets its documents again. What stood there stays in the history."""
    commits: list[str] = []
    for drift in drifts:
        if drift.store is None:
            why = f"Take out {drift.filter}: it was never accepted\n\n{trailer}"
            commits.append(git.remove(drift.filter, author, why))
        else:
            why = f"Restore {drift.filter} as it was accepted\n\n{trailer}"
            commits.append(git.commit(drift.filter, drift.store, author, why))
    return tuple(commits)


def writers(git: GitStore, drift: Drift) -> frozenset[GitIdentity]:
    """Everybody who wrote on git's text since it was as it was accepted, on whatever branch.

    Not by date, which is the author's to choose: by what the commit of the accepted text lacks. Of a
    history that is longer than we read, somebody nobody knows is one of the writers.
    """
    accepted = revision_in(drift.store, drift.filter) if drift.store else None
    every = git.history(drift.filter, MOST_COMMITS, tip=drift.tip)
    known = next(
        (one.id for one in every if accepted and _holds(git, drift, one.id, accepted)), None
    )
    since = git.history(drift.filter, MOST_COMMITS, known, drift.tip)
    unread = {TOO_MANY} if len(since) >= MOST_COMMITS else set[GitIdentity]()
    return frozenset(unread.union(*(one.writers for one in since)))


def _holds(git: GitStore, drift: Drift, commit: str, accepted: str) -> bool:
    text = git.read(drift.filter, commit)
    return text is not None and revision_in(text, drift.filter) == accepted


def _with_commit(git: GitStore, drift: Drift, tip: str | None) -> Drift:
    commits = git.history(drift.filter, 1, tip=tip) if tip else ()
    return replace(drift, commit=commits[0] if commits else None, tip=tip)


def revision_in(text: str, name: str) -> str | None:
    """The revision that a text declares of this filter; None when it declares none of it."""
    try:
        declared = parse_text(text)
        return revision_of(declared) if declared.id == name else None
    except Exception:
        # Anybody may commit any bytes: what they make the reader raise is a fault of that file, and
        # must not hide the drift of all others.
        return None


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
    accepted = service.store.part(ControlStore).accepted()
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
        with service.store.part(ControlStore).change() as change:
            change.audit(by.name, "mend_drift", side.value, filters=work.filters)
    refused, commits = tuple(work.refused), tuple(work.commits)
    return Mended(tuple(work.filters), commits, refused, found(service))


def _mend_git(service: FilterService, by: Identity, drifts: Sequence[Drift], work: _Work) -> None:
    """What was accepted, again; the remote gets it now, or when it answers."""
    git = _git(service)
    trailer = head_trailer(service.store.part(ControlStore).audit_head())
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
    record = service.store.part(ControlStore).filter(drift.filter)
    if record is None or record.status is Status.DELETED:
        service.create(by, declared, also=also)
    else:
        service.update(by, drift.filter, declared, also=also)


def _git(service: FilterService) -> GitStore:
    if service.git is None:
        raise UnavailableError("this control plane keeps no git store")
    return service.git
