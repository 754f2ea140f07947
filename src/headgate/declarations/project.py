"""Which datasets a project declares, and where their manifests are."""

from __future__ import annotations

import re
from pathlib import Path

from headgate.declarations.errors import suggestion
from headgate.errors import UsageError

MANIFEST = "dataset.yml"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


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
