"""Which datasets a project declares, where their manifests are, and what other capabilities take from one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from headgate.declarations.errors import suggestion
from headgate.errors import UsageError

MANIFEST = "dataset.yml"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class DatasetDefaults:
    """The topics, keys and event time of a dataset: defaults of a rule set over its topic."""

    topic: str
    dlq_topic: str
    dedup_key: tuple[str, ...]
    key_field: str | None
    event_ts_col: str


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
