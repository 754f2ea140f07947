"""What the git store says: a file, how it differs from the ops store, how it stands to its remote."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from headgate.errors import UsageError

FOLDER = "schemas/v1/filters"
LONGEST_ID = 200
_ID = re.compile(r"[a-z0-9-]+")
# The trailer that says where the audit log ended when a commit was made.
AUDIT_HEAD = "Audit-Head"
MAIL = "headgate.invalid"


def file_of(filter_id: str) -> str:
    """Where a filter's document stands; an id that could name another place is refused."""
    if _ID.fullmatch(filter_id) is None or len(filter_id) > LONGEST_ID:
        raise UsageError(
            f"{filter_id[:80]!r} is no id of a filter",
            why=f"an id has lower-case letters, digits and hyphens, at most {LONGEST_ID} of them",
        )
    return f"{FOLDER}/{filter_id}.json"


def id_of(path: str) -> str | None:
    """The filter of this path; None when none of ours could stand there."""
    name = path.removeprefix(f"{FOLDER}/").removesuffix(".json")
    known = _ID.fullmatch(name) is not None and len(name) <= LONGEST_ID
    return name if known and path == f"{FOLDER}/{name}.json" else None


@dataclass(frozen=True)
class GitIdentity:
    """A name and a mail address as a commit gives them; anybody may write any."""

    name: str
    mail: str

    def __str__(self) -> str:
        return f"{self.name} <{self.mail}>".strip()


HEADGATE = GitIdentity("Headgate", f"headgate@{MAIL}")


@dataclass(frozen=True)
class Commit:
    """One commit that touched a filter's file.

    `at` is None where the commit has no date that a calendar knows: its author writes it.
    """

    id: str
    author: str
    at: datetime | None
    message: str
    mail: str = ""
    committer: GitIdentity = HEADGATE
    body: str = ""

    @property
    def writers(self) -> tuple[GitIdentity, ...]:
        """Author, committer and co-authors; as a committer Headgate acts for the author alone."""
        committer = () if self.committer == HEADGATE else (self.committer,)
        return (GitIdentity(self.author, self.mail), *committer, *co_authors(self.body))

    @property
    def audit_head(self) -> str | None:
        """The end of the audit log when Headgate made this commit; None where it says nothing."""
        if self.committer != HEADGATE:
            return None
        values = re.findall(rf"(?m)^{AUDIT_HEAD}:[ \t]*(\S+)[ \t]*$", self.body)
        return values[-1] if values else None


def co_authors(body: str) -> tuple[GitIdentity, ...]:
    """Everybody whom a line `Co-authored-by:` names, wherever in the message it stands."""
    lines = re.findall(r"(?im)^[ \t]*co-authored-by[ \t]*:(.*)$", body)
    return tuple(_identity_in(line) for line in lines)


def _identity_in(line: str) -> GitIdentity:
    name, _, mail = line.partition("<")
    return GitIdentity(name.strip(), mail.partition(">")[0].strip())


class DriftKind(StrEnum):
    """How git and the ops store can disagree about a filter."""

    MISSING_IN_GIT = "missing_in_git"  # accepted, but no file says so
    ONLY_IN_GIT = "only_in_git"  # a file that nobody submitted here
    DIFFERS = "differs"  # both have it, with different content
    UNREADABLE = "unreadable"  # the file is no document of this filter


@dataclass(frozen=True)
class Drift:
    """One filter on which git and the ops store disagree, with both texts and who wrote git's."""

    filter: str
    kind: DriftKind
    store: str | None
    git: str | None
    commit: Commit | None = None
    # The tip of the branch that `git` was read from: who wrote it is looked up there too.
    tip: str | None = None

    @property
    def words(self) -> str:
        who = f" (by {self.commit.author}, {self.commit.id[:12]})" if self.commit else ""
        return {
            DriftKind.MISSING_IN_GIT: f"{self.filter} is accepted here and not in git{who}",
            DriftKind.ONLY_IN_GIT: f"{self.filter} stands in git and was never submitted here{who}",
            DriftKind.DIFFERS: f"{self.filter} says something else in git{who}",
            DriftKind.UNREADABLE: f"{self.filter} in git is no document of that filter{who}",
        }[self.kind]


@dataclass(frozen=True)
class Remote:
    """How our branch stands to the remote's, in commits; without a remote both are 0."""

    name: str = ""
    ahead: int = 0
    behind: int = 0


@dataclass(frozen=True)
class Pulled:
    """What a pull brought: the new tip, filters whose files changed, and how it met our commits.

    `overridden` names filters that somebody else had changed in the remote as well: their version
    stays in the history, ours is on top.
    """

    tip: str
    changed: tuple[str, ...] = ()
    replayed: int = 0
    overridden: tuple[str, ...] = ()
