"""Trees and commits made without a work tree or a shared index: nothing that a kill could leave half done."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from headgate.control.git.model import FOLDER, Commit, id_of
from headgate.control.git.plumbing import Git

COMMITTER = "Headgate"
MAIL = "headgate.invalid"
REGULAR = frozenset({"100644", "100755"})
LOG = "%H%x00%an%x00%ae%x00%at%x00%s"
LONGEST_NAME = 100


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
            "GIT_COMMITTER_NAME": COMMITTER,
            "GIT_COMMITTER_EMAIL": f"headgate@{MAIL}",
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
        done = self.git.tried("rev-parse", "--verify", "--quiet", "--end-of-options", ref)
        return done.stdout.decode().strip() or None if done.returncode == 0 else None

    def text_at(self, tip: str | None, path: str) -> str | None:
        """The file's text at a commit; None when it is not there."""
        if tip is None:
            return None
        done = self.git.tried("cat-file", "blob", f"{tip}:{path}")
        return done.stdout.decode(errors="replace") if done.returncode == 0 else None

    def files_at(self, tip: str | None) -> dict[str, str]:
        """Every filter's file at a commit; what is no regular file has an empty text."""
        if tip is None:
            return {}
        listed = self.git.run("ls-tree", "-r", "-z", tip, "--", f"{FOLDER}/").decode()
        entries = [_entry(line) for line in listed.split("\0") if line]
        regular = {name: blob for name, mode, blob in entries if mode in REGULAR}
        others = {name: "" for name, mode, _ in entries if mode not in REGULAR}
        texts = self._blobs(list(regular.values()))
        found = {**others, **dict(zip(regular, texts, strict=True))}
        return {name: text for path, text in found.items() if (name := id_of(path))}

    def _blobs(self, names: Sequence[str]) -> list[str]:
        """All in one call: each is told as a line with its size, then its bytes."""
        if not names:
            return []
        told = self.git.run("cat-file", "--batch", given="\n".join(names).encode() + b"\n")
        texts: list[str] = []
        at = 0
        for _ in names:
            head = told.index(b"\n", at)
            size = int(told[at:head].rsplit(b" ", 1)[1])
            texts.append(told[head + 1 : head + 1 + size].decode(errors="replace"))
            at = head + 1 + size + 1
        return texts

    def write(self, tip: str | None, changes: Mapping[str, str | None]) -> str:
        """The tree of a commit with these files changed, or taken out."""
        with _index() as index:
            if tip is not None:
                self.git.run("read-tree", tip, extra=index)
            lines = [self._line(path, text) for path, text in changes.items()]
            self.git.run("update-index", "-z", "--index-info", given=b"".join(lines), extra=index)
            return self.git.text("write-tree", extra=index)

    def _line(self, path: str, text: str | None) -> bytes:
        if text is None:
            return f"0 {'0' * 40}\t{path}\0".encode()
        blob = self.git.text("hash-object", "-w", "--stdin", given=text)
        return f"100644 {blob}\t{path}\0".encode()

    def commit(self, tree: str, parent: str | None, signature: Signature, message: str) -> str:
        parents = ("-p", parent) if parent else ()
        words = message.replace("\0", " ").strip() or "Change a filter"
        return self.git.text(
            "commit-tree", tree, *parents, "-F", "-", given=words, extra=signature.variables
        )

    def history(
        self, tip: str | None, path: str, limit: int, known: str | None = None
    ) -> tuple[Commit, ...]:
        """The commits that touched a path, newest first; those that `known` has are left out."""
        if tip is None:
            return ()
        # With the commits of side branches: whoever wrote there wrote it too.
        words = ("log", f"-{limit}", "--no-renames", "--full-history", f"--format={LOG}")
        span = (tip, f"^{known}") if known else (tip,)
        told = self.git.text(*words, *span, "--", path)
        return tuple(_commit(line) for line in told.splitlines())

    def count(self, wanted: str, known: str) -> int:
        """How many commits `wanted` has that `known` lacks."""
        return int(self.git.text("rev-list", "--count", wanted, f"^{known}"))


def _entry(line: str) -> tuple[str, str, str]:
    """Path, mode and object of a line of ls-tree."""
    facts, path = line.split("\t", 1)
    mode, _, blob = facts.split(" ")
    return path, mode, blob


def _commit(line: str) -> Commit:
    name, author, mail, at, subject = line.split("\0", 4)
    return Commit(name, author, datetime.fromtimestamp(int(at), UTC), subject, mail)


@contextmanager
def _index() -> Generator[dict[str, str]]:
    """An index of its own for one tree: no lock to wait for, none to leave behind."""
    with tempfile.TemporaryDirectory(prefix="headgate-index-") as folder:
        yield {"GIT_INDEX_FILE": str(Path(folder) / "index")}
