"""A revision of a dataset: names and SQL templates as one immutable value, kept in the ops store under its hash.

A job reads nothing from disk: it runs what its revision holds, compiled templates or edited ones.
`declared_revision` makes one from the project's files, `keep` and `fetch` store and load it, `Scripts` caches the
scripts of a run. Also here: `Dates`, the range of a backfill.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from headgate.config.settings import Settings
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.sql.script import PLACEHOLDERS, Script, Template, parse_script, render_values
from headgate.declarations.project import find_dataset
from headgate.errors import OperationError, UsageError
from headgate.pipeline.compile.dataset import CompiledDataset, compile_dataset
from headgate.pipeline.compile.templates import Chosen, check_edited, choose
from headgate.pipeline.loader import load_checked
from headgate.pipeline.spec import as_plain

FROM, TO = "from", "to"
EXAMPLE = "--from 2024-01-03 --to 2024-01-05"


@dataclass(frozen=True)
class Dates:
    """The first and the last date, both of them included."""

    first: date
    last: date

    @classmethod
    def parse(cls, first: str | None, last: str | None) -> Dates:
        """Dates as a person writes them; UsageError when they make no range."""
        dates = cls(_date(first, FROM), _date(last, TO))
        if dates.first > dates.last:
            raise UsageError(
                f"the dates run backwards: {dates.first} is after {dates.last}",
                fix=f"--from {dates.last} --to {dates.first}",
            )
        return dates

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"


def missing_date(name: str = FROM) -> UsageError:
    """The error of a backfill without one of its dates."""
    return UsageError(f"a backfill needs two dates: --{name} is missing", fix=EXAMPLE)


def _date(text: str | None, name: str) -> date:
    if text is None:
        raise missing_date(name)
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"--{name} {text} is no date", why=str(error), fix=EXAMPLE) from None


LAYOUTS = "datasets/_template"
TEMPLATES = "spark/sql"


class DatasetRevision(BaseModel):
    """All that bronze and silver of a dataset need; nothing of it is read from disk later."""

    model_config = ConfigDict(frozen=True)

    name: str
    topic: str
    dlq_topic: str
    bronze_table: str
    silver_table: str
    templates: dict[str, str]
    custom: tuple[str, ...] = ()
    contract: str = "evolve"
    # What bronze is compiled from again when its table gets columns that nobody declared.
    manifest: dict[str, Any] = {}
    layouts: dict[str, str] = {}

    def script(self, file: str, settings: Settings) -> Script:
        """The SQL file as it runs: rendered with the settings, cut into steps."""
        text = Template(file, self.templates[file]).render(render_values(settings, self.name))
        return parse_script(file, text)

    def topic_names(self, settings: Settings) -> tuple[str, str]:
        values = render_values(settings, self.name)
        topic = Template("dataset.yml: topic", self.topic).render(values)
        return topic, Template("dataset.yml: dlq_topic", self.dlq_topic).render(values)


def layouts(root: Path) -> dict[str, str]:
    """The Jinja layouts of the project."""
    return {file.name: file.read_text() for file in sorted((root / LAYOUTS).glob("*.j2"))}


def compiled(root: Path, name: str) -> CompiledDataset:
    path = find_dataset(root, name)
    declared = load_checked(path, PLACEHOLDERS)
    return compile_dataset(declared, layouts(root), f"datasets/{name}/dataset.yml")


def written_templates(root: Path, name: str) -> dict[str, str]:
    """The templates that stand under `spark/sql/<name>`, by the name of the file they make."""
    folder = root / TEMPLATES / name
    return {file.name.removesuffix(".tmpl"): file.read_text() for file in folder.glob("*.sql.tmpl")}


def chosen(root: Path, name: str) -> tuple[CompiledDataset, Chosen]:
    """The dataset as it stands on disk; an edited template wins over the compiled one."""
    fresh = compiled(root, name)
    picked = choose(fresh.templates, written_templates(root, name))
    check_edited(fresh.dataset, picked, f"{TEMPLATES}/{name}")
    return fresh, picked


def declared_revision(settings: Settings, name: str) -> DatasetRevision:
    """What a job of this dataset runs, if it starts now."""
    return revision_from(*chosen(settings.root, name), layouts(settings.root))


def revision_from(
    fresh: CompiledDataset, picked: Chosen, layouts: Mapping[str, str]
) -> DatasetRevision:
    dataset = fresh.dataset
    return DatasetRevision(
        name=dataset.name,
        topic=dataset.topic,
        dlq_topic=dataset.dlq_topic,
        bronze_table=dataset.bronze_table,
        silver_table=dataset.silver_table,
        templates={template.file: template.text for template in picked.templates},
        custom=picked.edited,
        contract=dataset.contract,
        manifest=as_plain(dataset),
        layouts=dict(layouts),
    )


def keep(store: OpsStore, revision: DatasetRevision) -> str:
    """Store the revision; its hash is its name."""
    return store.keep_revision("dataset", revision.name, revision.model_dump_json())


def fetch(store: OpsStore, hash_: str) -> DatasetRevision:
    found = store.revision(hash_)
    if found is None:
        raise OperationError(f"revision {hash_[:12]} is not in the ops store")
    return DatasetRevision.model_validate_json(found.content)


class Scripts:
    """The SQL files of any revision: a batch runs the file of its intent's revision."""

    def __init__(self, store: OpsStore, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._known: dict[tuple[str, str], Script] = {}

    def of(self, revision: str, file: str) -> Script:
        key = (revision, file)
        if key not in self._known:
            self._known[key] = fetch(self._store, revision).script(file, self._settings)
        return self._known[key]
