"""What commands of one project share: the active dataset, and paths as a person writes them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.terminal.console import console

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.core.ledger.ops_store import OpsStore


def active_dataset(settings: Settings) -> str:
    """The dataset of DATASET; said on stderr where a profile chose it among several."""
    from headgate.config.env_files import ENVIRONMENT
    from headgate.declarations.project import available_datasets

    name, origin = settings.need("dataset"), settings.origin("dataset")
    known = available_datasets(settings.root)
    if origin != ENVIRONMENT and len(known) > 1:
        others = ", ".join(other for other in known if other != name)
        console.say(f"dataset {name} ({origin}); DATASET=… chooses another: {others}")
    return name


@contextmanager
def faults_below(root: Path) -> Generator[None]:
    """Faults raised inside name their files as a person in the project does."""
    from headgate.errors import DeclarationError

    try:
        yield
    except DeclarationError as error:
        faults = [replace(fault, file=below(Path(fault.file), root)) for fault in error.faults]
        raise DeclarationError(faults) from None


def below(path: Path, root: Path) -> str:
    """The path as a person in the project writes it."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def open_store() -> tuple[Settings, OpsStore]:
    from headgate.config.settings import load_settings
    from headgate.core.ledger.ops_store import OpsStore

    settings = load_settings()
    return settings, OpsStore.open(settings.ops_store_url)
