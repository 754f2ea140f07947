"""Where git and the ops store disagree, and how each direction is mended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from headgate.filters.git.git_store import GitStore
from headgate.filters.git.model import Drift, DriftKind, GitIdentity
from headgate.filters.loader import parse_text
from headgate.filters.spec import revision_of

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
