"""Trees and commits made without a work tree or a shared index: nothing that a kill could leave half done."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from headgate.errors import UnavailableError
from headgate.filters.git.model import FOLDER, HEADGATE, MAIL, Commit, GitIdentity, id_of
from headgate.filters.git.plumbing import Git

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
