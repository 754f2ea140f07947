"""Reads a dataset manifest: every fault at once, each with its file, line and what to write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from headgate.declarations.declared import Declared
from headgate.declarations.model import validate
from headgate.declarations.spec_document import read_document, text_of
from headgate.errors import DeclarationError
from headgate.pipeline.checks import check_references
from headgate.pipeline.spec import Dataset


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


def _folder(path: Path) -> str | None:
    """The folder that names the dataset; a manifest elsewhere may have any name."""
    return path.parent.name if path.parent.parent.name == "datasets" else None
