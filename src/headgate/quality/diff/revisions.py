"""Finds a revision of rules by what a person calls it: a file, `git:REF`, a hash, or `deployed`."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from headgate.core.ledger.ops_store import OpsStore
from headgate.core.sql.fragments import job_name
from headgate.core.sql.script import PLACEHOLDERS
from headgate.declarations.errors import Declared
from headgate.errors import DeclarationError, UsageError
from headgate.quality.compile.resolve import JudgedTable, judged_table, load_judged
from headgate.quality.compile.tables import QUALITY, RECONCILE
from headgate.quality.revision import RulesRevision, fetch
from headgate.quality.spec.loader import find_table, rule_files, tables_in
from headgate.quality.store import RuleStore

DEPLOYED = "deployed"
GIT = "git:"
_HASH = re.compile(r"[0-9a-f]{6,64}")
_KEPT = 5_000


@dataclass(frozen=True)
class Revision:
    """The tables of one side of a comparison, and what it is called."""

    name: str
    tables: tuple[JudgedTable, ...]

    def table(self, name: str) -> JudgedTable | None:
        return next((table for table in self.tables if table.table.name == name), None)


@dataclass(frozen=True)
class Finder:
    """Where revisions are looked for; `table` is needed where a name does not say which."""

    root: Path
    store: OpsStore
    table: str | None = None

    def find(self, name: str) -> Revision:
        if name == DEPLOYED:
            return self._deployed()
        if name.startswith(GIT):
            return self._of_git(name)
        path = Path(name)
        if path.is_file() or path.suffix in (".yml", ".yaml"):
            return Revision(name, load_judged(path, PLACEHOLDERS).tables)
        if _HASH.fullmatch(name):
            return self._kept(name)
        raise UsageError(
            f"`{name}` names no revision",
            fix="give a file, git:REF such as git:HEAD~1, the hash of a revision, or `deployed`",
        )

    def _deployed(self) -> Revision:
        table = self._need_table(DEPLOYED)
        found = self.store.part(RuleStore).deployed_revision(table)
        if found is None:
            raise UsageError(
                f"no revision of {table} is deployed", fix=f"headgate rules deploy {table}"
            )
        return _stored(DEPLOYED, fetch(self.store, found))

    def _kept(self, start: str) -> Revision:
        """By the first digits of its hash, among the revisions that judged or were to judge."""
        names = (
            [self.table] if self.table else [t for f in rule_files(self.root) for t in tables_in(f)]
        )
        known = {hash_ for name in names for hash_ in self._hashes(name)}
        found = sorted(hash_ for hash_ in known if hash_.startswith(start))
        if self.store.revision(start) is not None:
            found = [start]
        if len(found) != 1:
            raise _not_one(start, found)
        return _stored(start[:12], fetch(self.store, found[0]))

    def _hashes(self, table: str) -> Iterable[str]:
        for job in (job_name(kind, table) for kind in (QUALITY, RECONCILE)):
            yield from (
                hash_ for row in self.store.newest_batches(job, _KEPT) for hash_ in row.revisions
            )
            yield from (run.revision for run in self.store.runs(job))
        yield from filter(None, [self.store.part(RuleStore).deployed_revision(table)])

    def _of_git(self, name: str) -> Revision:
        """The file that declares the table now, as it was at that commit, with the lists beside it."""
        table = self._need_table(name)
        now = find_table(self.root, table)
        ref, inside = name.removeprefix(GIT), now.relative_to(self.root).as_posix()
        if not ref or ref.startswith("-"):
            raise UsageError(f"`{name}` names no commit", fix="write for example git:HEAD~1")
        with tempfile.TemporaryDirectory(prefix="headgate-rules-") as folder:
            path = Path(folder) / now.name
            path.write_bytes(_at(self.root, ref, inside))
            for other in _beside(self.root, ref, inside):
                (Path(folder) / Path(other).name).write_bytes(_at(self.root, ref, other))
            return _called(f"{name}:{inside}", name, path)

    def _need_table(self, name: str) -> str:
        if self.table is None:
            raise UsageError(f"`{name}` does not say which table", fix="add --table TABLE")
        return self.table


def _called(place: str, name: str, path: Path) -> Revision:
    """Faults are told at their place in git, not in the copy."""
    try:
        return Revision(name, load_judged(path, PLACEHOLDERS).tables)
    except DeclarationError as error:
        raise DeclarationError([replace(f, file=place) for f in error.faults]) from None


def _stored(name: str, revision: RulesRevision) -> Revision:
    rule_set = revision.rule_set
    declared = Declared(rule_set, revision.file, {})
    return Revision(name, (judged_table(declared, rule_set.table(revision.name)),))


def _not_one(start: str, found: list[str]) -> UsageError:
    if not found:
        return UsageError(
            f"no revision begins with {start}",
            why="none of those that judged batches or were deployed",
            fix="headgate ledger show names the revisions of each batch",
        )
    return UsageError(
        f"several revisions begin with {start}",
        why=", ".join(h[:16] for h in found),
        fix="give more digits",
    )


def _beside(root: Path, ref: str, inside: str) -> list[str]:
    """The JSON lists in the file's folder at that commit."""
    folder = f"{Path(inside).parent.as_posix()}/".removeprefix("./")
    listed = _git(root, "ls-tree", "--name-only", ref, *([folder] if folder else []))
    return [line for line in listed.decode().splitlines() if line.endswith(".json")]


def _at(root: Path, ref: str, inside: str) -> bytes:
    return _git(root, "show", f"{ref}:./{inside}")


def _git(root: Path, *arguments: str) -> bytes:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, check=False, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError("git cannot be asked", why=str(error), fix="give a file") from error
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip().partition("\n")[0]
        raise UsageError(
            f"git has no {' '.join(arguments[-1:])}", why=why, fix="git log says what there is"
        )
    return done.stdout
