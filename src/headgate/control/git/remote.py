"""A branch of a remote repository: fetched, joined with our commits, pushed to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.control.git.model import Pulled, Remote, id_of
from headgate.control.git.objects import Objects, Signature
from headgate.errors import UnavailableError
from headgate.variables import without_secrets

_AUTHOR = "%an%x00%ae%x00%at +0000%x00%B"


@dataclass(frozen=True)
class RemoteBranch:
    """The branch of this name at `remote`."""

    objects: Objects
    remote: str
    branch: str

    @property
    def _tracking(self) -> str:
        return f"refs/remotes/origin/{self.branch}"

    @property
    def _ref(self) -> str:
        return f"refs/heads/{self.branch}"

    def fetch(self) -> str | None:
        """The remote's tip, with its objects here; None while it has no such branch."""
        listed = self._asked("ls-remote", "--", self.remote, self._ref)
        if not any(line.endswith(f"\t{self._ref}") for line in listed.splitlines()):
            return None
        spec = f"+{self._ref}:{self._tracking}"
        quiet = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
        self._asked("fetch", *quiet, "--", self.remote, spec)
        return self.objects.commit_of(self._tracking)

    def standing(self, ours: str | None, theirs: str | None) -> Remote:
        name = without_secrets(self.remote)
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
        words = ("push", "--porcelain", "--no-verify", "--", self.remote, f"{tip}:{self._ref}")
        done = self.objects.git.tried(*words)
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
            touched |= set(self._paths(commit))
            tree = self.objects.write(tip, self._changes(commit))
            if tree != self.objects.git.text("rev-parse", f"{tip}^{{tree}}"):
                signature, message = self._told(commit)
                tip, count = self.objects.commit(tree, tip, signature, message), count + 1
        base = self.objects.git.tried("merge-base", lacking[-1], theirs).stdout.decode().strip()
        foreign = set(self._changed(base, theirs)) if base else set(self.objects.files_at(theirs))
        ours = {name for path in touched if (name := id_of(path))}
        return Pulled(tip, changed, count, tuple(sorted(foreign & ours)))

    def _changes(self, commit: str) -> dict[str, str | None]:
        return {path: self.objects.text_at(commit, path) for path in self._paths(commit)}

    def _paths(self, commit: str) -> list[str]:
        words = ("diff-tree", "-r", "-z", "--root", "--no-commit-id", "--name-only", "--no-renames")
        told = self.objects.git.run(*words, commit).decode()
        return [path for path in told.split("\0") if path]

    def _told(self, commit: str) -> tuple[Signature, str]:
        told = self.objects.git.text("log", "-1", f"--format={_AUTHOR}", commit)
        name, mail, at, message = told.split("\0", 3)
        return Signature(name, mail, at), message

    def _changed(self, before: str, after: str) -> tuple[str, ...]:
        words = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", before, after)
        paths = self.objects.git.run(*words).decode().split("\0")
        return tuple(sorted(name for path in paths if (name := id_of(path))))

    def _asked(self, *words: str) -> str:
        done = self.objects.git.tried(*words)
        if done.returncode:
            raise self._away(done.stderr.decode(errors="replace"))
        return done.stdout.decode()

    def _away(self, told: str) -> UnavailableError:
        return UnavailableError(
            f"the git repository {without_secrets(self.remote)} cannot be reached or written",
            why=without_secrets(told.strip()),
            fix="check GIT_REPOSITORY and GIT_BRANCH; commits wait here until it answers",
        )
