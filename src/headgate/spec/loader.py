"""Reads a dataset manifest: every fault at once, each with its file, line and what to write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from headgate.errors import DeclarationError, UsageError
from headgate.spec.checks import check_references
from headgate.spec.dataset import Dataset
from headgate.spec.declared import Declared
from headgate.spec.document import read_document, text_of
from headgate.spec.model import validate
from headgate.spec.refusal import suggestion

__all__ = ["Declared", "available_datasets", "find_dataset", "load_dataset"]

MANIFEST = "dataset.yml"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def load_dataset(path: Path, variables: Mapping[str, str]) -> Declared[Dataset]:
    """The dataset in `path`; raises DeclarationError with all faults."""
    document = read_document(str(path), text_of(path), variables)
    dataset = None
    if isinstance(document.data, dict):
        dataset = validate(Dataset, document)
        check_references(document, folder=_folder(path))
    elif not document.faults:
        document.add("", "the manifest is not a mapping", "Write `key: value` lines.", line=1)
    if document.faults or dataset is None:
        raise DeclarationError(sorted(document.faults, key=lambda fault: fault.line or 0))
    return Declared(dataset, document.file, document.lines)


def available_datasets(root: Path) -> tuple[str, ...]:
    """The names of the datasets declared under `root`, sorted."""
    return tuple(sorted(file.parent.name for file in root.glob(f"datasets/*/{MANIFEST}")))


def find_dataset(root: Path, name: str) -> Path:
    """The manifest of that dataset; an unknown one is refused with those there are."""
    path = root / "datasets" / name / MANIFEST
    if _NAME.fullmatch(name) and path.is_file():
        return path
    known = available_datasets(root)
    guess, names = suggestion(name, known, "datasets"), ", ".join(known)
    raise UsageError(
        f"there is no dataset `{name}`",
        why=f"datasets/{name}/{MANIFEST} does not exist",
        fix=guess if names in guess else f"{guess} Available: {names}.",
    )


def _folder(path: Path) -> str | None:
    """The folder that names the dataset; a manifest elsewhere may have any name."""
    return path.parent.name if path.parent.parent.name == "datasets" else None
