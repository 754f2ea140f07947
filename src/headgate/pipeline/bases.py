"""What was last scaffolded, kept beside the manifest: against it a person's edits are told.

`datasets/<name>/.scaffold/` holds each file under its own path, and is committed like the files.
A file ending in `.next` stands for a conflict that is not settled yet.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from headgate.config.env_files import write_atomically

FOLDER = ".scaffold"
NEXT = ".next"
_COMPILED_FROM = re.compile(r"Compiled from datasets/([^/]+)/dataset\.yml")


@dataclass(frozen=True)
class Bases:
    """The bases of one dataset's files; paths are relative to the project.

    A folder that was copied from another dataset brings that one's bases along: they name the
    manifest that they were compiled from, and are as good as absent here.
    """

    root: Path
    dataset: str

    @property
    def folder(self) -> Path:
        return self.root / "datasets" / self.dataset / FOLDER

    def read(self, path: str) -> str | None:
        return self._read_own(path)

    def read_next(self, path: str) -> str | None:
        """What the base will be once the conflict is settled."""
        return self._read_own(f"{path}{NEXT}")

    def _read_own(self, file: str) -> str | None:
        text = read_text(self.folder / file)
        compiled_from = _COMPILED_FROM.search(text) if text is not None else None
        is_copied = compiled_from is not None and compiled_from[1] != self.dataset
        return None if is_copied else text

    def keep(self, path: str, text: str) -> None:
        write_source(self.folder / path, text)
        (self.folder / f"{path}{NEXT}").unlink(missing_ok=True)

    def keep_next(self, path: str, text: str) -> None:
        write_source(self.folder / f"{path}{NEXT}", text)

    def paths(self) -> tuple[str, ...]:
        """Every file that was ever scaffolded for this dataset and not removed since."""
        return tuple(path for path in self._all_paths() if self._is_own(path))

    def _all_paths(self) -> list[str]:
        files = (path for path in self.folder.rglob("*") if path.is_file())
        names = {path.relative_to(self.folder).as_posix().removesuffix(NEXT) for path in files}
        return sorted(names)

    def _is_own(self, path: str) -> bool:
        return self.read(path) is not None or self.read_next(path) is not None

    def forget_copied(self) -> None:
        """Remove the bases that came along with a copied folder; the files they are of stay."""
        for path in self._all_paths():
            if not self._is_own(path):
                self.forget(path)

    def forget(self, path: str) -> None:
        for file in (self.folder / path, self.folder / f"{path}{NEXT}"):
            file.unlink(missing_ok=True)
        if not self._all_paths():
            shutil.rmtree(self.folder, ignore_errors=True)


def read_text(path: Path) -> str | None:
    """The text of a file, lines ended as on this project's machines; None when there is none."""
    if not path.is_file():
        return None
    return path.read_text(encoding="utf-8").replace("\r\n", "\n")


def write_source(path: Path, text: str) -> None:
    """A source file like any other: replaced whole, and readable by all."""
    write_atomically(path, text.encode())
    path.chmod(0o644)
