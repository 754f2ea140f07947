"""Runs git in a bare repository: files, commits, authors; trees and commits made without a work tree or an index.

No hooks, no configuration but ours, no prompts, a time limit. Refs are not moved here, so a kill leaves nothing
half done.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from headgate.config.reference import without_secrets
from headgate.core.identity.audit import AUDIT_HEAD
from headgate.errors import UnavailableError, UsageError

FOLDER = "schemas/v1/filters"
LONGEST_ID = 200
_ID = re.compile(r"[a-z0-9-]+")
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


SECONDS = 30.0
# What git would otherwise read of the user, of the machine or of a hook.
ALONE = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
    "GIT_ALLOW_PROTOCOL": "file:https:ssh",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C.UTF-8",
}
OPTIONS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.logAllRefUpdates=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.ext.allow=never",
    "commit.gpgSign=false",
    "push.gpgSign=false",
    "credential.helper=",
    "transfer.fsckObjects=true",
)


class Git:
    """Runs git in one bare repository."""

    def __init__(self, folder: Path, seconds: float = SECONDS) -> None:
        self.folder, self._seconds = folder, seconds

    def text(self, *words: str, given: str = "", extra: Mapping[str, str] | None = None) -> str:
        """What git printed, without the last line end."""
        told = self.run(*words, given=given.encode(), extra=extra)
        return told.decode(errors="replace").rstrip("\n")

    def run(self, *words: str, given: bytes = b"", extra: Mapping[str, str] | None = None) -> bytes:
        """What git printed; raises when it fails or takes too long."""
        done = self.tried(*words, given=given, extra=extra)
        if done.returncode:
            raise self.failure(words, done)
        return done.stdout

    def failure(
        self, words: Sequence[str], done: subprocess.CompletedProcess[bytes]
    ) -> UnavailableError:
        """What git said, without the folder, which is nobody's business who asks over the API."""
        told = done.stderr.decode(errors="replace").strip()
        return UnavailableError(
            f"git {words[0]} failed",
            why=without_secrets(told.replace(str(self.folder), f"…/{self.folder.name}")),
            fix="look at the repository with git; nothing was changed in the ops store",
        )

    def tried(
        self, *words: str, given: bytes = b"", extra: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """The same for calls whose failure is an answer."""
        options = [part for option in OPTIONS for part in ("-c", option)]
        command = ["git", f"--git-dir={self.folder}", *options, *words]
        try:
            return subprocess.run(
                command,
                input=given,
                capture_output=True,
                env={**environment(), **(extra or {})},
                timeout=self._seconds,
                check=False,
            )
        except FileNotFoundError as error:
            raise UnavailableError(
                "git is not installed",
                why="every accepted filter is a commit",
                fix="install git, then try again: what waits is committed then",
            ) from error
        except subprocess.TimeoutExpired as error:
            raise UnavailableError(
                f"git {words[0]} took longer than {self._seconds:g} s",
                fix="look whether the remote answers",
            ) from error


def environment() -> dict[str, str]:
    """What git sees: nothing of git's own variables, and our answers to them."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**kept, **ALONE}


REGULAR = frozenset({"100644", "100755"})
# A document that the API takes is no longer than this either.
MOST_BYTES = 1024 * 1024
# Neither a name nor a message can hold a NUL, which `-z` also puts after each commit.
LOG = ("%H", "%an", "%ae", "%at", "%cn", "%ce", "%s", "%B")
LONGEST_NAME = 100
KEPT_HEADERS = (b"author ", b"committer ", b"encoding ")
# `rev-parse --quiet` says this of a ref that is not there, and 128 of a repository that is broken.
NO_SUCH_REF = 1


@dataclass(frozen=True)
class Signature:
    """Who wrote it and when, as a commit has it."""

    name: str
    mail: str
    at: str

    @property
    def variables(self) -> dict[str, str]:
        return {
            "GIT_AUTHOR_NAME": self.name,
            "GIT_AUTHOR_EMAIL": self.mail,
            "GIT_AUTHOR_DATE": self.at,
            "GIT_COMMITTER_NAME": HEADGATE.name,
            "GIT_COMMITTER_EMAIL": HEADGATE.mail,
        }


def signed(author: str, at: datetime) -> Signature:
    """An identity as git can carry it: no line end, no bracket, never empty."""
    name = (
        re.sub(r"[\s\x00-\x1f\x7f<>]+", " ", author).strip(" .,:;\"'")[:LONGEST_NAME] or "unknown"
    )
    local = re.sub(r"[^A-Za-z0-9._+-]+", "-", name).strip("-.") or "unknown"
    mail = name if re.fullmatch(r"[^@\s]+@[^@\s]+", name) else f"{local}@{MAIL}"
    return Signature(name, mail, f"{int(at.timestamp())} +0000")


@dataclass(frozen=True)
class Objects:
    """Reads and writes objects of one repository; refs are not touched here."""

    git: Git

    def commit_of(self, ref: str) -> str | None:
        """The commit that a ref names; None where there is no such ref, UnavailableError where git fails."""
        words = ("rev-parse", "--verify", "--quiet", "--end-of-options", ref)
        done = self.git.tried(*words)
        if done.returncode not in (0, NO_SUCH_REF):
            raise self.git.failure(words, done)
        return done.stdout.decode().strip() or None

    def text_at(self, tip: str | None, path: str) -> str | None:
        """The file's text at a commit; None when it is not there."""
        if tip is None:
            return None
        done = self.git.tried("cat-file", "blob", f"{tip}:{path}")
        return done.stdout.decode(errors="replace") if done.returncode == 0 else None

    def files_at(self, tip: str | None) -> dict[str, str]:
        """Every filter's file at a commit; what cannot be a document has an empty text.

        That is what is no regular file, is longer than the API takes, or cannot be read.
        """
        if tip is None:
            return {}
        # A file's name may be of any bytes; one that is no UTF-8 is no filter's.
        listed = self.git.run("ls-tree", "-r", "-z", "-l", tip, "--", f"{FOLDER}/").split(b"\0")
        entries = [_entry(line.decode(errors="replace")) for line in listed if line]
        named = [(name, entry) for entry in entries if (name := id_of(entry.path))]
        blobs = {name: entry.blob for name, entry in named if entry.is_document}
        texts = self._blobs(list(blobs.values()))
        return {name: "" for name, _ in named} | dict(zip(blobs, texts, strict=True))

    def _blobs(self, names: Sequence[str]) -> list[str]:
        """The texts of objects, all in one call; one by one where that call fails."""
        if not names:
            return []
        words = ("cat-file", "--batch")
        done = self.git.tried(*words, given="\n".join(names).encode() + b"\n")
        if done.returncode:
            return [self._blob(name) for name in names]
        texts: list[str] = []
        at = 0
        for _ in names:
            head = done.stdout.index(b"\n", at)
            size = done.stdout[at:head].rsplit(b" ", 1)[1]
            if size == b"missing":
                texts.append("")
                at = head + 1
                continue
            end = head + 1 + int(size)
            texts.append(done.stdout[head + 1 : end].decode(errors="replace"))
            at = end + 1
        return texts

    def _blob(self, name: str) -> str:
        """The text of one object; empty where it is damaged."""
        try:
            return self.git.run("cat-file", "blob", name).decode(errors="replace")
        except UnavailableError:
            return ""

    def write(self, tip: str | None, changes: Mapping[str, str | None]) -> str:
        """The tree of a commit with these files changed, or taken out."""
        return self.write_entries(tip, [self._line(path, text) for path, text in changes.items()])

    def write_entries(self, tip: str | None, lines: Sequence[bytes]) -> str:
        """The tree of a commit with these lines of `update-index --index-info` put in."""
        with _index() as index:
            if tip is not None:
                self.git.run("read-tree", tip, extra=index)
            self.git.run("update-index", "-z", "--index-info", given=b"".join(lines), extra=index)
            return self.git.text("write-tree", extra=index)

    def _line(self, path: str, text: str | None) -> bytes:
        if text is None:
            return f"0 {'0' * 40}\t{path}\0".encode()
        blob = self.git.text("hash-object", "-w", "--stdin", given=text)
        return f"100644 {blob}\t{path}\0".encode()

    def replay(self, commit: str, tree: str, parent: str) -> str:
        """The same commit with another tree on another parent, by the same people, to the byte.

        It is no longer what was signed, so that a signature is left out.
        """
        head, _, message = self.git.run("cat-file", "commit", commit).partition(b"\n\n")
        kept = [line for line in head.split(b"\n") if line.startswith(KEPT_HEADERS)]
        lines = [f"tree {tree}".encode(), f"parent {parent}".encode(), *kept]
        made = b"\n".join(lines) + b"\n\n" + message
        words = ("hash-object", "-w", "-t", "commit", "--literally", "--stdin")
        return self.git.run(*words, given=made).decode().strip()

    def commit(self, tree: str, parent: str | None, signature: Signature, message: str) -> str:
        parents = ("-p", parent) if parent else ()
        words = message.replace("\0", " ").strip() or "Change a filter"
        return self.git.text(
            "commit-tree", tree, *parents, "-F", "-", given=words, extra=signature.variables
        )

    def history(
        self,
        tip: str | None,
        path: str | None = None,
        limit: int | None = None,
        known: str | None = None,
    ) -> tuple[Commit, ...]:
        """The commits that touched a path, newest first; those that `known` has are left out.

        Names, messages and dates are whatever somebody wrote: bytes that are no UTF-8 are replaced,
        a date beyond the calendar is None.
        """
        if tip is None:
            return ()
        # With the commits of side branches: whoever wrote there wrote it too.
        words = ["log", "-z", "--no-renames", "--full-history", f"--format={'%x00'.join(LOG)}"]
        words += [f"-{limit}"] if limit else []
        span = (tip, f"^{known}") if known else (tip,)
        text = self.git.run(*words, *span, "--", *([path] if path else [])).decode(errors="replace")
        fields = text.split("\0")[:-1]
        if len(fields) % len(LOG):
            raise UnavailableError(
                "git log cannot be read", why="a commit has more fields than it may"
            )
        rows = (fields[at : at + len(LOG)] for at in range(0, len(fields), len(LOG)))
        return tuple(_commit(*row) for row in rows)

    def count(self, wanted: str, known: str) -> int:
        """How many commits `wanted` has that `known` lacks."""
        return int(self.git.text("rev-list", "--count", wanted, f"^{known}"))


@dataclass(frozen=True)
class _Entry:
    """A line of `ls-tree -l`."""

    path: str
    mode: str
    blob: str
    size: int

    @property
    def is_document(self) -> bool:
        return self.mode in REGULAR and self.size <= MOST_BYTES


def _entry(line: str) -> _Entry:
    facts, path = line.split("\t", 1)
    mode, _, blob, size = facts.split()
    return _Entry(path, mode, blob, int(size) if size.isdecimal() else 0)


def _commit(
    id: str, name: str, mail: str, at: str, by: str, by_mail: str, subject: str, body: str
) -> Commit:
    return Commit(id, name, _date(at), subject, mail, GitIdentity(by, by_mail), body)


def _date(seconds: str) -> datetime | None:
    try:
        return datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        return None


@contextmanager
def _index() -> Generator[dict[str, str]]:
    """An index of its own for one tree: no lock to wait for, none to leave behind."""
    with tempfile.TemporaryDirectory(prefix="headgate-index-") as folder:
        yield {"GIT_INDEX_FILE": str(Path(folder) / "index")}
