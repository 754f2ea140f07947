"""A branch of a remote repository: fetched, joined with our commits, pushed to."""

from __future__ import annotations

import subprocess
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from headgate.config.reference import without_secrets
from headgate.errors import UnavailableError
from headgate.filters.git.model import Pulled, Remote, id_of
from headgate.filters.git.objects import Objects


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
