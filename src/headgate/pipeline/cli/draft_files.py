"""The files of a drafted dataset: checked before they are written, the old ones kept."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.errors import UsageError

if TYPE_CHECKING:
    from headgate.core.profiler.draw_up import Draft
    from headgate.pipeline.spec import Dataset

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_PREVIOUS = ".previous"


class DraftFiles:
    """Where a dataset's manifest and the schema of its rows stand."""

    def __init__(self, root: Path, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"`{name}` is not a name for a dataset",
                fix="use letters, digits, underscores and hyphens, not beginning with a digit",
            )
        self._root, self._name = root, name
        self.manifest = root / "datasets" / name / "dataset.yml"
        self.schema = root / "schemas" / f"{name}.json"

    def require_free(self, source: Path, force: bool) -> None:
        """Refuse to overwrite what is there, unless that is wanted."""
        there = [path for path in (self.manifest, self.schema) if path.exists()]
        if there and not force:
            raise UsageError(
                f"{there[0].relative_to(self._root)} exists already",
                why="a draft would take the place of what somebody wrote",
                fix=f"headgate dataset new {self._name} --from {source} --force (the old file "
                "is kept beside it), or --dry-run to see the draft, or choose another name",
            )

    def texts(self, draft: Draft) -> tuple[str, str]:
        """Manifest and schema; a draft that would not pass its own check never gets out."""
        from headgate.core.sql.render import PLACEHOLDERS
        from headgate.pipeline.compile.compile_dataset import compile_dataset
        from headgate.pipeline.declaration import layouts
        from headgate.pipeline.profile_draft import draft_text
        from headgate.pipeline.row_schema import row_schema
        from headgate.pipeline.spec_loader import load_dataset

        text = draft_text(draft)
        with tempfile.TemporaryDirectory(prefix="headgate-draft-") as folder:
            trial = Path(folder) / "datasets" / self._name / "dataset.yml"
            trial.parent.mkdir(parents=True)
            trial.write_text(text, encoding="utf-8")
            declared = load_dataset(trial, PLACEHOLDERS)
            compile_dataset(declared, layouts(self._root), str(self.manifest))
        self._require_own(declared.value)
        return text, row_schema(draft)

    def _require_own(self, drafted: Dataset) -> None:
        """Two datasets must not share a topic or a table."""
        from headgate.core.sql.render import PLACEHOLDERS
        from headgate.declarations.project import available_datasets, find_dataset
        from headgate.errors import DeclarationError
        from headgate.pipeline.spec_loader import load_dataset

        own = _places(drafted)
        for name in available_datasets(self._root):
            try:
                other = load_dataset(find_dataset(self._root, name), PLACEHOLDERS).value
            except DeclarationError:
                continue
            if name != self._name and own & _places(other):
                raise UsageError(
                    f"{sorted(own & _places(other))[0]} belongs to the dataset {name}",
                    why=f"the names of {self._name}'s tables and topics are made from its own",
                    fix="choose a name that differs from it in more than hyphens and case",
                )

    def write(self, manifest: str, schema: str) -> list[Path]:
        """Both files whole; where the old ones went, if there were any."""
        from headgate.core.runtime.whole_file import whole_file

        kept = list[Path]()
        for path, text in ((self.manifest, manifest), (self.schema, schema)):
            if path.exists():
                kept.append(path.replace(path.with_name(path.name + _PREVIOUS)))
            with whole_file(path) as part:
                part.write_text(text, encoding="utf-8")
        return kept


def _places(dataset: Dataset) -> set[str]:
    """Tables and topics, as catalogs compare them."""
    tables = (dataset.bronze_table, dataset.silver_table)
    return {dataset.topic, dataset.dlq_topic, *(table.lower() for table in tables)}
