"""The git store: every accepted version of a filter is a commit of its file; optionally pulled from and pushed to a remote.

The repository is bare and ours. A commit is made of objects first and becomes visible by one compare-and-swap of
the branch, so a kill at any moment leaves the branch as it was or as it should be.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import subprocess
import time
from base64 import b64encode
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from headgate.config.env_files import PRIVATE_FOLDER
from headgate.config.reference import without_secrets
from headgate.config.settings import Settings
from headgate.errors import ConflictError, SettingsError, UnavailableError
from headgate.filters.git.repository import (
    Commit,
    Git,
    Objects,
    Pulled,
    Remote,
    file_of,
    id_of,
    signed,
)


@dataclass(frozen=True)
class RemoteAddress:
    """Where a remote is, and what git has to know to be let in there.

    Arguments of a process are read by every user of the machine, so a password or a token of the
    address goes to git by its environment, as configuration that holds for this address alone.
    """

    url: str
    environment: Mapping[str, str]

    @classmethod
    def of(cls, repository: str) -> RemoteAddress:
        """The address without user and password; for ssh the user stays, which is no secret."""
        parts = urlsplit(repository)
        if "@" not in parts.netloc:
            return cls(repository, {})
        if parts.scheme not in ("http", "https"):
            return cls(urlunsplit(parts._replace(netloc=_without_password(parts))), {})
        url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        login = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        header = f"Authorization: Basic {b64encode(login.encode()).decode()}"
        return cls(
            url,
            {
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": f"http.{url}.extraHeader",
                "GIT_CONFIG_VALUE_0": header,
            },
        )


def _without_password(parts: SplitResult) -> str:
    user, _, host = parts.netloc.rpartition("@")
    return f"{user.partition(':')[0]}@{host}"


@dataclass(frozen=True)
class RemoteBranch:
    """The branch of this name at `remote`."""

    objects: Objects
    remote: RemoteAddress
    branch: str

    @property
    def _tracking(self) -> str:
        return f"refs/remotes/origin/{self.branch}"

    @property
    def _ref(self) -> str:
        return f"refs/heads/{self.branch}"

    def fetch(self) -> str | None:
        """The remote's tip, with its objects here; None while it has no such branch."""
        listed = self._asked("ls-remote", "--", self.remote.url, self._ref)
        if not any(line.endswith(f"\t{self._ref}") for line in listed.splitlines()):
            return None
        spec = f"+{self._ref}:{self._tracking}"
        quiet = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
        self._asked("fetch", *quiet, "--", self.remote.url, spec)
        return self.objects.commit_of(self._tracking)

    def standing(self, ours: str | None, theirs: str | None) -> Remote:
        name = self.remote.url
        if ours is None or theirs is None:
            count = self.objects.git.text
            ahead = int(count("rev-list", "--count", ours)) if ours else 0
            behind = int(count("rev-list", "--count", theirs)) if theirs else 0
            return Remote(name, ahead, behind)
        return Remote(name, self.objects.count(ours, theirs), self.objects.count(theirs, ours))

    def joined(self, ours: str | None, theirs: str | None) -> Pulled:
        """Our branch with all that the remote has: a fast forward, or our commits again on top."""
        if theirs is None or theirs == ours:
            return Pulled(ours or "")
        if ours is None:
            return Pulled(theirs, tuple(self.objects.files_at(theirs)))
        lacking = self._lacking(ours, theirs)
        changed = self._changed(ours, theirs)
        if not lacking:
            return Pulled(theirs, changed) if self.objects.count(theirs, ours) else Pulled(ours)
        if not self.objects.count(theirs, ours):
            return Pulled(ours)
        return self._replayed(lacking, theirs, changed)

    def push(self, tip: str) -> bool:
        """Whether the remote took it; not when it moved in the meantime."""
        words = ("push", "--porcelain", "--no-verify", "--", self.remote.url, f"{tip}:{self._ref}")
        done = self._tried(*words)
        if done.returncode == 0:
            self.objects.git.run("update-ref", self._tracking, tip)
            return True
        told = (done.stdout + done.stderr).decode(errors="replace")
        if "fetch first" in told or "non-fast-forward" in told:
            return False
        raise self._away(told)

    def _lacking(self, ours: str, theirs: str) -> list[str]:
        words = ("rev-list", "--reverse", "--first-parent", ours, f"^{theirs}")
        return self.objects.git.text(*words).split()

    def _replayed(self, lacking: Sequence[str], theirs: str, changed: tuple[str, ...]) -> Pulled:
        """One commit of ours after the other; one that changes nothing any more is left out."""
        tip, count, touched = theirs, 0, set[str]()
        for commit in lacking:
            changes = self._changes(commit)
            touched |= set(changes)
            tree = self.objects.write_entries(tip, list(changes.values()))
            if tree != self.objects.git.text("rev-parse", f"{tip}^{{tree}}"):
                tip, count = self.objects.replay(commit, tree, tip), count + 1
        base = self.objects.git.tried("merge-base", lacking[-1], theirs).stdout.decode().strip()
        foreign = set(self._changed(base, theirs)) if base else set(self.objects.files_at(theirs))
        ours = {name for path in touched if (name := id_of(path))}
        return Pulled(tip, changed, count, tuple(sorted(foreign & ours)))

    def _changes(self, commit: str) -> dict[str, bytes]:
        """What a commit changed, by path, as lines of `update-index --index-info`."""
        words = ("diff-tree", "-r", "-z", "--root", "--no-commit-id", "--raw", "--no-renames")
        fields = self.objects.git.run(*words, commit).split(b"\0")[:-1]
        changes: dict[str, bytes] = {}
        for facts, path in zip(fields[::2], fields[1::2], strict=True):
            _, mode, _, blob, *_ = facts.split()
            changes[path.decode(errors="replace")] = b"%s %s\t%s\0" % (mode, blob, path)
        return changes

    def _changed(self, before: str, after: str) -> tuple[str, ...]:
        words = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", before, after)
        paths = self.objects.git.run(*words).decode(errors="replace").split("\0")
        return tuple(sorted(name for path in paths if (name := id_of(path))))

    def _tried(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        return self.objects.git.tried(*words, extra=self.remote.environment)

    def _asked(self, *words: str) -> str:
        done = self._tried(*words)
        if done.returncode:
            raise self._away(done.stderr.decode(errors="replace"))
        return done.stdout.decode(errors="replace")

    def _away(self, told: str) -> UnavailableError:
        return UnavailableError(
            f"the git repository {self.remote.url} cannot be reached or written",
            why=without_secrets(told.strip()),
            fix="check GIT_REPOSITORY and GIT_BRANCH; commits wait here until it answers",
        )


BRANCH = "main"
TRIES, PUSHES = 10, 5
# Git holds its own locks for moments; an older one belongs to a process that was killed.
STALE_SECONDS = 3.0
# Whoever talks to the remote holds another one than who moves the branch.
LOCK, NETWORK_LOCK = "headgate.lock", "headgate-remote.lock"
HISTORY = 100
_LOG = logging.getLogger("headgate.git")


def _now() -> datetime:
    return datetime.now(UTC)


class GitStore:
    """Filters as files in a git repository; safe for several processes and against kills."""

    def __init__(
        self,
        folder: Path,
        branch: str = BRANCH,
        remote: str = "",
        clock: Callable[[], datetime] = _now,
    ) -> None:
        self.folder, self.branch, self.remote = folder, branch, remote
        self._git, self._clock = Git(folder), clock
        self._objects = Objects(self._git)
        self._seen = False

    def commit(self, filter_id: str, text: str, author: str, message: str) -> str:
        """Commit this text as the filter's file; when it stands there already, the commit that put it there."""
        return self._change(filter_id, text, author, message)

    def remove(self, filter_id: str, author: str, message: str) -> str:
        """Take the filter's file out; its history stays."""
        return self._change(filter_id, None, author, message)

    def read(self, filter_id: str, commit: str | None = None) -> str | None:
        """The filter's file at a commit, or at the tip of the branch."""
        return self._objects.text_at(commit or self.tip(), file_of(filter_id))

    def files(self, tip: str | None = None) -> dict[str, str]:
        """Every filter's file at a commit, or at the tip of the branch."""
        return self._objects.files_at(tip or self.tip())

    def history(
        self,
        filter_id: str,
        limit: int = HISTORY,
        known: str | None = None,
        tip: str | None = None,
    ) -> tuple[Commit, ...]:
        """The commits of one filter, newest first; those that the commit `known` has are left out."""
        return self._objects.history(tip or self.tip(), file_of(filter_id), limit, known)

    def audit_heads(self) -> dict[str, str]:
        """Where the audit log ended when each of our commits was made, by commit.

        A repository that is not there knows none, and is not made by asking.
        """
        if not (self.folder / "HEAD").is_file():
            return {}
        commits = self._objects.history(self._objects.commit_of(self._ref))
        return {one.id: one.audit_head for one in commits if one.audit_head}

    def tip(self) -> str | None:
        """The newest commit; None while there is none."""
        self._need()
        return self._objects.commit_of(self._ref)

    def standing(self) -> Remote:
        """How far our branch is ahead of the remote's and behind it; asks the remote."""
        if not self.remote:
            return Remote()
        with self._held(NETWORK_LOCK):
            return self._branch().standing(self.tip(), self._branch().fetch())

    def pull(self) -> Pulled:
        """Take the remote's commits in; ours that it lacks are put on top of them."""
        if not self.remote:
            return Pulled(self.tip() or "")
        with self._held(NETWORK_LOCK):
            return self._joined(self._branch().fetch())

    def push(self) -> str | None:
        """Give the remote what it lacks, on top of what it has; the tip that it has then.

        Nobody who commits waits for the remote: the branch is held only while it is moved.
        """
        if not self.remote:
            return self.tip()
        with self._held(NETWORK_LOCK):
            for _ in range(PUSHES):
                tip = self._joined(self._branch().fetch()).tip
                if not tip or self._branch().push(tip):
                    return tip or None
        raise ConflictError(
            f"the branch {self.branch} of the remote moves faster than it can be pushed to",
            why=f"{PUSHES} tries",
            fix="try again; what is committed here waits",
        )

    @property
    def _ref(self) -> str:
        return f"refs/heads/{self.branch}"

    def _branch(self) -> RemoteBranch:
        return RemoteBranch(self._objects, RemoteAddress.of(self.remote), self.branch)

    def _joined(self, theirs: str | None) -> Pulled:
        """Our branch with what was fetched."""
        with self._held():
            for _ in range(TRIES):
                before = self.tip()
                joined = self._branch().joined(before, theirs)
                if joined.tip == (before or "") or self._swapped(joined.tip, before):
                    return joined
        raise _contended(self.branch)

    def _change(self, filter_id: str, text: str | None, author: str, message: str) -> str:
        path = file_of(filter_id)
        with self._held():
            for _ in range(TRIES):
                tip = self.tip()
                if tip and self._objects.text_at(tip, path) == text:
                    touched = self._objects.history(tip, path, 1)
                    return touched[0].id if touched else tip
                tree = self._objects.write(tip, {path: text})
                new = self._objects.commit(tree, tip, signed(author, self._clock()), message)
                if self._swapped(new, tip):
                    return new
        raise _contended(self.branch)

    def _swapped(self, new: str, old: str | None) -> bool:
        """The branch moves only if it still is where it was read."""
        self._free_stale_locks()
        before = old or "0" * 40
        return self._git.tried("update-ref", self._ref, new, before).returncode == 0

    def _free_stale_locks(self) -> None:
        for name in (self._ref, "HEAD", "packed-refs"):
            lock = self.folder / f"{name}.lock"
            try:
                if time.time() - lock.stat().st_mtime > STALE_SECONDS:
                    lock.unlink()
            except FileNotFoundError:
                continue

    @contextmanager
    def _held(self, name: str = LOCK) -> Generator[None]:
        """One change at a time among our own processes; a kill lets go of it."""
        self._need()
        with (self.folder / name).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _need(self) -> None:
        """Make the repository where there is none, also where somebody deleted it meanwhile."""
        if not self._seen:
            _check_names(self._git, self.branch, self.remote)
        gone = not (self.folder / "HEAD").is_file() and not (self.folder / "objects").exists()
        if gone:
            _make(self.folder, self.branch)
            if self._seen:
                _LOG.warning("the git repository %s was gone: made an empty one", self.folder)
        if (gone or not self._seen) and self.folder.stat().st_uid == os.geteuid():
            self.folder.chmod(PRIVATE_FOLDER)  # one of an earlier version may be open to all
        self._seen = True


def _check_names(git: Git, branch: str, remote: str) -> None:
    if git.tried("check-ref-format", f"refs/heads/{branch}").returncode or branch.startswith("-"):
        raise SettingsError(f"GIT_BRANCH is {branch!r}, which is no branch name")
    if remote.startswith("-") or "::" in remote:
        raise SettingsError(
            "GIT_REPOSITORY is no repository",
            why="it begins like an option, or names a helper program",
            fix="give a folder, an https:// or an ssh:// address",
        )


def _make(folder: Path, branch: str) -> None:
    """Made aside and moved into place whole; when another was faster, its repository is as good."""
    folder.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    aside = folder.with_name(f"{folder.name}.{time.monotonic_ns()}")
    # With this mode git makes files that their owner alone may read.
    words = ("--quiet", "--bare", "--template=", "--shared=0600", f"--initial-branch={branch}")
    Git(aside).run("init", *words)
    try:
        aside.rename(folder)
    except OSError:
        shutil.rmtree(aside)
        if not (folder / "objects").exists():
            # What is left of a deleted one, such as a lock that was taken meanwhile.
            Git(folder).run("init", *words)


def _contended(branch: str) -> ConflictError:
    return ConflictError(
        f"the branch {branch} of the git store could not be moved",
        why="somebody else moves it, or holds its lock",
        fix="try again",
    )


FOLDER = "git/filters.git"


def open_git(settings: Settings) -> GitStore:
    """Ours under HEADGATE_HOME, with GIT_REPOSITORY as its remote when that is set."""
    folder = (settings.root / settings.home / FOLDER).absolute()
    return GitStore(folder, settings.git_branch or BRANCH, settings.git_repository or "")
